//! Reads the ring buffers and the shared memory of attached BPF programs.

use std::ffi::CStr;
use std::io::Read;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::ptr;

use libbpf_rs::libbpf_sys::{bpf_prog_get_info_by_fd, bpf_prog_info};
use zerocopy::FromBytes;

use crate::calls::Calls;
use crate::error::{failed, Error};
use crate::kernel::Extras;
use crate::life::LifeRing;
use crate::programs::Programs;
use crate::samplers::Samplers;
use crate::settings::{Sampling, Settings};
use crate::shared::{now, Shared};
use crate::skel::types::bss_output;
use crate::slots::{Record, Slots};
use crate::wire;

/// How many events of a CPU the BPF programs have emitted, and how many of them were lost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CpuAccount {
    /// The lost events of the CPU for which no record has been written yet: their number, and the times of the first
    /// and the last one in ns.
    pub pending: Option<(u64, u64, u64)>,
    /// The number of all events of the CPU that were lost so far.
    pub lost: u64,
    /// The number of all events of the CPU so far, recorded or lost. The number is counted only if
    /// [`Settings::count_emitted`] is set.
    pub emitted: u64,
}

/// The cost of the BPF programs: how long they ran, and how often they could not run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    /// The time spent in the BPF programs in ns, by the kernel's count; `None` unless `kernel.bpf_stats_enabled` is
    /// set and this process has loaded the programs.
    pub run_time_ns: Option<u64>,
    /// The time spent in the BPF programs in ns, estimated: the programs measure the time of one run in every
    /// [`wire::SAMPLED`] runs on each CPU.
    pub sampled_ns: u64,
    /// The number of runs that recorded nothing, because another BPF program was running on the same CPU: those that
    /// the kernel skipped, and those that the programs ended at once.
    pub recursion_misses: u64,
}

impl Usage {
    /// The time spent in the BPF programs in ns: as the kernel counts it or, if the kernel does not count this time, as
    /// the programs estimate it.
    pub fn in_programs(&self) -> u64 {
        self.run_time_ns.unwrap_or(self.sampled_ns)
    }
}

/// The reader of the records of attached BPF programs. Dropping this value detaches the programs, and so does the end
/// of the process.
pub struct Tracer {
    programs: Programs,
    shared: Shared,
    life: LifeRing,
    samples: Option<LifeRing>,
    slots: Slots,
    calls: Option<Calls>,
    stacks: Option<Sampling>,
    /// The function that opens iterators over the machine's tasks, if the kernel does not let this process open them.
    helper: Option<Helper>,
}

/// A function that opens an iterator over the machine's tasks in another process, which has the right to do so.
pub type Helper = Box<dyn FnMut() -> std::io::Result<OwnedFd>>;

/// Two signals from one task, one to COMMAND and one to the recorder, count as one kill(2) to a process group if less
/// than this time in ns lies between them. The limit is high, because a virtual CPU may be descheduled between the two.
const SAME_KILL: u64 = 100_000_000;

impl Tracer {
    /// Attaches the BPF programs and returns their reader.
    ///
    /// # Errors
    /// The errors of [`Programs::start`] and [`Tracer::new`].
    pub fn start(settings: &Settings) -> Result<Tracer, Error> {
        Tracer::new(Programs::start(settings)?, settings)
    }

    /// Begins to read the records of BPF programs that were attached with `settings`.
    ///
    /// # Errors
    /// [`Error::Bpf`] if the memory of the programs cannot be mapped.
    pub fn new(programs: Programs, settings: &Settings) -> Result<Tracer, Error> {
        Tracer::map(programs, settings)
            .map_err(|error| failed("map the programs' memory")(error.into()))
    }

    fn map(programs: Programs, settings: &Settings) -> std::io::Result<Tracer> {
        let samplers = programs.samplers.as_ref();
        let ring = settings.stacks.map_or(0, |sampling| sampling.ring);
        let samples = samplers.map(|samplers| LifeRing::map(samplers.ring(), ring));
        let calls = programs.calls.as_ref().map(|map| Calls::map(map.as_fd()));
        Ok(Tracer {
            shared: Shared::map(programs.output.as_fd(), programs.input.as_fd())?,
            life: LifeRing::map(programs.life.as_fd(), settings.life_ring)?,
            samples: samples.transpose()?,
            slots: Slots::map(programs.slots.as_fd(), settings)?,
            calls: calls.transpose()?,
            programs,
            stacks: settings.stacks,
            helper: None,
        })
    }

    /// Passes all records that the BPF programs have written to `receive`. The lifecycle records come first, because
    /// they explain the other records.
    pub fn consume(&mut self, mut receive: impl FnMut(Record<'_>)) {
        self.life.consume(|record| receive(Record::Life(record)));
        // The stack samples are passed after the lifecycle records, so that the exec of the program to which a stack
        // belongs precedes the stack.
        if let Some(samples) = &mut self.samples {
            samples.consume(|record| receive(Record::Life(record)));
        }
        self.slots.read(&self.shared, receive);
    }

    /// A descriptor that becomes readable when the slots of a CPU or a ring buffer of the BPF programs are half full,
    /// and when a CPU without slots has its first event.
    pub fn ready(&self) -> BorrowedFd<'_> {
        self.programs.life.as_fd()
    }

    /// The CPUs that came online after the start and have got slots for their events since the last call.
    pub fn newcomers(&mut self) -> Vec<u16> {
        self.slots.newcomers()
    }

    /// Lets `helper` open the iterators over the machine's tasks for this reader.
    pub fn with_helper(mut self, helper: Option<Helper>) -> Tracer {
        self.helper = helper;
        self
    }

    /// Makes the BPF programs watch the signals to the processes of COMMAND and of the recorder. The arguments are
    /// their process ids in the first pid namespace.
    pub fn watch_signals(&mut self, command: u32, recorder: u32) {
        let input = self.shared.input();
        (input.command_tgid, input.recorder_tgid) = (command, recorder);
    }

    /// Whether one task sent the last signal with this number to both the recorder and COMMAND, as a kill(2) to their
    /// common process group does.
    pub fn sent_to_both(&self, signal: u32) -> bool {
        let read = |who: usize| {
            let sent = self.shared.output().sent.get(who);
            let last = sent.and_then(|signals| signals.get(signal as usize));
            last.map_or((0, 0), |last| (now(&last.time), now(&last.sender)))
        };
        let ((command_time, command_sender), (time, sender)) = (read(0), read(1));
        time != 0 && sender == command_sender && time.abs_diff(command_time) < SAME_KILL
    }

    /// Detaches all BPF programs except the one on signals, which must run as long as COMMAND. The ring buffers keep
    /// their records.
    pub fn detach(&mut self) {
        if let Some(samplers) = &mut self.programs.samplers {
            samplers.stop();
        }
        let recording = self.programs.links.len().saturating_sub(1);
        self.programs.links.drain(..recording);
    }

    /// Lists all living tasks of the machine. The function also begins to record the targets of the recording, their
    /// threads and their descendants, and makes the list again until it finds no new task.
    ///
    /// # Errors
    /// [`Error::Bpf`].
    pub fn snapshot(&mut self) -> Result<Vec<wire::Snapshot>, Error> {
        let mut bytes;
        loop {
            let before = self.read(|output| &output.newly_followed);
            let read = self.iterate();
            bytes = read.map_err(|error| failed("list the living tasks")(error.into()))?;
            if self.read(|output| &output.newly_followed) == before {
                break;
            }
        }
        let size = size_of::<wire::Snapshot>();
        Ok(bytes
            .chunks_exact(size)
            .filter_map(|b| wire::Snapshot::read_from_bytes(b).ok())
            .collect())
    }

    /// The sum of the resident pages of all recorded processes that are alive. A page that several processes share is
    /// counted for each of them. `None` if the kernel refuses to list the tasks.
    pub fn resident_pages(&mut self) -> Option<u64> {
        let before = self.read(|output| &output.resident);
        self.shared.input().sum_resident = 1;
        let read = self.iterate();
        self.shared.input().sum_resident = 0;
        read.ok()
            .map(|_| self.read(|output| &output.resident).wrapping_sub(before))
    }

    /// The total run time and run-queue time of each recorded task that is alive or a zombie; empty if the kernel
    /// refuses to list the tasks.
    pub fn totals(&mut self) -> Vec<wire::Total> {
        self.shared.input().write_totals = 1;
        let read = self.iterate();
        self.shared.input().write_totals = 0;
        let read = read.unwrap_or_default();
        let records = read.chunks_exact(size_of::<wire::Total>());
        records
            .filter_map(|record| wire::Total::read_from_bytes(record).ok())
            .collect()
    }

    /// Runs the iterator over all tasks of the machine and returns the bytes that its BPF program writes.
    fn iterate(&mut self) -> std::io::Result<Vec<u8>> {
        let iterator = match &mut self.helper {
            Some(helper) => helper(),
            None => self.programs.iterator(),
        };
        // Each read of the iterator returns at most 32 KiB, so that a buffer of twice that size rarely has to grow.
        let mut bytes = Vec::with_capacity(64 << 10);
        std::fs::File::from(iterator?).read_to_end(&mut bytes)?;
        Ok(bytes)
    }

    /// How often each table of the BPF programs was full since the programs were attached, and what was lost then.
    /// `waits` is how often the table of stacks of waits was full before the recording began, and is subtracted from
    /// the number for that table.
    pub fn overflows(&self, waits: u64) -> [(u64, &'static str); 8] {
        [
            (
                self.read(|output| &output.connection_overflow),
                "TCP connections",
            ),
            (
                self.read(|output| &output.block_overflow),
                "requests to block devices",
            ),
            (self.call_overflow(), "system calls"),
            (
                self.read(|output| &output.sample_overflow),
                "samples of stacks",
            ),
            (
                self.wait_overflow().saturating_sub(waits),
                "stacks of waits, some of them shorter than those recorded",
            ),
            (
                self.read(|output| &output.submitter_overflow),
                "tasks that sent requests to disks",
            ),
            (
                self.read(|output| &output.server_overflow),
                "threads of servers, which are not recorded",
            ),
            (
                self.read(|output| &output.reclaim_overflow),
                "times that tasks reclaimed memory",
            ),
        ]
    }

    /// The numbers of lost and emitted events of each CPU that has any: the first list is about scheduling events,
    /// the second about lifecycle events. The numbers are exact after [`Tracer::detach`].
    pub fn accounts(&self) -> [Vec<(u16, CpuAccount)>; 2] {
        let read = |life: bool| {
            (0..wire::MAX_CPUS)
                .filter_map(|cpu| {
                    let output = self.shared.output();
                    let account = if life {
                        *output.life_account.get(cpu)?
                    } else {
                        *output.sched_account.get(cpu)?
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

    pub fn has_stacks(&self) -> bool {
        self.programs.samplers.is_some()
    }

    /// Starts to sample stacks on one more CPU, if stacks are sampled.
    ///
    /// # Errors
    /// [`Error::Bpf`] if the kernel refuses the event, as it does for a process without root's rights, or if another
    /// process has loaded the programs.
    pub fn sample_on(&mut self, cpu: u16) -> Result<(), Error> {
        match (&mut self.programs.samplers, &self.stacks) {
            (Some(samplers), Some(sampling)) => samplers.add(sampling, cpu),
            _ => Ok(()),
        }
    }

    /// The number of waits whose stacks the BPF programs could not store, because their table was full, since the
    /// programs were attached. Short waits are included, although their stacks would not have been recorded: how long a
    /// wait becomes is not known at its beginning.
    pub fn wait_overflow(&self) -> u64 {
        self.read(|output| &output.wait_overflow)
    }

    /// The number of tasks that could not be recorded (followed). Either the task's id did not fit into the set of
    /// followed tasks, or the task's process has too many threads.
    pub fn follow_overflow(&self) -> u64 {
        self.read(|output| &output.follow_overflow)
    }

    /// The kinds of optional facts that this recording has, for which not every kernel has tracepoints.
    pub fn extras(&self) -> Extras {
        Extras(self.read(|output| &output.extras))
    }

    /// The sums over the requests of each block device that has had a request, with the device's number (major << 20
    /// | minor). The longest request of each group is the longest one since the previous call of this function.
    pub fn block_devices(&mut self) -> Vec<(u32, wire::BlockDevice)> {
        let interval = self.shared.input().block_interval;
        let mut devices: Vec<_> = (0..wire::BLOCK_DEVICES)
            .filter_map(|place| self.block_device(place))
            .collect();
        for sums in devices.iter_mut().flat_map(|(_, device)| &mut device.sums) {
            if sums.interval != interval {
                sums.longest = 0;
            }
        }
        let next = &raw mut self.shared.input().block_interval;
        // SAFETY: the field lives as long as the mapping, and the programs only read it.
        unsafe { ptr::write_volatile(next, interval.wrapping_add(1)) };
        devices
    }

    fn block_device(&self, place: usize) -> Option<(u32, wire::BlockDevice)> {
        let output = self.shared.output();
        let number = now(output.block_numbers.get(place)?);
        let device = ptr::from_ref(output.block_devices.get(place)?);
        // SAFETY: a test verifies that both structs have the same layout, and every bit pattern is valid in them.
        let found = now(unsafe { &*device.cast::<wire::BlockDevice>() });
        (number != 0).then_some((number, found))
    }

    /// Whether the BPF programs sum up system calls in this recording.
    pub fn has_calls(&self) -> bool {
        self.calls.is_some()
    }

    /// The number of system calls that the BPF programs could not sum up, because their table had no room.
    pub fn call_overflow(&self) -> u64 {
        self.read(|output| &output.call_overflow)
    }

    /// Makes the BPF programs fill the other one of their two tables of system calls. Some programs may still write to
    /// the first table for a moment.
    pub fn change_call_table(&mut self) {
        let table = &raw mut self.shared.input().call_table;
        // SAFETY: the field lives as long as the mapping, and the programs only read it.
        unsafe { ptr::write_volatile(table, ptr::read_volatile(table) ^ 1) };
    }

    /// Empties the table of system calls that the BPF programs do not fill now, and returns its sums.
    pub fn take_calls(&mut self) -> Vec<wire::CallSum> {
        let active = self.shared.input().call_table;
        let calls = self.calls.as_ref();
        calls.map_or_else(Vec::new, |calls| calls.take(active))
    }

    /// The cost of the BPF programs so far: how long they ran, and how often they could not run.
    pub fn usage(&self) -> Usage {
        let mut usage = Usage {
            recursion_misses: self.read(|output| &output.nested_runs),
            sampled_ns: self
                .read(|output| &output.sampled_time)
                .saturating_mul(wire::SAMPLED),
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

    /// The name, run time in ns and number of runs of each BPF program. The kernel counts times and runs only if
    /// `kernel.bpf_stats_enabled` is set.
    pub fn run_times(&self) -> Vec<(String, u64, u64)> {
        let infos = self.infos();
        infos
            .into_iter()
            .map(|(name, info)| (name, info.run_time_ns, info.run_cnt))
            .collect()
    }

    /// The name of each BPF program, and the number of instructions that the kernel's verifier followed to load it (0
    /// before Linux 5.16). Most of the time of a start is spent in the verifier.
    pub fn verified(&self) -> Vec<(String, u32)> {
        let infos = self.infos().into_iter();
        infos
            .map(|(name, info)| (name, info.verified_insns))
            .collect()
    }

    fn infos(&self) -> Vec<(String, bpf_prog_info)> {
        let mut infos = Vec::new();
        let samplers = self.programs.samplers.iter().flat_map(Samplers::programs);
        let programs = self.programs.programs.iter().map(AsFd::as_fd);
        for program in programs.chain(samplers) {
            let mut info = bpf_prog_info::default();
            let mut len = size_of_val(&info) as u32;
            // SAFETY: the descriptor is open. The call fills `info`, whose length is passed. It would also write
            // through the pointers in `info`, but these are null, with lengths of 0.
            let done = unsafe { bpf_prog_get_info_by_fd(program.as_raw_fd(), &mut info, &mut len) };
            if done == 0 {
                // The C type of a character is signed on x86-64 and unsigned on aarch64, so the bytes are copied as
                // they are.
                let bytes = info.name.map(|c| u8::from_ne_bytes(c.to_ne_bytes()));
                let name = CStr::from_bytes_until_nul(&bytes).unwrap_or_default();
                infos.push((name.to_string_lossy().into_owned(), info));
            }
        }
        infos
    }

    /// Whether the BPF programs can find out for what recorded tasks wait. The answer is valid after
    /// [`Tracer::snapshot`].
    pub fn knows_reasons(&self) -> bool {
        self.read(|output| &output.regs_known) != 0
    }

    /// Whether recorded stacks contain kernel addresses. The BPF programs leave these addresses out if the kernel hides
    /// them from the process that loads the programs. The user of that process can read the trace, which must not
    /// reveal hidden addresses.
    pub fn shows_kernel(&self) -> bool {
        self.programs.kernel_shown
    }

    /// Whether the recording distinguishes wake-ups by interrupts from wake-ups by the running task.
    pub fn knows_interrupts(&self) -> bool {
        self.programs.irq_known
    }

    /// Whether another process opens the iterators over the machine's tasks for this reader.
    pub fn is_helped(&self) -> bool {
        self.helper.is_some()
    }

    /// Whether all BPF programs are of the kind `raw_tp` (raw tracepoint), because the kernel refused programs of the
    /// kind `tp_btf` (tracepoint with type information).
    pub fn is_raw(&self) -> bool {
        self.programs.raw
    }

    fn read<T: Copy>(&self, field: impl FnOnce(&bss_output) -> &T) -> T {
        now(field(self.shared.output()))
    }
}
