//! Loads the programs, attaches them, and reads their rings and memory.

use std::ffi::CStr;
use std::io::Read;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::ptr;
use std::sync::Mutex;

use libbpf_rs::libbpf_sys::{bpf_iter_create, bpf_prog_get_info_by_fd, bpf_prog_info};
use libbpf_rs::skel::{OpenSkel, SkelBuilder};
use libbpf_rs::{IterOpts, MapCore, MapFlags, OpenObject, PrintLevel, ProgramMut};
use memmap2::{MmapOptions, MmapRaw};
use zerocopy::FromBytes;

use crate::calls::Calls;
use crate::life::LifeRing;
use crate::samplers::Samplers;
use crate::slots::{Sched, Shared, Slots};
use crate::{syscalls, wire, Error, Extras, Kernel, Refusal};

#[allow(
    missing_docs,
    unused_imports,
    clippy::all,
    clippy::pedantic,
    clippy::restriction
)]
pub(crate) mod skel {
    include!(concat!(env!("OUT_DIR"), "/tracer.skel.rs"));
}

use skel::{OpenTracerSkel, TracerSkel, TracerSkelBuilder};

/// The traced tasks and CPUs, and the memory.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Every task instead of only the followed ones.
    pub all: bool,
    /// The CPUs whose scheduling events are recorded.
    pub cpus: Vec<u16>,
    /// The number of other CPUs that get slots when their first event comes; `None`: the
    /// others are left out.
    pub later_cpus: Option<u32>,
    /// The number of CPU numbers that the kernel may use.
    pub possible_cpus: usize,
    /// Bytes of each CPU's slots: a power of two, at least a page.
    pub sched_ring: u32,
    /// Bytes of the lifecycle ring: a power of two, at least a page.
    pub life_ring: u32,
    /// Longest argv that is copied, in bytes.
    pub argv_limit: u32,
    /// The kernel's largest task id, plus one.
    pub pid_max: u32,
    /// Processes to follow from the start, by their ids in this process's pid namespace.
    pub targets: Vec<u32>,
    /// The cgroup (v2) to follow from the start.
    pub target_cgroup: Option<u64>,
    /// Sum up the system calls of the followed tasks.
    pub syscalls: bool,
    /// Samples of stacks.
    pub stacks: Option<Sampling>,
    /// Count each attempt to emit an event.
    pub count_emitted: bool,
    /// Ignore the switches of this task, as some guests' kernels do; 0 for none. For tests.
    pub hidden_tid: u32,
}

/// Stacks of followed tasks: samples on the CPUs that are online at the start and on those of
/// [`Tracer::sample_on`], and stacks of waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sampling {
    /// Samples a second of each CPU; 0: none.
    pub hz: u32,
    /// The shortest wait whose stack is recorded, in ns; 0: none is.
    pub wait_least: u64,
    /// Bytes of the ring of samples: a power of two, at least a page.
    pub ring: u32,
}

/// A record of the programs.
#[derive(Clone, Copy, Debug)]
pub enum Record<'a> {
    /// A scheduling event of this CPU.
    Sched(u16, wire::Slot),
    /// Lost scheduling events of this CPU.
    Lost(u16, wire::Lost),
    /// A lifecycle record, which begins with a [`wire::Head`].
    Life(&'a [u8]),
}

/// Receives the programs' records.
pub trait Receive {
    /// Receives one record.
    fn receive(&self, record: Record<'_>);
}

/// The reader of the programs' records.
pub struct Rings<R> {
    life: LifeRing,
    samples: Option<LifeRing>,
    slots: Slots,
    receiver: R,
}

impl<R: Receive> Rings<R> {
    /// Passes all records to the receiver, the lifecycle records first: they explain the
    /// others.
    pub fn consume(&mut self) {
        let receiver = &self.receiver;
        self.life
            .consume(|record| receiver.receive(Record::Life(record)));
        // Behind the execs of the programs whose stacks they have.
        if let Some(samples) = &mut self.samples {
            samples.consume(|record| receiver.receive(Record::Life(record)));
        }
        self.slots.read(|cpu, sched| match sched {
            Sched::Event(slot) => receiver.receive(Record::Sched(cpu, slot)),
            Sched::Lost(lost) => receiver.receive(Record::Lost(cpu, lost)),
        });
    }

    /// Readable when a ring is half full.
    pub fn ready(&self) -> BorrowedFd<'_> {
        self.life.ready()
    }

    /// The CPUs that came online later, and have had events since the last call.
    pub fn newcomers(&mut self) -> Vec<u16> {
        self.slots.newcomers()
    }
}

impl Settings {
    /// Slots of each CPU.
    pub(crate) fn slots(&self) -> u32 {
        self.sched_ring / size_of::<wire::Slot>() as u32
    }

    /// The number of CPUs that can have slots.
    pub fn regions(&self) -> u32 {
        let cpus = u32::try_from(self.cpus.len()).unwrap_or(u32::MAX);
        cpus.saturating_add(self.later_cpus.unwrap_or(0))
    }
}

/// The account of a CPU's losses.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CpuAccount {
    /// Lost and not yet reported: count, time of the first and of the last, in ns.
    pub pending: Option<(u64, u64, u64)>,
    /// All lost events.
    pub lost: u64,
    /// Attempts, if they are counted.
    pub emitted: u64,
}

/// The kernel's statistics of the programs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    /// Time in the programs in ns; `None` unless `kernel.bpf_stats_enabled`.
    pub run_time_ns: Option<u64>,
    /// Runs left out because the program was already running on that CPU.
    pub recursion_misses: u64,
}

/// Attached programs, as descriptors: another process can have loaded them. The programs
/// are unloaded when their descriptors and those of their links are closed.
#[derive(Debug)]
pub struct Programs {
    /// The map of [`Slots`].
    slots: OwnedFd,
    /// The map of the programs' global data.
    memory: OwnedFd,
    /// The ring of lifecycle events.
    life: OwnedFd,
    /// The link of the iterator over the tasks.
    tasks: OwnedFd,
    /// The map of [`Calls`], if system calls are recorded.
    calls: Option<OwnedFd>,
    /// The samplers of stacks, if they are recorded.
    samplers: Option<Samplers>,
    /// A link for each program, in the order of [`in_order`].
    links: Vec<OwnedFd>,
    /// The programs, in the same order.
    programs: Vec<OwnedFd>,
    /// The kernel refused `tp_btf` programs; the programs are `raw_tp`.
    raw: bool,
}

/// The reader of attached programs. The drop detaches them, and so does the kernel at the end
/// of the process.
pub struct Tracer {
    programs: Programs,
    calls: Option<Calls>,
    /// The mapped global data of the programs.
    memory: MmapRaw,
    /// The CPUs with slots, in the order of their regions.
    cpus: Vec<u16>,
    /// Slots of each CPU.
    slot_count: u32,
    /// The number of CPUs that can have slots.
    regions: u32,
    /// Bytes of the lifecycle ring.
    life_ring: u32,
    stacks: Option<Sampling>,
    possible_cpus: usize,
    /// Opens an iterator where the kernel refuses this process.
    helper: Option<Helper>,
}

/// Opens an iterator over the tasks in a process that has the right.
pub type Helper = Box<dyn FnMut() -> std::io::Result<OwnedFd>>;

/// The longest time between the two signals of one kill(2) to a process group, in ns: a
/// virtual CPU may be descheduled in between.
const TOGETHER: u64 = 100_000_000;

/// What libbpf and the verifier say, for [`log`].
static LOG: Mutex<String> = Mutex::new(String::new());

fn keep_log(_level: PrintLevel, text: String) {
    if let Ok(mut log) = LOG.lock() {
        log.push_str(&text);
        // The end of a verifier log is the part that says why.
        if log.len() > 8192 {
            let cut = log.len() - 4096;
            let at = log
                .char_indices()
                .map(|(i, _)| i)
                .find(|i| *i >= cut)
                .unwrap_or(0);
            log.drain(..at);
        }
    }
}

/// From now on libbpf's messages are in [`log`], not on standard error.
pub fn keep_messages() {
    libbpf_rs::set_print(Some((PrintLevel::Warn, keep_log)));
}

/// The last lines that libbpf and the kernel's verifier said in this process.
pub fn log() -> String {
    LOG.lock().map(|log| log.clone()).unwrap_or_default()
}

/// Whether it was for lack of rights, the kernel's error number does not tell: the
/// verifier refuses with EACCES, too. So the facts are asked.
pub(crate) fn failed(action: &'static str) -> impl FnOnce(libbpf_rs::Error) -> Error {
    move |source| match Refusal::find() {
        Some(refusal) => Error::Refused(refusal),
        None => Error::Bpf { action, source },
    }
}

/// A descriptor of its own.
pub(crate) fn own(fd: BorrowedFd<'_>) -> Result<OwnedFd, Error> {
    let copy = fd.try_clone_to_owned();
    copy.map_err(|error| failed("copy the descriptors of the BPF programs")(error.into()))
}

impl Programs {
    /// Opens, sizes, loads and attaches the programs: as `tp_btf`, or as `raw_tp` where that
    /// is refused. The recording begins.
    ///
    /// # Errors
    /// [`Error::Refused`], [`Error::TooManyCpus`], [`Error::Bpf`].
    pub fn attach(kernel: &Kernel, settings: &Settings) -> Result<Programs, Error> {
        if settings.possible_cpus > wire::MAX_CPUS {
            return Err(Error::TooManyCpus {
                found: settings.possible_cpus,
            });
        }
        keep_messages();
        let (mut first, mut second) = (MaybeUninit::uninit(), MaybeUninit::uninit());
        let (mut skel, raw) = match open(&mut first, kernel, settings, false)?.load() {
            Ok(skel) => (skel, false),
            Err(refused) => match open(&mut second, kernel, settings, true)?.load() {
                Ok(skel) => (skel, true),
                // The first refusal is the one that matters.
                Err(_) => return Err(failed("load the BPF programs")(refused)),
            },
        };
        if let Some(bss) = &mut skel.maps.bss_data {
            for (region, cpu) in (0u32..).zip(&settings.cpus) {
                if let Some(account) = bss.sched_account.get_mut(usize::from(*cpu)) {
                    account.first = region * settings.slots() + 1;
                }
            }
            bss.extras = kernel.extras.0;
        }
        for target in &settings.targets {
            let (key, value) = (target.to_ne_bytes(), 1u32.to_ne_bytes());
            let updated = skel.maps.targets.update(&key, &value, MapFlags::ANY);
            updated.map_err(failed("set the processes to follow"))?;
        }
        Programs::of(&skel, raw, settings)
    }

    /// Attaches loaded programs. The descriptors outlive the skeleton.
    fn of(skel: &TracerSkel<'_>, raw: bool, settings: &Settings) -> Result<Programs, Error> {
        let (mut links, mut programs) = (Vec::new(), Vec::new());
        for program in in_order(skel, raw) {
            let link = program
                .attach()
                .map_err(failed("attach the BPF programs"))?;
            links.push(own(link.as_fd())?);
            programs.push(own(program.as_fd())?);
        }
        let tasks = skel.progs.snapshot.attach_iter_with_opts(IterOpts::None);
        let tasks = tasks.map_err(failed("list the living tasks"))?;
        Ok(Programs {
            slots: own(skel.maps.slots.as_fd())?,
            memory: own(skel.maps.bss.as_fd())?,
            life: own(skel.maps.life_ring.as_fd())?,
            tasks: own(tasks.as_fd())?,
            samplers: match &settings.stacks.filter(|_| !raw) {
                Some(sampling) => Some(Samplers::start(skel, sampling, &settings.cpus)?),
                None => None,
            },
            calls: match skel.progs.sys_exit_btf.autoload() {
                true => Some(own(skel.maps.call_sums.as_fd())?),
                false => None,
            },
            links,
            programs,
            raw,
        })
    }

    /// The kernel refused `tp_btf` programs; the programs are `raw_tp`.
    pub fn is_raw(&self) -> bool {
        self.raw
    }

    /// The descriptors, in the order that [`Programs::from_descriptors`] takes.
    pub fn descriptors(&self) -> Vec<BorrowedFd<'_>> {
        let single = [&self.slots, &self.memory, &self.life, &self.tasks];
        let samplers = self.samplers.iter().flat_map(Samplers::descriptors);
        let all = single.into_iter().chain(samplers).chain(&self.calls);
        let all = all.chain(&self.links).chain(&self.programs);
        all.map(AsFd::as_fd).collect()
    }

    /// The programs that another process of this version has attached; `None`: another number
    /// of descriptors. `samplers`: of [`Programs::samplers`].
    pub fn from_descriptors(
        descriptors: Vec<OwnedFd>,
        raw: bool,
        samplers: (usize, usize),
    ) -> Option<Programs> {
        let mut rest = descriptors.into_iter();
        let (slots, memory, life, tasks) = (rest.next()?, rest.next()?, rest.next()?, rest.next()?);
        let samplers = match samplers {
            (0, _) => None,
            counts => Some(Samplers::from_descriptors(&mut rest, counts)?),
        };
        let mut links: Vec<OwnedFd> = rest.collect();
        // As many links as programs, and the map of system calls if they are recorded.
        let calls = (links.len() % 2 == 1).then(|| links.remove(0));
        // A kernel can lack tracepoints.
        if !(2 * REQUIRED..=2 * (PROGRAMS + CALLS)).contains(&links.len()) {
            return None;
        }
        let programs = links.split_off(links.len() / 2);
        Some(Programs {
            slots,
            memory,
            life,
            tasks,
            calls,
            samplers,
            links,
            programs,
            raw,
        })
    }

    /// The number of programs on stacks, and of their events and links.
    pub fn samplers(&self) -> (usize, usize) {
        self.samplers.as_ref().map_or((0, 0), Samplers::counts)
    }

    /// Opens an iterator over the tasks.
    ///
    /// # Errors
    /// Before Linux 5.19 EPERM without `CAP_BPF`, if `kernel.unprivileged_bpf_disabled` is set.
    pub fn iterator(&self) -> std::io::Result<OwnedFd> {
        // SAFETY: a system call on an open descriptor; a result that is not negative is a new one.
        unsafe {
            let fd = bpf_iter_create(self.tasks.as_raw_fd());
            if fd < 0 {
                return Err(std::io::Error::from_raw_os_error(-fd));
            }
            Ok(OwnedFd::from_raw_fd(fd))
        }
    }
}

/// The size of the programs' global data in bytes: equal in two processes of one version.
pub const MEMORY: usize = size_of::<skel::types::bss>();

/// The number of programs without the iterator and without those on system calls.
const PROGRAMS: usize = 21;
/// Of these, the ones that every kernel has the tracepoints for.
const REQUIRED: usize = 10;
/// The number of programs on system calls.
const CALLS: usize = 2;

/// The loaded programs, without those whose tracepoint this kernel lacks, in the order of their
/// attachment; the last one is on signals. Lifecycle
/// programs come first: no task has scheduling events without its fork.
fn in_order<'s, 'a>(skel: &'s TracerSkel<'a>, raw: bool) -> Vec<&'s ProgramMut<'a>> {
    let progs = &skel.progs;
    let pairs = [
        (&progs.fork_btf, &progs.fork_raw),
        (&progs.exec_btf, &progs.exec_raw),
        (&progs.exit_btf, &progs.exit_raw),
        (&progs.rename_btf, &progs.rename_raw),
        (&progs.attach_btf, &progs.attach_raw),
        (&progs.mkdir_btf, &progs.mkdir_raw),
        (&progs.wakeup_new_btf, &progs.wakeup_new_raw),
        (&progs.waking_btf, &progs.waking_raw),
        (&progs.switch_btf, &progs.switch_raw),
        (&progs.socket_state_btf, &progs.socket_state_raw),
        // A query that is recorded has its answer recorded.
        (&progs.packet_received_btf, &progs.packet_received_raw),
        (&progs.packet_sent_btf, &progs.packet_sent_raw),
        // A request whose issue is recorded has its completion recorded.
        (&progs.complete_btf, &progs.complete_raw),
        (&progs.issue_btf, &progs.issue_raw),
        (&progs.bio_btf, &progs.bio_raw),
        (&progs.reclaim_btf, &progs.reclaim_raw),
        (&progs.reclaimed_btf, &progs.reclaimed_raw),
        (&progs.memcg_btf, &progs.memcg_raw),
        (&progs.memcg_done_btf, &progs.memcg_done_raw),
        (&progs.victim_btf, &progs.victim_raw),
        (&progs.signal_btf, &progs.signal_raw),
    ];
    let all: [_; PROGRAMS] = pairs.map(|(on_btf, on_raw)| if raw { on_raw } else { on_btf });
    let mut all: Vec<&ProgramMut<'a>> = all.into_iter().filter(|it| it.autoload()).collect();
    let calls: [_; CALLS] = [&progs.sys_exit_btf, &progs.sys_enter_btf];
    for program in calls.into_iter().filter(|it| it.autoload()) {
        all.insert(all.len().saturating_sub(1), program);
    }
    all
}

impl Tracer {
    /// Attaches the programs, and is their reader.
    ///
    /// # Errors
    /// Those of [`Programs::attach`] and [`Tracer::new`].
    pub fn start(kernel: &Kernel, settings: &Settings) -> Result<Tracer, Error> {
        Tracer::new(Programs::attach(kernel, settings)?, settings)
    }

    /// The reader of these programs, which were attached with `settings`.
    ///
    /// # Errors
    /// [`Error::Bpf`]: their memory cannot be mapped.
    pub fn new(programs: Programs, settings: &Settings) -> Result<Tracer, Error> {
        let memory = MmapOptions::new()
            .len(MEMORY)
            .map_raw(programs.memory.as_raw_fd());
        let calls = programs.calls.as_ref().map(|map| Calls::map(map.as_fd()));
        let calls = calls.transpose();
        Ok(Tracer {
            calls: calls.map_err(|error| failed("map the system calls")(error.into()))?,
            memory: memory.map_err(|error| failed("map the programs' memory")(error.into()))?,
            programs,
            cpus: settings.cpus.clone(),
            slot_count: settings.slots(),
            regions: settings.regions(),
            life_ring: settings.life_ring,
            stacks: settings.stacks,
            possible_cpus: settings.possible_cpus,
            helper: None,
        })
    }

    /// Has `helper` open the iterators over the tasks.
    pub fn with_helper(mut self, helper: Option<Helper>) -> Tracer {
        self.helper = helper;
        self
    }

    /// Watches the signals to COMMAND and to the recorder, by the host's process ids.
    pub fn watch_signals(&mut self, command: u32, recorder: u32) {
        let bss = self.bss_mut();
        (bss.command_tgid, bss.recorder_tgid) = (command, recorder);
    }

    /// One task has sent the last signal of this number to both the recorder and COMMAND, as
    /// members of one process group.
    pub fn sent_to_both(&self, signal: u32) -> bool {
        let read = |who: usize| {
            let Some(sent) = self
                .bss()
                .sent
                .get(who)
                .and_then(|s| s.get(signal as usize))
            else {
                return (0, 0);
            };
            // SAFETY: as in `read_bss`.
            unsafe {
                (
                    ptr::read_volatile(&sent.time),
                    ptr::read_volatile(&sent.sender),
                )
            }
        };
        let ((command_time, command_sender), (time, sender)) = (read(0), read(1));
        sender != 0 && sender == command_sender && time.abs_diff(command_time) < TOGETHER
    }

    /// Detaches the recording programs; the rings keep their records. The last one, on
    /// signals, must run as long as COMMAND.
    pub fn detach(&mut self) {
        if let Some(samplers) = &mut self.programs.samplers {
            samplers.stop();
        }
        let recording = self.programs.links.len().saturating_sub(1);
        self.programs.links.drain(..recording);
    }

    /// Lists all living tasks and follows the targets, their threads and descendants. Reads
    /// again until there is no new one.
    ///
    /// # Errors
    /// [`Error::Bpf`].
    pub fn snapshot(&mut self) -> Result<Vec<wire::Snapshot>, Error> {
        let mut bytes;
        loop {
            self.bss_mut().newly_followed = 0;
            let read = self.iterate();
            bytes = read.map_err(|error| failed("list the living tasks")(error.into()))?;
            if self.read_bss(|bss| &bss.newly_followed) == 0 {
                break;
            }
        }
        let size = size_of::<wire::Snapshot>();
        Ok(bytes
            .chunks_exact(size)
            .filter_map(|b| wire::Snapshot::read_from_bytes(b).ok())
            .collect())
    }

    /// The resident pages of the living followed processes together; pages that several share
    /// count for each. `None` if the kernel refuses to list the tasks.
    pub fn resident_pages(&mut self) -> Option<u64> {
        let bss = self.bss_mut();
        (bss.sum_resident, bss.resident) = (1, 0);
        let read = self.iterate();
        self.bss_mut().sum_resident = 0;
        read.ok().map(|_| self.read_bss(|bss| &bss.resident))
    }

    /// Runs the iterator over all tasks; returns what it writes.
    fn iterate(&mut self) -> std::io::Result<Vec<u8>> {
        let iterator = match &mut self.helper {
            Some(helper) => helper(),
            None => self.programs.iterator(),
        };
        let mut bytes = Vec::new();
        std::fs::File::from(iterator?).read_to_end(&mut bytes)?;
        Ok(bytes)
    }

    /// Tasks whose reclaim of memory found no room.
    pub fn reclaim_overflow(&self) -> u64 {
        self.read_bss(|bss| &bss.reclaim_overflow)
    }

    /// Tasks whose requests to disks found no room.
    pub fn submitter_overflow(&self) -> u64 {
        self.read_bss(|bss| &bss.submitter_overflow)
    }

    /// The reader of the records, which outlives the programs; `receiver` gets every record.
    ///
    /// # Errors
    /// [`Error::Bpf`].
    pub fn rings<R: Receive>(&self, receiver: R) -> Result<Rings<R>, Error> {
        let shared = Shared {
            accounts: std::mem::offset_of!(skel::types::bss, sched_account),
            progress: std::mem::offset_of!(skel::types::bss, sched_progress),
            len: MEMORY,
            possible_cpus: self.possible_cpus,
        };
        let maps = (self.programs.slots.as_fd(), self.programs.memory.as_fd());
        let size = (self.slot_count, self.regions);
        let rings = Slots::map(maps, shared, size, &self.cpus).and_then(|slots| {
            let samplers = self.programs.samplers.as_ref();
            let ring = self.stacks.map_or(0, |it| it.ring);
            let samples = samplers.map(|it| LifeRing::map(it.ring(), ring));
            Ok(Rings {
                life: LifeRing::map(self.programs.life.as_fd(), self.life_ring)?,
                samples: samples.transpose()?,
                slots,
                receiver,
            })
        });
        rings.map_err(|error| failed("map the BPF rings")(error.into()))
    }

    /// The accounts of all CPUs: scheduling events, lifecycle events. Exact after
    /// [`Tracer::detach`].
    pub fn accounts(&self) -> [Vec<(u16, CpuAccount)>; 2] {
        let read = |life: bool| {
            (0..wire::MAX_CPUS)
                .filter_map(|cpu| {
                    let bss = self.bss();
                    let account = if life {
                        *bss.life_account.get(cpu)?
                    } else {
                        *bss.sched_account.get(cpu)?
                    };
                    let pending = if life {
                        account.lost_total.saturating_sub(account.lost)
                    } else {
                        account.lost
                    };
                    let pending =
                        (pending > 0).then_some((pending, account.lost_since, account.lost_until));
                    let account = CpuAccount {
                        pending,
                        lost: account.lost_total,
                        emitted: account.emitted,
                    };
                    (account != CpuAccount::default()).then_some((cpu as u16, account))
                })
                .collect()
        };
        [read(false), read(true)]
    }

    /// Stacks are sampled.
    pub fn has_stacks(&self) -> bool {
        self.programs.samplers.is_some()
    }

    /// Samples stacks on one more CPU, if they are sampled.
    ///
    /// # Errors
    /// [`Error::Bpf`]: the kernel refuses the event; a process without root's rights gets none.
    pub fn sample_on(&mut self, cpu: u16) -> Result<(), Error> {
        match (&mut self.programs.samplers, &self.stacks) {
            (Some(samplers), Some(sampling)) => samplers.add(sampling, cpu),
            _ => Ok(()),
        }
    }

    /// Samples of stacks for which there was no room.
    pub fn sample_overflow(&self) -> u64 {
        self.read_bss(|bss| &bss.sample_overflow)
    }

    /// Tasks whose ids did not fit into the set of followed tasks.
    pub fn follow_overflow(&self) -> u64 {
        self.read_bss(|bss| &bss.follow_overflow)
    }

    /// TCP connections and listening ports for which there was no room.
    pub fn connection_overflow(&self) -> u64 {
        self.read_bss(|bss| &bss.connection_overflow)
    }

    /// The facts that are recorded beside the tasks' own.
    pub fn extras(&self) -> Extras {
        Extras(self.read_bss(|bss| &bss.extras))
    }

    /// Requests to block devices for which there was no room.
    pub fn block_overflow(&self) -> u64 {
        self.read_bss(|bss| &bss.block_overflow)
    }

    /// The sums of all block devices that have had a request, by major << 20 | minor.
    pub fn block_devices(&mut self) -> Vec<(u32, wire::BlockDevice)> {
        let devices = (0..wire::BLOCK_DEVICES).filter_map(|place| self.block_device(place));
        devices.collect()
    }

    fn block_device(&mut self, place: usize) -> Option<(u32, wire::BlockDevice)> {
        let bss = self.bss_mut();
        let number = bss.block_numbers.get(place)?;
        let device = bss.block_devices.get_mut(place)?;
        // SAFETY: as in `read_bss`; a test holds both structs to the same layout, and every
        // bit pattern is valid in them.
        unsafe {
            let number = ptr::read_volatile(number);
            let found = ptr::read_volatile(ptr::from_ref(device).cast::<wire::BlockDevice>());
            for sums in &mut device.sums {
                ptr::write_volatile(&mut sums.longest, 0);
            }
            (number != 0).then_some((number, found))
        }
    }

    /// System calls are recorded.
    pub fn has_calls(&self) -> bool {
        self.calls.is_some()
    }

    /// System calls for which there was no room.
    pub fn call_overflow(&self) -> u64 {
        self.read_bss(|bss| &bss.call_overflow)
    }

    /// Has the programs fill the other table of system calls. Some may still write to the first
    /// one for a moment.
    pub fn change_call_table(&mut self) {
        let table = &raw mut self.bss_mut().call_table;
        // SAFETY: the field lives as long as the mapping; the programs only read it.
        unsafe { ptr::write_volatile(table, ptr::read_volatile(table) ^ 1) };
    }

    /// Empties the table that the programs do not fill.
    pub fn take_calls(&self) -> Vec<wire::CallSum> {
        let active = self.read_bss(|bss| &bss.call_table);
        let calls = self.calls.as_ref();
        calls.map_or_else(Vec::new, |calls| calls.take(active))
    }

    /// The kernel's statistics of the programs so far.
    pub fn usage(&self) -> Usage {
        let mut usage = Usage {
            recursion_misses: self.read_bss(|bss| &bss.nested_runs),
            ..Usage::default()
        };
        for (_, info) in self.infos() {
            usage.recursion_misses += info.recursion_misses;
            if info.run_cnt > 0 {
                *usage.run_time_ns.get_or_insert(0) += info.run_time_ns;
            }
        }
        usage
    }

    /// Each program's name, time in ns and number of runs, by `kernel.bpf_stats_enabled`.
    pub fn run_times(&self) -> Vec<(String, u64, u64)> {
        let infos = self.infos();
        infos
            .into_iter()
            .map(|(name, info)| (name, info.run_time_ns, info.run_cnt))
            .collect()
    }

    fn infos(&self) -> Vec<(String, bpf_prog_info)> {
        let mut infos = Vec::new();
        let samplers = self.programs.samplers.iter().flat_map(Samplers::programs);
        let programs = self.programs.programs.iter().map(AsFd::as_fd);
        for program in programs.chain(samplers) {
            let mut info = bpf_prog_info::default();
            let mut len = size_of_val(&info) as u32;
            // The call fills `info`, of which it knows the length, and writes
            // through its pointers: those are null, with lengths of 0.
            // SAFETY: both places are ours and valid, and the descriptor is open.
            let done = unsafe { bpf_prog_get_info_by_fd(program.as_raw_fd(), &mut info, &mut len) };
            if done == 0 {
                // C's characters are signed on x86-64, unsigned on aarch64.
                let name = info.name.map(|c| u8::from_ne_bytes(c.to_ne_bytes()));
                let name = CStr::from_bytes_until_nul(&name).unwrap_or_default();
                infos.push((name.to_string_lossy().into_owned(), info));
            }
        }
        infos
    }

    /// The reasons of waits are known, after [`Tracer::snapshot`].
    pub fn knows_reasons(&self) -> bool {
        self.read_bss(|bss| &bss.regs_offset) != 0
    }

    /// The kernel refused `tp_btf` programs; the programs are `raw_tp`.
    pub fn is_raw(&self) -> bool {
        self.programs.raw
    }

    /// Reads a field of the memory shared with the programs.
    fn read_bss<T: Copy>(&self, field: impl FnOnce(&skel::types::bss) -> &T) -> T {
        // The kernel may write the field at any time, hence volatile; fields are
        // plain integers, for which every bit pattern is valid.
        // SAFETY: the reference is into the mapping of the whole struct, which lives.
        unsafe { ptr::read_volatile(field(self.bss())) }
    }

    /// The memory shared with the programs.
    fn bss(&self) -> &skel::types::bss {
        // SAFETY: mapped as a whole, to a page's boundary; plain integers.
        unsafe { &*self.memory.as_ptr().cast() }
    }

    fn bss_mut(&mut self) -> &mut skel::types::bss {
        // SAFETY: as in `bss`; mapped to read and write, and the other mapping, in the
        // reader of the slots, has atomics alone.
        unsafe { &mut *self.memory.as_mut_ptr().cast() }
    }
}

/// Opens the object and sets everything that must be known before loading.
fn open<'a>(
    storage: &'a mut MaybeUninit<OpenObject>,
    kernel: &Kernel,
    settings: &Settings,
    raw: bool,
) -> Result<OpenTracerSkel<'a>, Error> {
    let action = "open the BPF programs";
    let mut skel = TracerSkelBuilder::default()
        .open(storage)
        .map_err(failed(action))?;
    // Linux 5.11 has the storage of tasks, and tp_btf programs know their types.
    let stacks = settings.stacks.filter(|_| !raw);
    for mut program in skel.open_object_mut().progs_mut() {
        let section = program.section().to_string_lossy().into_owned();
        let wanted = !section.starts_with(if raw { "tp_btf/" } else { "raw_tp/" });
        let tracepoint = section.split_once('/').map_or("", |(_, name)| name);
        let asked = settings.syscalls || !tracepoint.starts_with("sys_");
        let name = program.name().to_string_lossy().into_owned();
        let needs = match name.as_str() {
            "sample" => stacks.is_some_and(|it| it.hz > 0),
            "waits" | "make_room" => stacks.is_some_and(|it| it.wait_least > 0),
            _ => true,
        };
        program.set_autoload(wanted && asked && needs && kernel.has(tracepoint));
    }
    // A tid has 22 bits at most (PID_MAX_LIMIT), and a map no more than 4 MiB a value.
    let followed = settings.pid_max.clamp(1, 1 << 22);
    if let Some(rodata) = &mut skel.maps.rodata_data {
        rodata.switch_prev_arg = kernel.switch_prev;
        rodata.switch_state_arg = kernel.switch_state.unwrap_or(0);
        rodata.exit_has_group_dead = kernel.exit_group_dead;
        rodata.preempt_count_distance = kernel.preempt_count.unwrap_or(0);
        rodata.current_distance = kernel.current.unwrap_or(0);
        rodata.syscall_reasons = syscalls::reasons();
        rodata.hidden_tid = settings.hidden_tid;
        rodata.sample_period = stacks.map_or(0, |it| it.period());
        rodata.sample_half = stacks.map_or(0, |it| u64::from(it.ring / 2));
        rodata.wait_least = stacks.map_or(0, |it| it.wait_least);
        rodata.issue_has_queue = kernel.issue_has_queue;
        rodata.bio_has_queue = kernel.bio_has_queue;
        rodata.victim_is_task = kernel.victim_is_task;
        rodata.follow_all = settings.all;
        rodata.followed_count = followed;
        rodata.slot_count = u64::from(settings.slots());
        rodata.life_half = u64::from(settings.life_ring / 2);
        rodata.argv_limit = settings.argv_limit;
        rodata.target_cgroup = settings.target_cgroup.unwrap_or(0);
        rodata.count_emitted = settings.count_emitted;
        rodata.chosen_cpus = settings.later_cpus.is_none();
    }
    let maps = &mut skel.maps;
    // Linux 5.11 has the map of tasks' storage.
    let calls = settings.syscalls && !raw && kernel.extras.has(Extras::CALLS);
    for map in [&mut maps.call_sums, &mut maps.entered] {
        map.set_autocreate(calls).map_err(failed(action))?;
    }
    maps.sample_ring
        .set_autocreate(stacks.is_some())
        .map_err(failed(action))?;
    maps.waiters
        .set_autocreate(stacks.is_some_and(|it| it.wait_least > 0))
        .map_err(failed(action))?;
    maps.sample_ring
        .set_max_entries(settings.stacks.map_or(4096, |it| it.ring))
        .map_err(failed(action))?;
    maps.life_ring
        .set_max_entries(settings.life_ring)
        .map_err(failed(action))?;
    maps.data_followed
        .set_value_size(followed)
        .map_err(failed(action))?;
    let slots = settings
        .slots()
        .checked_mul(settings.regions())
        .filter(|slots| *slots < u32::MAX)
        .ok_or_else(|| {
            let many = std::io::Error::other("more event slots than a BPF map has entries");
            failed(action)(many.into())
        })?;
    maps.slots
        .set_max_entries(slots.max(1))
        .map_err(failed(action))?;
    Ok(skel)
}
