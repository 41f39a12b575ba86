//! Builds traces from single events.
#![allow(dead_code)] // each test uses a part of it

use tr_analyze::critical_path::{critical_path, CriticalPath};
use tr_analyze::model::Analysis;
use tr_analyze::{analyze, Options};
use tr_format::event::{
    Argv, CgroupId, Comm, Context, CpuId, Delays, Exec, Exit, Final, Fork, Ktime, LifeEvent,
    LifeKind, LossCause, Lost, Reason, SchedEvent, SchedKind, Snapshot, Stream, Switch, Tgid, Tid,
    Timeout, Waking,
};
use tr_format::mask::Masked;
use tr_format::meta::{Metadata, Scope, Summary};
use tr_format::reader::Trace;
use tr_format::source::Source;
use tr_format::writer::Writer;
use tr_sim::config::Config;
use tr_sim::machine::Machine;
use tr_sim::program::World;

pub const START: u64 = 1_000_000;
pub const RUNNING: u16 = 0;
pub const SLEEPS: u16 = 1;
pub const BLOCKED: u16 = 2;
pub const DEAD: u16 = 0x80;

/// A trace that a test builds from single events. All times are in ns since the start of the trace.
pub struct Hand {
    pub meta: Metadata,
    pub cpus: Vec<Vec<SchedEvent>>,
    pub life: Vec<LifeEvent>,
    pub recorder: Vec<LifeEvent>,
    pub end: Option<i64>,
}

pub fn at(time: i64) -> Ktime {
    Ktime(START.checked_add_signed(time).unwrap())
}

impl Hand {
    pub fn new(scope: Scope, end: i64) -> Hand {
        let config = Config::new(World::default(), 4, 1);
        let mut meta = Machine::new(&config).meta();
        meta.start = at(0);
        meta.scope = scope;
        meta.root = None;
        Hand {
            meta,
            cpus: vec![Vec::new(); 4],
            life: Vec::new(),
            recorder: Vec::new(),
            end: Some(end),
        }
    }

    pub fn sched(&mut self, cpu: usize, time: i64, kind: SchedKind) -> &mut Hand {
        let time = at(time);
        self.cpus[cpu].push(SchedEvent { time, kind });
        self
    }

    pub fn switch(&mut self, cpu: usize, time: i64, prev: u32, state: u16, next: u32) -> &mut Hand {
        let kind = SchedKind::Switch(Switch {
            prev: Tid(prev),
            next: Tid(next),
            prev_state: state,
            preempt: false,
            iowait: false,
            reason: Reason::Unknown,
            timeout: Timeout::UNKNOWN,
        });
        self.sched(cpu, time, kind)
    }

    pub fn preempt(
        &mut self,
        cpu: usize,
        time: i64,
        prev: u32,
        state: u16,
        next: u32,
    ) -> &mut Hand {
        let kind = SchedKind::Switch(Switch {
            prev: Tid(prev),
            next: Tid(next),
            prev_state: state,
            preempt: true,
            iowait: false,
            reason: Reason::Unknown,
            timeout: Timeout::UNKNOWN,
        });
        self.sched(cpu, time, kind)
    }

    pub fn waking(&mut self, cpu: usize, time: i64, waker: u32, wakee: u32) -> &mut Hand {
        let kind = SchedKind::Waking(Waking {
            waker: Tid(waker),
            wakee: Tid(wakee),
            context: if waker == 0 {
                Context::HardIrq
            } else {
                Context::Task
            },
            new: false,
            vfork: false,
        });
        self.sched(cpu, time, kind)
    }

    pub fn first_waking(
        &mut self,
        cpu: usize,
        time: i64,
        waker: u32,
        wakee: u32,
        vfork: bool,
    ) -> &mut Hand {
        let kind = SchedKind::Waking(Waking {
            waker: Tid(waker),
            wakee: Tid(wakee),
            context: Context::Task,
            new: true,
            vfork,
        });
        self.sched(cpu, time, kind)
    }

    pub fn lives(&mut self, cpu: u16, time: i64, kind: LifeKind) -> &mut Hand {
        self.life.push(LifeEvent {
            time: at(time),
            cpu: Some(CpuId(cpu)),
            kind,
        });
        self
    }

    /// Adds an event of the recorder about a CPU.
    pub fn records(&mut self, cpu: u16, time: i64, kind: LifeKind) -> &mut Hand {
        self.recorder.push(LifeEvent {
            time: at(time),
            cpu: Some(CpuId(cpu)),
            kind,
        });
        self
    }

    pub fn fork(&mut self, cpu: u16, time: i64, parent: u32, tid: u32, tgid: u32) -> &mut Hand {
        let fork = Fork {
            parent_tid: Tid(parent),
            parent_tgid: Tgid(parent),
            tid: Tid(tid),
            tgid: Tgid(tgid),
            start_time: at(time),
            ns_tid: Tid(tid),
            cgroup: CgroupId(1),
            comm: Comm::new(b"child"),
        };
        self.lives(cpu, time, LifeKind::Fork(fork))
    }

    /// Adds an exec after which the kernel's `maxrss` has the given value.
    pub fn exec_with(&mut self, time: i64, pid: u32, max_rss: u64) -> &mut Hand {
        self.exec(0, time, pid, pid);
        if let Some(LifeKind::Exec(exec)) = self.life.last_mut().map(|event| &mut event.kind) {
            exec.max_rss = Some(max_rss);
        }
        self
    }

    /// Adds the exit of a process. `rss` is the kernel's `maxrss` then, and `program` is the high-water mark of the
    /// memory of its program.
    pub fn exit_with(&mut self, time: i64, pid: u32, rss: u64, program: Option<u64>) -> &mut Hand {
        self.exit(0, time, pid, pid, true);
        if let Some(LifeKind::Exit(exit)) = self.life.last_mut().map(|event| &mut event.kind) {
            (exit.max_rss, exit.program_rss) = (rss, program);
        }
        self
    }

    pub fn exec(&mut self, cpu: u16, time: i64, old_tid: u32, tid: u32) -> &mut Hand {
        let exec = Exec {
            tid: Tid(tid),
            tgid: Tgid(tid),
            old_tid: Tid(old_tid),
            comm: Comm::new(b"true"),
            filename: b"/bin/true".to_vec().into(),
            argv: Argv::from_args(["true"]),
            cgroup: CgroupId(1),
            ..Exec::default()
        };
        self.lives(cpu, time, LifeKind::Exec(exec))
    }

    pub fn exit(
        &mut self,
        cpu: u16,
        time: i64,
        tid: u32,
        tgid: u32,
        group_dead: bool,
    ) -> &mut Hand {
        let exit = Exit {
            tid: Tid(tid),
            tgid: Tgid(tgid),
            status: 0,
            group_dead,
            group_status: 0,
            utime: 0,
            stime: 0,
            sum_exec_runtime: 0,
            nvcsw: 0,
            nivcsw: 0,
            min_flt: 1,
            maj_flt: 0,
            max_rss: 4096,
            read_bytes: None,
            write_bytes: None,
            program_rss: None,
            delays: Delays::default(),
        };
        self.lives(cpu, time, LifeKind::Exit(exit))
    }

    pub fn last(&mut self, cpu: u16, time: i64, tid: u32) -> &mut Hand {
        let last = Final {
            tid: Tid(tid),
            sum_exec_runtime: 0,
            nvcsw: 0,
            nivcsw: 0,
            delays: Delays::default(),
        };
        self.lives(cpu, time, LifeKind::Final(last))
    }

    pub fn recorder_event(&mut self, time: i64, kind: LifeKind) -> &mut Hand {
        self.recorder.push(LifeEvent {
            time: at(time),
            cpu: None,
            kind,
        });
        self
    }

    /// Adds the recorder's snapshot of a task that already existed. `state` is `None` if the task is on a CPU.
    pub fn snapshot(
        &mut self,
        time: i64,
        tid: u32,
        tgid: u32,
        parent: u32,
        state: Option<u16>,
    ) -> &mut Hand {
        let snapshot = Snapshot {
            tid: Tid(tid),
            tgid: Tgid(tgid),
            parent_tgid: Tgid(parent),
            start_time: Ktime(1),
            ns_tid: Tid(tid),
            cgroup: CgroupId(1),
            comm: Comm::new(b"old"),
            argv: Argv::default(),
            state: state.unwrap_or(RUNNING),
            on_cpu: state.is_none(),
            kthread: false,
            followed: true,
            sum_exec_runtime: 0,
        };
        self.recorder_event(time, LifeKind::Snapshot(snapshot))
    }

    pub fn lives_lost(&mut self, since: i64, until: i64) -> &mut Hand {
        let lost = Lost {
            stream: Stream::Lifecycle,
            count: None,
            until: at(until),
            cause: LossCause::BufferFull,
        };
        self.recorder_event(since, LifeKind::Lost(lost))
    }

    pub fn lost(&mut self, cpu: u16, since: i64, until: i64) -> &mut Hand {
        let lost = Lost {
            stream: Stream::Cpu(CpuId(cpu)),
            count: None,
            until: at(until),
            cause: LossCause::BufferFull,
        };
        self.recorder_event(since, LifeKind::Lost(lost))
    }

    /// Returns the analysis of the trace, and the critical path of the first process in it.
    pub fn path(&self) -> (Analysis, CriticalPath) {
        let options = Options {
            timeline: true,
            ..Options::default()
        };
        let analysis = analyze(&self.trace(), &options);
        let process = analysis.process_ids().next().unwrap();
        let path = critical_path(&analysis, process).unwrap();
        (analysis, path)
    }

    pub fn trace(&self) -> Trace {
        let mut out = Vec::new();
        let mut writer = Writer::new(&mut out, &Masked::trusted(self.meta.clone())).unwrap();
        for event in &self.recorder {
            writer
                .life(Stream::Recorder, Masked::trusted(event.clone()))
                .unwrap();
        }
        for event in &self.life {
            writer
                .life(Stream::Lifecycle, Masked::trusted(event.clone()))
                .unwrap();
        }
        for (cpu, ring) in (0..).zip(&self.cpus) {
            for event in ring {
                writer.sched(CpuId(cpu), *event).unwrap();
            }
        }
        writer.flush().unwrap();
        if let Some(end) = self.end {
            let config = Config::new(World::default(), 4, 1);
            let summary = Machine::new(&config).summary();
            writer
                .finish(&Masked::trusted(Summary {
                    end: at(end),
                    ..summary
                }))
                .unwrap();
        }
        Trace::open(Source::bytes(out)).unwrap()
    }
}
