//! Loads the programs, attaches them, and hands out their rings.

use std::io::Read;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::ptr;
use std::sync::Mutex;

use libbpf_rs::libbpf_sys::{bpf_prog_get_info_by_fd, bpf_prog_info};
use libbpf_rs::skel::{OpenSkel, SkelBuilder};
use libbpf_rs::{
    Iter, IterOpts, Link, MapCore, MapFlags, OpenObject, PrintLevel, ProgramMut, RingBuffer,
    RingBufferBuilder,
};
use zerocopy::FromBytes;

use crate::slots::{Sched, Shared, Slots};
use crate::{syscalls, wire, Error, Kernel, Refusal};

#[allow(
    missing_docs,
    unused_imports,
    clippy::all,
    clippy::pedantic,
    clippy::restriction
)]
mod skel {
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
    /// Count each attempt to emit an event.
    pub count_emitted: bool,
    /// Ignore the switches of this task, as some guests' kernels do; 0 for none. For tests.
    pub hidden_tid: u32,
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
pub struct Rings<'cb, R> {
    life: RingBuffer<'cb>,
    slots: Slots,
    receiver: R,
}

impl<R: Receive> Rings<'_, R> {
    /// Passes all records to the receiver, the lifecycle records first: they explain the
    /// others.
    pub fn consume(&mut self) {
        // Only the callback has errors, and it returns none.
        let _ = self.life.consume();
        let receiver = &self.receiver;
        self.slots.read(|cpu, sched| match sched {
            Sched::Event(slot) => receiver.receive(Record::Sched(cpu, slot)),
            Sched::Lost(lost) => receiver.receive(Record::Lost(cpu, lost)),
        });
    }

    /// Readable when a ring is half full.
    pub fn ready(&self) -> BorrowedFd<'_> {
        // SAFETY: the epoll descriptor belongs to `self.life` and lives as long.
        unsafe { BorrowedFd::borrow_raw(self.life.epoll_fd()) }
    }
}

impl Settings {
    /// Slots of each CPU.
    fn slots(&self) -> u32 {
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

/// The loaded object; a [`Tracer`] borrows it.
pub struct Storage([MaybeUninit<OpenObject>; 2]);

impl Storage {
    /// Empty.
    pub const fn new() -> Storage {
        Storage([MaybeUninit::uninit(), MaybeUninit::uninit()])
    }
}

impl Default for Storage {
    fn default() -> Storage {
        Storage::new()
    }
}

/// The loaded programs and their maps. The drop detaches and unloads them, and so does the
/// kernel at the end of the process.
pub struct Tracer<'a> {
    skel: TracerSkel<'a>,
    /// The CPUs with slots, in the order of their regions.
    cpus: Vec<u16>,
    /// Slots of each CPU.
    slot_count: u32,
    possible_cpus: usize,
    links: Vec<Link>,
    /// Of the program on signals, which must run as long as COMMAND.
    signals: Option<Link>,
    raw: bool,
}

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
fn failed(action: &'static str) -> impl FnOnce(libbpf_rs::Error) -> Error {
    move |source| match Refusal::find() {
        Some(refusal) => Error::Refused(refusal),
        None => Error::Bpf { action, source },
    }
}

impl<'a> Tracer<'a> {
    /// Opens, sizes and loads the programs: as `tp_btf`, or as `raw_tp` where
    /// that is refused. Nothing is recorded before [`Tracer::attach`].
    ///
    /// # Errors
    /// [`Error::Refused`], [`Error::TooManyCpus`], [`Error::Bpf`].
    pub fn load(
        storage: &'a mut Storage,
        kernel: &Kernel,
        settings: &Settings,
    ) -> Result<Tracer<'a>, Error> {
        if settings.possible_cpus > wire::MAX_CPUS {
            return Err(Error::TooManyCpus {
                found: settings.possible_cpus,
            });
        }
        keep_messages();
        let Storage([first, second]) = storage;
        let (skel, raw) = match open(first, kernel, settings, false)?.load() {
            Ok(skel) => (skel, false),
            Err(refused) => match open(second, kernel, settings, true)?.load() {
                Ok(skel) => (skel, true),
                // The first refusal is the one that matters.
                Err(_) => return Err(failed("load the BPF programs")(refused)),
            },
        };
        let mut tracer = Tracer {
            skel,
            cpus: settings.cpus.clone(),
            slot_count: settings.slots(),
            possible_cpus: settings.possible_cpus,
            links: Vec::new(),
            signals: None,
            raw,
        };
        let (cpus, count) = (tracer.cpus.clone(), tracer.slot_count);
        tracer.write_bss(|bss| {
            for (region, cpu) in (0u32..).zip(cpus) {
                if let Some(account) = bss.sched_account.get_mut(usize::from(cpu)) {
                    account.first = region * count + 1;
                }
            }
        });
        for target in &settings.targets {
            tracer
                .skel
                .maps
                .targets
                .update(&target.to_ne_bytes(), &1u32.to_ne_bytes(), MapFlags::ANY)
                .map_err(failed("set the processes to follow"))?;
        }
        Ok(tracer)
    }

    /// Attaches every program; the recording begins. Lifecycle programs come first: no task
    /// has scheduling events without its fork.
    ///
    /// # Errors
    /// [`Error::Refused`], [`Error::Bpf`].
    pub fn attach(&mut self) -> Result<(), Error> {
        let mut links = Vec::new();
        for program in self.programs() {
            links.push(
                program
                    .attach()
                    .map_err(failed("attach the BPF programs"))?,
            );
        }
        self.signals = links.pop();
        self.links = links;
        Ok(())
    }

    /// Watches the signals to COMMAND and to the recorder, by the host's process ids.
    pub fn watch_signals(&mut self, command: u32, recorder: u32) {
        self.write_bss(|bss| (bss.command_tgid, bss.recorder_tgid) = (command, recorder));
    }

    /// One task has sent the last signal of this number to both the recorder and COMMAND, as
    /// members of one process group.
    pub fn sent_to_both(&self, signal: u32) -> bool {
        let read = |who: usize| {
            let Some(bss) = &self.skel.maps.bss_data else {
                return (0, 0);
            };
            let Some(sent) = bss.sent.get(who).and_then(|s| s.get(signal as usize)) else {
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

    /// The loaded programs in the order of their attachment; the last one is on signals.
    fn programs(&self) -> [&ProgramMut<'a>; 10] {
        let progs = &self.skel.progs;
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
            (&progs.signal_btf, &progs.signal_raw),
        ];
        pairs.map(|(btf, raw)| if self.raw { raw } else { btf })
    }

    /// Detaches the recording programs; the rings keep their records.
    pub fn detach(&mut self) {
        self.links.clear();
    }

    /// Lists all living tasks and follows the targets, their threads and descendants. Reads
    /// again until there is no new one.
    ///
    /// # Errors
    /// [`Error::Bpf`].
    pub fn snapshot(&mut self) -> Result<Vec<wire::Snapshot>, Error> {
        let action = "list the living tasks";
        let link = self
            .skel
            .progs
            .snapshot
            .attach_iter_with_opts(IterOpts::None)
            .map_err(failed(action))?;
        let mut bytes = Vec::new();
        loop {
            self.write_bss(|bss| bss.newly_followed = 0);
            bytes.clear();
            let mut iter = Iter::new(&link).map_err(failed(action))?;
            iter.read_to_end(&mut bytes)
                .map_err(|e| failed(action)(e.into()))?;
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

    /// The reader of the records, which outlives the programs; `receiver` gets every record.
    ///
    /// # Errors
    /// [`Error::Bpf`].
    pub fn rings<'cb, R: Receive + Clone + 'cb>(
        &self,
        receiver: R,
    ) -> Result<Rings<'cb, R>, Error> {
        let action = "map the BPF rings";
        let mut builder = RingBufferBuilder::new();
        let life = receiver.clone();
        builder
            .add(&self.skel.maps.life_ring, move |record| {
                life.receive(Record::Life(record));
                0
            })
            .map_err(failed(action))?;
        let shared = Shared {
            accounts: std::mem::offset_of!(skel::types::bss, sched_account),
            progress: std::mem::offset_of!(skel::types::bss, sched_progress),
            possible_cpus: self.possible_cpus,
        };
        let maps = (&self.skel.maps.slots, &self.skel.maps.bss);
        let slots = Slots::map(maps, shared, self.slot_count, &self.cpus);
        Ok(Rings {
            life: builder.build().map_err(failed(action))?,
            slots: slots.map_err(|error| failed(action)(error.into()))?,
            receiver,
        })
    }

    /// The accounts of all CPUs: scheduling events, lifecycle events. Exact after
    /// [`Tracer::detach`].
    pub fn accounts(&self) -> [Vec<(u16, CpuAccount)>; 2] {
        let read = |life: bool| {
            (0..wire::MAX_CPUS)
                .filter_map(|cpu| {
                    let account = *self.skel.maps.bss_data.as_ref().and_then(|bss| {
                        let accounts = if life {
                            &bss.life_account
                        } else {
                            &bss.sched_account
                        };
                        accounts.get(cpu)
                    })?;
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

    /// Tasks whose ids did not fit into the set of followed tasks.
    pub fn follow_overflow(&self) -> u64 {
        self.read_bss(|bss| &bss.follow_overflow)
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
        for program in self.programs() {
            let mut info = bpf_prog_info::default();
            let mut len = size_of_val(&info) as u32;
            let fd = program.as_fd().as_raw_fd();
            // The call fills `info`, of which it knows the length, and writes
            // through its pointers: those are null, with lengths of 0.
            // SAFETY: both places are ours and valid; `program` keeps the descriptor open.
            let done = unsafe { bpf_prog_get_info_by_fd(fd, &mut info, &mut len) };
            if done == 0 {
                infos.push((program.name().to_string_lossy().into_owned(), info));
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
        self.raw
    }

    /// Reads a field of the memory shared with the programs.
    fn read_bss<T: Copy + Default>(&self, field: impl FnOnce(&skel::types::bss) -> &T) -> T {
        match &self.skel.maps.bss_data {
            // The kernel may write the field at any time, hence volatile; fields are
            // plain integers, for which every bit pattern is valid.
            // SAFETY: the reference is into the mapping of the whole struct, which lives.
            Some(bss) => unsafe { ptr::read_volatile(field(bss)) },
            None => T::default(),
        }
    }

    fn write_bss(&mut self, set: impl FnOnce(&mut skel::types::bss)) {
        if let Some(bss) = &mut self.skel.maps.bss_data {
            set(bss);
        }
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
    for mut program in skel.open_object_mut().progs_mut() {
        let section = program.section().to_string_lossy().into_owned();
        let wanted = !section.starts_with(if raw { "tp_btf/" } else { "raw_tp/" });
        program.set_autoload(wanted);
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
