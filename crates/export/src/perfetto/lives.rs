//! Writes wake-ups and the lives of tasks to a Perfetto trace.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::io;

use tr_analyze::model::Analysis;
use tr_analyze::order::{self, Event};
use tr_format::event::{
    Argv, Comm, Context, CpuId, Fork, LifeEvent, LifeKind, SchedEvent, SchedKind, Tgid, Tid, Waking,
};
use tr_format::reader::Trace;

use super::bundle::{Cpu, BUNDLE};
use super::packets::{id, text, Packets, TrackOptions, PRIO};
use crate::messages::*;
use tr_insight::views::view::View;

const CLONE_THREAD: u64 = 0x10000;

/// The writer of wake-ups and of tasks' lives to a Perfetto trace, from the events of a recording.
pub struct Lives<'a> {
    analysis: &'a Analysis,
    /// The tids of the tasks whose events are exported.
    chosen: HashSet<Tid>,
    cpus: BTreeMap<CpuId, Cpu>,
    comms: HashMap<Tid, Comm>,
    parents: HashMap<Tgid, Tgid>,
    /// For each task so far, by its tid, its process; `None` unless wake-ups are drawn as arrows between the tracks of
    /// threads.
    flows: Option<HashMap<Tid, Tgid>>,
    /// Whether all wake-ups are exported, and not only the first one of each new task. This needs the level of detail
    /// 0: then stays on a CPU are not merged, and each wake-up leads to a stay of its own.
    wakings: bool,
}

impl<'a> Lives<'a> {
    pub fn new(view: &View<'a>, shown: TrackOptions) -> Lives<'a> {
        let analysis = view.analysis;
        Lives {
            analysis,
            chosen: view.threads().map(|ix| analysis.thread(ix).tid).collect(),
            cpus: BTreeMap::new(),
            comms: HashMap::new(),
            parents: HashMap::new(),
            flows: shown.flows.then(HashMap::new),
            wakings: shown.detail == 0,
        }
    }

    /// Remembers to which process a new task belongs, for arrows between the tracks of threads.
    fn task(&mut self, tid: Tid, tgid: Tgid) {
        if let Some(processes) = &mut self.flows {
            processes.insert(tid, tgid);
        }
    }

    pub fn write(mut self, trace: &Trace, packets: &mut Packets<'_>) -> io::Result<()> {
        let mut merge = order::merge(trace);
        while let Some(event) = merge.next_event() {
            if event.time() > self.analysis.end {
                break;
            }
            match event {
                Event::Sched(cpu, event) => self.waking(cpu, event, packets)?,
                Event::Life(event) => self.life(event, packets)?,
            }
        }
        for (number, mut cpu) in std::mem::take(&mut self.cpus) {
            cpu.flush(number, packets)?;
        }
        Ok(())
    }

    fn waking(
        &mut self,
        number: CpuId,
        event: SchedEvent,
        packets: &mut Packets<'_>,
    ) -> io::Result<()> {
        let SchedKind::Waking(Waking {
            waker,
            wakee,
            context,
            new,
            ..
        }) = event.kind
        else {
            return Ok(());
        };
        if !(self.wakings || new) {
            return Ok(());
        }
        if event.time < self.analysis.start || !self.chosen.contains(&wakee) {
            return Ok(());
        }
        let flags = match context {
            Context::HardIrq => 0x08,
            Context::SoftIrq => 0x10,
            Context::Task | Context::SendSoftIrq => 0,
        };
        let known = |tid: Tid| Some((*self.flows.as_ref()?.get(&tid)?, tid));
        let ends = known(waker).zip(known(wakee));
        if let Some((from, to)) = ends.filter(|_| flags == 0 && self.chosen.contains(&waker)) {
            let (from, to) = (packets.thread(from.0, from.1)?, packets.thread(to.0, to.1)?);
            packets.flow(event.time, from, to)?;
        }
        let cpu = self.cpus.entry(number).or_default();
        if new {
            let comm = self.comms.get(&wakee).copied().unwrap_or_default();
            let wakeup = SchedWakeupNew {
                comm: text(comm.bytes()),
                pid: id(wakee.0),
                prio: PRIO,
                success: 1,
                target_cpu: 0,
            };
            cpu.event(event.time, waker, flags, Ftrace::SchedWakeupNew(wakeup));
        } else {
            cpu.waking(event.time, wakee, flags, &self.comms);
        }
        if cpu.length() >= BUNDLE {
            cpu.flush(number, packets)?;
        }
        Ok(())
    }

    fn life(&mut self, event: &LifeEvent, packets: &mut Packets<'_>) -> io::Result<()> {
        let start = self.analysis.start;
        let time = event.time.max(start);
        match &event.kind {
            LifeKind::Snapshot(task) => {
                self.comms.insert(task.tid, task.comm);
                self.task(task.tid, task.tgid);
                if !self.chosen.contains(&task.tid) {
                    return Ok(());
                }
                let mut tree = ProcessTree::default();
                if task.tid.0 == task.tgid.0 {
                    self.parents.insert(task.tgid, task.parent_tgid);
                    tree.processes.push(process(
                        task.tgid,
                        task.parent_tgid,
                        &task.argv,
                        task.comm,
                    ));
                }
                tree.threads.push(Thread {
                    tid: id(task.tid.0),
                    name: text(task.comm.bytes()),
                    tgid: id(task.tgid.0),
                });
                packets.put(Some(start), Data::ProcessTree(tree))
            }
            LifeKind::Fork(fork) => {
                self.comms.insert(fork.tid, fork.comm);
                self.task(fork.tid, fork.tgid);
                if fork.tid.0 == fork.tgid.0 {
                    self.parents.insert(fork.tgid, fork.parent_tgid);
                }
                if self.chosen.contains(&fork.tid) {
                    let cpu = self.cpus.entry(event.cpu.unwrap_or_default()).or_default();
                    cpu.event(time, fork.parent_tid, 0, new_task(fork));
                }
                Ok(())
            }
            LifeKind::Exec(exec) => {
                self.comms.insert(exec.tid, exec.comm);
                if !self.chosen.contains(&exec.tid) {
                    return Ok(());
                }
                let parent = self.parents.get(&exec.tgid).copied().unwrap_or_default();
                let tree = ProcessTree {
                    processes: vec![process(exec.tgid, parent, &exec.argv, exec.comm)],
                    threads: Vec::new(),
                };
                packets.put(Some(time), Data::ProcessTree(tree))
            }
            LifeKind::Rename(rename) => {
                self.comms.insert(rename.tid, rename.comm);
                Ok(())
            }
            LifeKind::Final(last) => {
                self.comms.remove(&last.tid);
                self.parents.remove(&Tgid(last.tid.0));
                if let Some(processes) = &mut self.flows {
                    processes.remove(&last.tid);
                }
                Ok(())
            }
            _ => Ok(()),
        }
    }
}

fn new_task(fork: &Fork) -> Ftrace {
    let thread = fork.tid.0 != fork.tgid.0;
    Ftrace::TaskNewtask(TaskNewtask {
        pid: id(fork.tid.0),
        comm: text(fork.comm.bytes()),
        clone_flags: if thread { CLONE_THREAD } else { 0 },
    })
}

fn process(pid: Tgid, parent: Tgid, argv: &Argv, comm: Comm) -> Process {
    let mut cmdline: Vec<String> = argv.args().map(text).collect();
    if cmdline.is_empty() {
        cmdline.push(text(comm.bytes()));
    }
    Process {
        pid: id(pid.0),
        ppid: id(parent.0),
        cmdline,
    }
}
