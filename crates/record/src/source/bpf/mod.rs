//! Gets the events of a recording from BPF programs, which `tr` itself or the loader that sudo runs has attached.

mod calls;
mod convert;
mod devices;
mod dns;
pub mod loader;
mod losses;
mod maps;
mod others;
mod records;
mod request;
pub mod sudo;
mod totals;
mod unlisted;

use std::collections::HashSet;
use std::os::fd::BorrowedFd;
use std::time::{Duration, Instant};

use tr_bpf::{wire, Containers, Extras, Sampling, Settings, Tracer};
use tr_format::event::{Argv, Comm, CpuId, Ktime, LifeEvent};
use tr_format::meta::{Extra, Method, Missing, Origin, Scope};
use tr_output::cgroups;

use self::calls::Calls;
use self::devices::Devices;
use self::records::{RootWatch, Sink};
use self::sudo::{Attached, Sudo};
use self::totals::Totals;
use super::{degraded, recorder, Drained, Last, PartEvents, Source, Started, DRAIN_EVERY};
use crate::config::{buffer_sizes, Config, Follow};
use crate::error::Error;
use crate::proc::{self, Alive};
use crate::targets::Targets;
use crate::{capabilities, host, memory};

/// The longest wait for the event of COMMAND's last switch-out. COMMAND's status can be known before, if COMMAND
/// still has to get a CPU to be switched out for the last time. On a busy machine the event came after more than 20
/// ms in 1 of 40 recordings.
const LAST_SWITCH: Duration = Duration::from_millis(250);
/// The longest wait at the end of a light recording (`--light`) for the last totals of CPU time of tasks that have
/// ended. The kernel drops such a task after its parent has waited for it and a grace period of RCU has passed, which
/// takes 10 to 40 ms on two idle CPUs.
const LAST_TOTALS: Duration = Duration::from_millis(100);

/// The facts that a recording with `--light` by BPF programs lacks, as text for the user.
const LIGHT_LACKS: &str =
    "--light: who woke whom, the moments of switches, blocked waits, connections, disks, \
                     containers and servers";

/// The memory in bytes that the recorder needs besides the buffers (slots and rings) of the BPF programs: for its own
/// program, the stacks and queues of its threads, and the BPF programs that the kernel verifies.
pub const OWN_MEMORY: u64 = 40 << 20;

/// The attached BPF programs with the buffers (slots and rings) into which they write events, as a source of events.
struct Bpf {
    tracer: Tracer,
    sink: Sink,
    /// The reader of the sums of requests to block devices; `None` if they are not recorded, and before the recording
    /// begins.
    devices: Option<Devices>,
    /// The reader of the sums of system calls (for each process and kind of call); `None` if they are not recorded.
    calls: Option<Calls>,
    /// The reader of the tasks' totals of CPU time in a light recording (`--light`); `None` in other recordings.
    totals: Option<Totals>,
    /// The choice of the tasks that the recording follows.
    scope: Scope,
    argv_limit: u32,
    /// How many stacks of waits were lost before the recording began, because the BPF programs' table had no room.
    /// These stacks do not count as losses of the recording.
    waits_before: u64,
    /// The process of sudo that ran the loader; `None` if there was none or it has ended.
    sudo: Option<Sudo>,
}

/// The process that attaches the BPF programs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Loader {
    /// `tr` itself attaches the BPF programs.
    Own,
    /// The loader, which sudo runs, attaches the BPF programs.
    Sudo,
}

/// Attaches the BPF programs and begins to collect their events. `child` is COMMAND's process before its release.
pub fn start(
    config: &Config,
    loader: Loader,
    child: Option<u32>,
    online: &[CpuId],
) -> Result<Started, Error> {
    host::check_time_namespace()?;
    let targets = Targets::of(config, child, online)?;
    let scope = targets.scope.clone();
    let (settings, buffer) = settings(config, targets, online.len())?;
    let mut attached = attach(loader, &settings)?;
    let tracer = &mut attached.tracer;
    let mut sink = Sink::new(host::page_size());
    let tasks = tracer.snapshot()?;
    let followed = |pid: &&u32| tasks.iter().any(|t| t.seen_tid == **pid && t.followed != 0);
    if let Some(pid) = settings.targets.iter().find(|pid| !followed(pid)) {
        return Err(Error::Hidden(*pid));
    }
    let tgid_of = |pid: u32| tasks.iter().find(|t| t.seen_tid == pid).map(|t| t.tgid);
    let root = child.and_then(tgid_of);
    if let Some(root) = root {
        sink.watch(RootWatch::new(root));
        tracer.watch_signals(root, tgid_of(std::process::id()).unwrap_or(0));
    }
    let living = living(&tasks, &scope, config.facts.argv_limit);
    let totals = config.facts.light.then(|| Totals::new(tracer));
    let facts = totals.as_ref().map(Totals::facts);
    Ok(Started {
        scope: scope.clone(),
        root,
        origin: (loader == Loader::Sudo || config.facts.light).then_some(Origin {
            method: match loader {
                Loader::Own => Method::Bpf,
                Loader::Sudo => Method::Sudo,
            },
            facts: facts.unwrap_or_default(),
        }),
        extras: (!config.facts.light).then(|| extras(&attached.tracer, config)),
        missing: if config.facts.light {
            vec![Missing::new(None, LIGHT_LACKS)]
        } else {
            [missing(&attached), notes(&attached)].concat()
        },
        irq_known: attached.tracer.knows_interrupts(),
        buffer,
        living,
        listen: None,
        source: Box::new(Bpf {
            tracer: attached.tracer,
            sink,
            devices: None,
            calls: None,
            totals,
            scope,
            argv_limit: config.facts.argv_limit,
            waits_before: 0,
            sudo: attached.sudo,
        }),
    })
}

/// The settings of the BPF programs, and the memory in bytes of all the buffers (slots and rings) into which these
/// programs write events. `online` is the number of CPUs that are online.
fn settings(config: &Config, targets: Targets, online: usize) -> Result<(Settings, u64), Error> {
    let possible_cpus = host::possible_cpus();
    let later_cpus = config
        .scope
        .cpus
        .is_none()
        .then(|| later_cpus(online, possible_cpus));
    let regions = targets.cpus.len() + later_cpus.unwrap_or(0) as usize;
    let page = host::page_size();
    let (sched_slots, life_ring) =
        match buffer_sizes(targets.cpus.len(), config.limits.buffer, page) {
            (_, life_ring) if config.facts.light => (page, life_ring),
            sizes => sizes,
        };
    let all_slots = u64::from(sched_slots) * regions as u64;
    let stacks = sampling(config, targets.cpus.len());
    let sample_ring = stacks.map_or(0, |sampling| u64::from(sampling.ring));
    let buffer = all_slots + u64::from(life_ring) + sample_ring;
    memory::check(buffer + OWN_MEMORY)?;
    let settings = Settings {
        all: config.scope.follow == Follow::All,
        cpus: targets.cpus,
        later_cpus,
        possible_cpus,
        sched_slots,
        life_ring,
        argv_limit: config.facts.argv_limit,
        pid_max: host::pid_max(),
        targets: targets.pids,
        target_cgroup: targets.cgroup,
        // Only wakings show which client requested a container, and which server works for a recorded task. A recording
        // with `--light` has no wakings.
        containers: if config.facts.light {
            Containers::None
        } else {
            config.scope.containers
        },
        servers: config.scope.servers && !config.facts.light,
        syscalls: config.facts.syscalls,
        light: config.facts.light,
        stacks,
        count_emitted: false,
        hidden_tid: 0,
        keep_others: false,
    };
    Ok((settings, buffer))
}

/// The ids of the recorded processes that are servers of the followed tasks, and of the descendants of these servers.
fn servers(tasks: &[wire::Snapshot]) -> HashSet<u32> {
    let is_one = |task: &&wire::Snapshot| task.followed == wire::FOLLOWED_SERVER;
    let mut all: HashSet<u32> = tasks.iter().filter(is_one).map(|task| task.tgid).collect();
    let mut count = 0;
    while count < all.len() {
        count = all.len();
        let children: Vec<u32> = tasks
            .iter()
            .filter(|task| all.contains(&task.parent_tgid))
            .map(|task| task.tgid)
            .collect();
        all.extend(children);
    }
    all
}

/// The snapshot events of the living tasks. A recording of the whole machine includes the tasks that the kernel's
/// list lacks.
fn living(tasks: &[wire::Snapshot], scope: &Scope, argv_limit: u32) -> Vec<LifeEvent> {
    let event = |task: &wire::Snapshot| {
        let argv = if task.followed != 0 && task.kthread == 0 && task.tid == task.tgid {
            proc::cmdline(task.seen_tid, argv_limit)
        } else {
            Argv::from_args([""; 0])
        };
        convert::snapshot(task, argv)
    };
    // A thread that is not recorded gets a snapshot only if it is the main thread of its process. The name of any
    // other such thread is stored at the first event that involves both the thread and a recorded task.
    let has_snapshot = |task: &&wire::Snapshot| {
        task.followed != 0 || task.tid == task.tgid || *scope == Scope::All
    };
    let mut living: Vec<LifeEvent> = tasks.iter().filter(has_snapshot).map(event).collect();
    if *scope == Scope::All {
        living.extend(unlisted::unlisted(tasks, argv_limit));
    }
    living
}

/// The approximate number of bytes that the largest sample of a stack takes in its ring.
const SAMPLE: u64 = 5200;

/// The settings of the BPF programs for sampling stacks on this number of CPUs; `None` if no stacks are recorded. The
/// ring has room for the samples of two intervals between drains.
fn sampling(config: &Config, cpus: usize) -> Option<Sampling> {
    let hz = config.facts.stacks.unwrap_or(0);
    let least = config
        .facts
        .off_cpu_stacks
        .map(|least| least.as_nanos().max(1));
    let wait_least = least.map_or(0, |ns| u64::try_from(ns).unwrap_or(u64::MAX));
    if (hz, wait_least) == (0, 0) {
        return None;
    }
    // The ring gets room for 1,000 ends of waits a second on each CPU. Waits of at least 1 ms end less often.
    let most = u64::from(hz) + if wait_least > 0 { 1000 } else { 0 };
    let interval = 2 * DRAIN_EVERY.as_millis() as u64;
    let samples = (most * cpus as u64 * interval).div_ceil(1000);
    let bytes = (samples * SAMPLE)
        .clamp(1 << 18, 1 << 26)
        .next_power_of_two();
    Some(Sampling {
        hz,
        wait_least,
        ring: u32::try_from(bytes).unwrap_or(1 << 26),
    })
}

/// The facts that are recorded by tracepoints which not every kernel has. If the tracepoint is missing, the text
/// reports this to the user.
const BY_TRACEPOINTS: [(Extras, Option<Extra>, &str); 8] = [
    (
        Extras::SWITCH_STATES,
        None,
        "the kind of sleep of a task that another CPU wakes during its switch-out (before Linux 5.18)",
    ),
    (
        Extras::NETWORK,
        Some(Extra::Network),
        "this kernel has no tracepoint inet_sock_set_state",
    ),
    (
        Extras::DNS,
        Some(Extra::Dns),
        "this kernel lacks the tracepoints net_dev_queue and netif_receive_skb",
    ),
    (
        Extras::BLOCK,
        Some(Extra::Block),
        "this kernel lacks the tracepoints block_rq_issue and block_rq_complete",
    ),
    (
        Extras::DISK_WAITS,
        Some(Extra::DiskWaits),
        "this kernel has no tracepoint block_bio_queue",
    ),
    (
        Extras::RECLAIM,
        Some(Extra::Memory),
        "this kernel lacks the tracepoints mm_vmscan_direct_reclaim_begin and _end",
    ),
    (
        Extras::CGROUP_RECLAIM,
        None,
        "reclaim of a cgroup's memory: this kernel lacks the tracepoints \
         mm_vmscan_memcg_reclaim_begin and _end",
    ),
    (
        Extras::OOM_KILLS,
        None,
        "kills for lack of memory: this kernel has no tracepoint mark_victim",
    ),
];

/// The numbers of the optional kinds of facts that these BPF programs record.
fn extras(tracer: &Tracer, config: &Config) -> Vec<u8> {
    let stacks = tracer.has_stacks();
    let requested = [
        (tracer.has_calls(), Extra::SystemCalls),
        (stacks && config.facts.stacks.is_some(), Extra::Stacks),
        (
            stacks && config.facts.off_cpu_stacks.is_some(),
            Extra::OffCpuStacks,
        ),
    ];
    let recorded = (requested.iter())
        .filter(|(recorded, _)| *recorded)
        .map(|(_, extra)| extra);
    BY_TRACEPOINTS
        .iter()
        .filter(|(extras, ..)| tracer.extras().has(*extras))
        .filter_map(|(_, extra, _)| extra.as_ref())
        .chain(recorded)
        .map(|extra| *extra as u8)
        .collect()
}

/// Attaches the BPF programs, either by this process or by the loader.
pub fn attach(loader: Loader, settings: &Settings) -> Result<Attached, Error> {
    if loader == Loader::Sudo {
        return sudo::attach(settings);
    }
    capabilities::raise();
    Ok(Attached {
        tracer: Tracer::start(settings)?,
        sudo: None,
    })
}

/// The number of CPUs for which memory for events is reserved because they may come online during the recording. A
/// virtual machine with 2 CPUs may have 240 possible ones, and memory for all of them would be a gigabyte. On CPUs
/// beyond this number, events are counted as lost.
fn later_cpus(online: usize, possible: usize) -> u32 {
    let later = possible.saturating_sub(online).min(online.max(4));
    u32::try_from(later).unwrap_or(u32::MAX)
}

/// The facts that the attached BPF programs cannot record on this kernel.
pub fn missing(attached: &Attached) -> Vec<Missing> {
    let tracer = &attached.tracer;
    let mut missing = chosen(&[
        (
            !tracer.knows_interrupts(),
            "wake-ups by interrupts are not distinguished from wake-ups by the running task",
        ),
        (
            !tracer.knows_reasons(),
            "the system calls in which tasks wait are unknown",
        ),
    ]);
    let lacking = (BY_TRACEPOINTS.iter()).filter(|(extras, ..)| !tracer.extras().has(*extras));
    missing.extend(lacking.map(|(_, fact, why)| Missing::new(*fact, why)));
    missing.extend(chosen(&[
        (
            cgroups::mount().is_none(),
            "no cgroup v2 hierarchy is mounted: cgroup paths are unknown",
        ),
        (
            tracer.has_stacks() && !tracer.shows_kernel(),
            "the kernel's functions in stacks: the kernel shows their addresses only to root \
             (kernel.kptr_restrict)",
        ),
    ]));
    missing
}

/// Notes for the user about how the BPF programs were attached. Unlike the list of [`missing`], the notes name no facts
/// that the recording lacks.
pub fn notes(attached: &Attached) -> Vec<Missing> {
    chosen(&[
        (
            attached.tracer.is_raw(),
            "the kernel refused tp_btf programs; raw_tp programs were used (they cost more)",
        ),
        (
            attached.tracer.is_helped(),
            "this kernel lists tasks only to the loader, which ran until the end of the recording",
        ),
        (
            attached.sudo.is_some(),
            "runs of the programs that the kernel skipped are not counted: the descriptors of the \
             programs stay with the loader",
        ),
    ])
}

fn chosen(notes: &[(bool, &str)]) -> Vec<Missing> {
    let chosen = notes.iter().filter(|(holds, _)| *holds);
    chosen.map(|(_, why)| Missing::new(None, why)).collect()
}

impl Bpf {
    /// Starts to sample stacks on CPUs that have come online during the recording, or records that these CPUs are not
    /// sampled.
    fn sample_newcomers(&mut self) {
        for cpu in self.tracer.newcomers() {
            if let Err(error) = self.tracer.sample_on(cpu) {
                let what = format!("stacks on CPU {cpu}, which came online later: {error}");
                self.sink
                    .push_own(vec![recorder(host::now(), degraded(what))]);
            }
        }
    }
}

impl Source for Bpf {
    fn ready(&self) -> Option<BorrowedFd<'_>> {
        Some(self.tracer.ready())
    }

    /// Collects the events in the buffers (slots and rings) of the BPF programs. If `room` is not set, the events stay
    /// there.
    fn drain(&mut self, room: bool) {
        if let Some(sudo) = &mut self.sudo {
            sudo.reap();
        }
        if room {
            self.tracer.consume(|record| self.sink.receive(record));
            self.sample_newcomers();
        }
        if let Some(calls) = &mut self.calls {
            self.sink.push_own(calls.drain(&mut self.tracer));
        }
        if let Some(totals) = &mut self.totals {
            totals.each_second(&mut self.tracer, &mut self.sink);
        }
    }

    fn begin(&mut self, start: Ktime) {
        if self.tracer.extras().has(Extras::BLOCK) {
            let mut devices = Devices::new(start);
            // The first reading is dropped, because its sums are those of requests before the recording.
            devices.read(self.tracer.block_devices(), start);
            self.devices = Some(devices);
        }
        if let Some(totals) = &mut self.totals {
            self.sink.push_own(totals.first(&mut self.tracer, start));
        }
        self.waits_before = self.tracer.wait_overflow();
        if self.tracer.has_calls() {
            self.calls = Some(Calls::new(&mut self.tracer, start));
        }
    }

    fn sums(&mut self) -> Vec<LifeEvent> {
        let Some(devices) = &mut self.devices else {
            return Vec::new();
        };
        devices.read(self.tracer.block_devices(), host::now())
    }

    fn resident(&mut self) -> Option<u64> {
        if self.totals.is_some() {
            return None;
        }
        let pages = self.tracer.resident_pages()?;
        Some(pages.saturating_mul(u64::from(host::page_size())))
    }

    fn change_part(&mut self, time: Ktime) -> Option<PartEvents> {
        let totals = self.totals.as_mut()?;
        self.tracer.consume(|record| self.sink.receive(record));
        let mut ended: HashSet<(u32, u64)> = self.sink.ended_before(time).collect();
        let last = totals.last(&mut self.tracer, &mut self.sink, time);
        let mut tasks = self.tracer.snapshot().unwrap_or_default();
        // A task may have ended after `time` and before the tasks were listed. It lived at the beginning of the new
        // part, and its end is an event of that part. So the records of such ends are drained here, to find these
        // tasks.
        self.tracer.consume(|record| self.sink.receive(record));
        ended.extend(self.sink.ended_before(time));
        self.sink.split(time);
        tasks.retain(|task| {
            task.state & wire::TASK_DEAD == 0 && !ended.contains(&(task.tid, task.start_time))
        });
        let listed: HashSet<u32> = tasks.iter().map(|task| task.tid).collect();
        let since = self.sink.ended_since(time);
        tasks.extend(since.filter(|task| !listed.contains(&task.tid)));
        // Tasks that were forked after `time` have the event of their fork in the new part, so they are not listed at
        // its beginning.
        tasks.retain(|task| task.start_time < time.0);
        let mut first = living(&tasks, &self.scope, self.argv_limit);
        for event in &mut first {
            // The event that describes a task has to come before the event with the task's totals of CPU time, which
            // has the time `time`.
            event.time = event.time.min(Ktime(time.0.saturating_sub(1)));
        }
        first.extend(totals.all(time));
        Some(PartEvents {
            last,
            first,
            kernel_ns: Some(self.tracer.usage().in_programs()),
        })
    }

    fn waiting(&self) -> (usize, bool) {
        (self.sink.bytes(), self.sink.urgent())
    }

    fn take(&mut self) -> Box<dyn Drained> {
        Box::new(self.sink.take())
    }

    /// Collects events from the buffers (slots and rings) of the BPF programs until the last event of COMMAND's
    /// process has arrived ([`Sink::root_done`]), at most for the time [`LAST_SWITCH`] or [`LAST_TOTALS`].
    fn drain_command(&mut self) {
        let latest = match self.totals {
            Some(_) => Instant::now() + LAST_TOTALS,
            None => Instant::now() + LAST_SWITCH,
        };
        loop {
            self.drain(true);
            if self.sink.root_done() || Instant::now() >= latest {
                break;
            }
            crate::host::pause(Duration::from_micros(200));
        }
    }

    /// The living processes that are followed, from the kernel's list, because a count from the events would
    /// be wrong after a loss. Servers and their descendants are excluded: they also work for others.
    fn alive(&mut self, command: Option<u32>) -> Vec<Alive> {
        let tasks = self.tracer.snapshot().unwrap_or_default();
        let servers = servers(&tasks);
        tasks
            .iter()
            .filter(|t| t.followed != 0 && t.tid == t.tgid && Some(t.seen_tid) != command)
            .filter(|t| !servers.contains(&t.tgid))
            .map(|task| Alive {
                pid: task.seen_tid,
                comm: Comm::new(&task.comm),
            })
            .collect()
    }

    fn working(&mut self) -> Vec<u32> {
        let tasks = self.tracer.snapshot().unwrap_or_default();
        let processes = tasks.iter().filter(|t| t.followed != 0 && t.tid == t.tgid);
        processes.map(|task| task.seen_tid).collect()
    }

    fn sent_to_both(&self, signal: u32) -> bool {
        self.tracer.sent_to_both(signal)
    }

    fn stop(&mut self, span: (Ktime, Ktime)) -> Last {
        self.tracer.detach();
        self.drain(true);
        let usage = self.tracer.usage();
        let mut losses: Vec<LifeEvent> =
            losses::unreported(&self.tracer, &mut self.sink, &usage, span);
        let missed = self.tracer.overflows(self.waits_before).into_iter();
        for (missed, fact) in missed.filter(|(missed, _)| *missed > 0) {
            let what = format!("{missed} {fact}, for which the programs had no room");
            losses.push(recorder(span.1, degraded(what)));
        }
        if let Some(devices) = &mut self.devices {
            losses.extend(devices.read(self.tracer.block_devices(), span.1));
        }
        if let Some(calls) = &mut self.calls {
            losses.extend(calls.finish(&mut self.tracer, span.1));
        }
        if let Some(totals) = &mut self.totals {
            losses.extend(totals.last(&mut self.tracer, &mut self.sink, span.1));
        }
        Last {
            losses,
            kernel_ns: Some(usage.in_programs()),
            ..Last::default()
        }
    }
}
