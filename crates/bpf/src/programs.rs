//! Opens the compiled object of the BPF programs, sizes its maps, and loads and attaches the programs.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, BufRead, BufReader};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::thread;

use libbpf_rs::libbpf_sys::{bpf_iter_create, bpf_map_create_opts, bpf_map_freeze, BPF_F_MMAPABLE};
use libbpf_rs::skel::{OpenSkel, SkelBuilder};
use libbpf_rs::{MapCore, MapFlags, MapHandle, MapType, OpenObject};

use crate::error::{failed, missing, own, Error};
use crate::kernel::{place, Extras, Kernel, Recordings, TRACEPOINTS};
use crate::load::{self, opened, LoadedProgram, LoadedPrograms, MemoryFile};
use crate::messages::keep_messages;
use crate::samplers::Samplers;
use crate::settings::{Containers, Sampling, Settings};
use crate::skel::{with_object, OpenTracerSkel, TracerSkel, TracerSkelBuilder};
use crate::{names, syscalls, wire};

/// The descriptors of attached BPF programs and of their maps. Another process can have loaded the programs. The
/// kernel unloads a program when all processes have closed their descriptors of it and of its link or perf event.
#[derive(Debug)]
pub struct Programs {
    /// The descriptor of the map with the slots into which the BPF programs write scheduling events
    /// ([`crate::slots::Slots`]).
    pub(crate) slots: OwnedFd,
    /// The descriptor of the map of those variables that the BPF programs write and user space can only read.
    pub(crate) output: OwnedFd,
    /// The descriptor of the map of those variables that user space writes and the BPF programs read.
    pub(crate) input: OwnedFd,
    /// The descriptor of the ring buffer for lifecycle events.
    pub(crate) life: OwnedFd,
    /// The descriptor of the link of the iterator over the machine's tasks.
    tasks: OwnedFd,
    /// The descriptor of the map with the sums of system calls ([`crate::calls::Calls`]), if they are recorded.
    pub(crate) calls: Option<OwnedFd>,
    /// The descriptors of the BPF programs, links and perf events that record stacks, if stacks are recorded.
    pub(crate) samplers: Option<Samplers>,
    /// The descriptors of the links that attach each BPF program to its tracepoint, in the order of [`TRACEPOINTS`].
    pub(crate) links: Vec<OwnedFd>,
    /// The descriptors of the BPF programs, in the order of [`TRACEPOINTS`]; empty if another process has loaded
    /// them.
    pub(crate) programs: Vec<OwnedFd>,
    /// Whether all BPF programs are of the kind `raw_tp` (raw tracepoint), because the kernel refused programs of the
    /// kind `tp_btf` (tracepoint with type information).
    pub(crate) raw: bool,
    /// Whether recorded call stacks contain kernel addresses.
    pub(crate) kernel_shown: bool,
    /// Whether recorded wake-ups show whether an interrupt caused them.
    pub(crate) irq_known: bool,
}

/// Properties of attached BPF programs that can differ between recordings. A process that takes over the programs'
/// descriptors ([`Programs`]) needs to know them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Parts {
    /// Whether all attached BPF programs are of the kind `raw_tp` (raw tracepoint).
    pub raw: bool,
    /// Whether recorded call stacks contain kernel addresses, see [`crate::Tracer::shows_kernel`].
    pub kernel_shown: bool,
    /// Whether recorded wake-ups show whether an interrupt caused them.
    pub irq_known: bool,
    /// The number of perf events and links that call the BPF programs that record stacks (samples and waits); `None`
    /// if stacks are not recorded.
    pub callers: Option<usize>,
    /// Whether the BPF programs sum up the number and the duration of system calls.
    pub calls: bool,
}

/// The large maps of the BPF programs. Another thread creates them early, because the kernel needs 0.6 ms to clear a
/// MiB.
struct Large {
    slots: MapHandle,
    life: MapHandle,
    followed: MapHandle,
}

impl Large {
    fn create(settings: &Settings) -> libbpf_rs::Result<Large> {
        let slots = settings
            .slots()
            .checked_mul(settings.regions())
            .filter(|slots| *slots < u32::MAX)
            .ok_or_else(|| io::Error::other("more event slots than a BPF map has entries"))?;
        let map = |kind, name, [key, value, entries]: [u32; 3], map_flags| {
            let options = bpf_map_create_opts {
                sz: size_of::<bpf_map_create_opts>() as _,
                map_flags,
                ..Default::default()
            };
            MapHandle::create(kind, Some(name), key, value, entries, &options)
        };
        let slot = size_of::<wire::Slot>() as u32;
        let slots = [4, slot, slots.max(1)];
        Ok(Large {
            slots: map(MapType::Array, "slots", slots, BPF_F_MMAPABLE)?,
            life: map(MapType::RingBuf, "life_ring", [0, 0, settings.life_ring], 0)?,
            // This map is created here, because libbpf would copy 4 MiB of zeros into it.
            followed: map(MapType::Array, "followed", [4, settings.followed(), 1], 0)?,
        })
    }
}

impl Programs {
    /// Reads the kernel's features, and opens, sizes, loads and attaches the BPF programs, which begin to run. The
    /// programs on switches and wakings are of the kind `tp_btf`. If they cannot be loaded or attached, all are
    /// loaded and attached again, with these programs of the kind `raw_tp`.
    ///
    /// # Errors
    /// The errors of [`Kernel::detect`]; [`Error::Refused`], [`Error::TooManyCpus`], [`Error::Bpf`].
    pub fn start(settings: &Settings) -> Result<Programs, Error> {
        if settings.possible_cpus > wire::MAX_CPUS {
            return Err(Error::TooManyCpus {
                found: settings.possible_cpus,
            });
        }
        keep_messages();
        // This thread reads the kernel's features while another one creates the maps.
        let (kernel, created) = thread::scope(|scope| {
            let creator = thread::Builder::new().spawn_scoped(scope, || Large::create(settings));
            let kernel = Kernel::detect();
            (kernel, creator.ok().and_then(|thread| thread.join().ok()))
        });
        let kernel = kernel?;
        let kernel_shown = settings.stacks.is_some() && kernel_shown().unwrap_or(false);
        let large = created
            .unwrap_or_else(|| Large::create(settings))
            .map_err(failed("create the maps of the BPF programs"))?;
        let attach = |raw, large: &Large| {
            let plan = Plan {
                kernel: &kernel,
                settings,
                large,
                raw,
                kernel_shown,
            };
            plan.attach()
        };
        attach(false, &large).or_else(|refused| {
            // The maps of the first attempt are not used again: BPF programs that were attached in it may have
            // written to the maps.
            let large = Large::create(settings).ok();
            let programs = large.and_then(|large| attach(true, &large).ok());
            // If both attempts to attach fail, the error of the first one is returned, because it has the actual
            // reason.
            programs.ok_or(refused)
        })
    }
}

/// The facts that are needed to open, size, load and attach the BPF programs on this kernel.
#[derive(Clone, Copy)]
struct Plan<'a> {
    kernel: &'a Kernel,
    settings: &'a Settings,
    large: &'a Large,
    raw: bool,
    kernel_shown: bool,
}

impl Plan<'_> {
    fn attach(self) -> Result<Programs, Error> {
        let (kernel, settings) = (self.kernel, self.settings);
        let (mut storage, action) = (MaybeUninit::uninit(), "load the BPF programs");
        let types = MemoryFile::new(&kernel.types).map_err(|error| failed(action)(error.into()))?;
        let path = types.path();
        let mut open_skel = self.open(&mut storage, &path)?;
        let loaded = load::load(open_skel.open_object_mut(), &kernel.targets, kernel.cast)
            .map_err(|error| failed(action)(error.into()))?;
        let mut skel = open_skel.load().map_err(failed(action))?;
        if let Some(input) = &mut skel.maps.bss_input_data {
            for (region, cpu) in (0u32..).zip(&settings.cpus) {
                if let Some(progress) = input.sched_progress.get_mut(usize::from(*cpu)) {
                    progress.first = u64::from(region * settings.slots() + 1);
                }
            }
        }
        if let Some(output) = &mut skel.maps.bss_output_data {
            output.extras = if settings.light { 0 } else { kernel.extras.0 };
        }
        for target in &settings.targets {
            let (key, value) = (target.to_ne_bytes(), 1u32.to_ne_bytes());
            let updated = skel.maps.targets.update(&key, &value, MapFlags::ANY);
            updated.map_err(failed("set the processes to follow"))?;
        }
        let (count, keys, values) = names::all();
        let any = MapFlags::ANY;
        let updated = skel
            .maps
            .names
            .update_batch(&keys, &values, count, any, any);
        updated.map_err(failed("set the names of daemons and servers"))?;
        let programs = self.programs(&skel, &loaded)?;
        // libbpf has mapped the map of the programs' output variables for writing, and the kernel freezes no map that
        // is mapped in this way. Dropping the skeleton removes the mapping.
        drop(skel);
        // SAFETY: this is a system call on an open descriptor.
        match unsafe { bpf_map_freeze(programs.output.as_raw_fd()) } {
            0 => Ok(programs),
            error => Err(failed("freeze the programs' memory")(
                io::Error::from_raw_os_error(-error).into(),
            )),
        }
    }

    /// Attaches the loaded BPF programs to their tracepoints. Returns descriptors that outlive libbpf's skeleton of
    /// the programs.
    fn programs(self, skel: &TracerSkel<'_>, loaded: &LoadedPrograms) -> Result<Programs, Error> {
        let attach = |program: &LoadedProgram| {
            let link = program.attach();
            link.map_err(|error| failed("attach the BPF programs")(error.into()))
        };
        let (mut links, mut programs) = (Vec::new(), Vec::new());
        let in_order: BTreeMap<_, _> = loaded
            .iter()
            .filter_map(|(name, program)| Some((turn(name, program)?, program)))
            .collect();
        for program in in_order.into_values() {
            links.push(attach(program)?);
            programs.push(own(program.fd())?);
        }
        let Some(tasks) = loaded.get("snapshot") else {
            return Err(failed("list the living tasks")(missing()));
        };
        Ok(Programs {
            slots: own(skel.maps.slots.as_fd())?,
            output: own(skel.maps.bss_output.as_fd())?,
            input: own(skel.maps.bss_input.as_fd())?,
            life: own(skel.maps.life_ring.as_fd())?,
            tasks: attach(tasks)?,
            samplers: match &self.stacks() {
                Some(sampling) => {
                    let cpus = &self.settings.cpus;
                    Some(Samplers::start(skel, loaded, sampling, cpus)?)
                }
                None => None,
            },
            calls: if loaded.contains_key("sys_exit_btf") {
                Some(own(skel.maps.call_sums.as_fd())?)
            } else {
                None
            },
            links,
            programs,
            raw: self.raw,
            kernel_shown: self.kernel_shown,
            irq_known: self.kernel.knows_interrupts(),
        })
    }

    /// The settings for sampled stacks; `None` if stacks are not recorded. Stacks need programs of the kind `tp_btf`,
    /// because only these programs can use the storage that belongs to a task (since Linux 5.11).
    fn stacks(self) -> Option<Sampling> {
        self.settings.stacks.filter(|_| !self.raw)
    }
}

impl Programs {
    /// The descriptors of attached BPF programs that another process needs to read their records, in the order that
    /// [`Programs::from_descriptors`] takes. The descriptors of the programs themselves are not included: any process
    /// that has one can attach the program again, even to another tracepoint, whose arguments the program would use
    /// as addresses.
    pub fn descriptors(&self) -> Vec<BorrowedFd<'_>> {
        let single = [
            &self.slots,
            &self.output,
            &self.input,
            &self.life,
            &self.tasks,
        ];
        let samplers = self.samplers.iter().flat_map(Samplers::descriptors);
        let all = single.into_iter().chain(samplers).chain(&self.calls);
        all.chain(&self.links).map(AsFd::as_fd).collect()
    }

    /// Takes over the BPF programs that another process of this version has attached, by their descriptors. Returns
    /// `None` if the number of descriptors does not fit `parts`.
    pub fn from_descriptors(descriptors: Vec<OwnedFd>, parts: Parts) -> Option<Programs> {
        let mut rest = descriptors.into_iter();
        let (slots, output, input) = (rest.next()?, rest.next()?, rest.next()?);
        let (life, tasks) = (rest.next()?, rest.next()?);
        let samplers = match parts.callers {
            None => None,
            Some(callers) => Some(Samplers::from_descriptors(&mut rest, callers)?),
        };
        let calls = if parts.calls {
            Some(rest.next()?)
        } else {
            None
        };
        let links: Vec<OwnedFd> = rest.collect();
        // The number of links (attached tracepoints) varies, because a kernel can lack some tracepoints. A recording
        // without scheduling events (light) has the fewest links.
        let fewest = TRACEPOINTS
            .iter()
            .filter(|tracepoint| tracepoint.recordings != Recordings::Full)
            .count();
        if !(fewest..=TRACEPOINTS.len()).contains(&links.len()) {
            return None;
        }
        Some(Programs {
            slots,
            output,
            input,
            life,
            tasks,
            calls,
            samplers,
            links,
            programs: Vec::new(),
            raw: parts.raw,
            kernel_shown: parts.kernel_shown,
            irq_known: parts.irq_known,
        })
    }

    /// The properties of these attached BPF programs, which [`Programs::from_descriptors`] needs to take their
    /// descriptors.
    pub fn parts(&self) -> Parts {
        Parts {
            raw: self.raw,
            kernel_shown: self.kernel_shown,
            irq_known: self.irq_known,
            callers: self.samplers.as_ref().map(Samplers::callers),
            calls: self.calls.is_some(),
        }
    }

    /// Opens an iterator over the machine's tasks.
    ///
    /// # Errors
    /// Before Linux 5.19 EPERM without `CAP_BPF`, if `kernel.unprivileged_bpf_disabled` is set.
    pub fn iterator(&self) -> io::Result<OwnedFd> {
        // SAFETY: `self` keeps the link's descriptor open. The call opens a descriptor of the iterator, or fails.
        unsafe { opened(bpf_iter_create(self.tasks.as_raw_fd())) }
    }
}

/// The tracepoints for which there are two BPF programs, one of the kind `tp_btf` (tracepoint with type information)
/// and one of the kind `raw_tp` (raw tracepoint).
const TYPED_TRACEPOINTS: [&str; 2] = ["sched_waking", "sched_switch"];

/// The index of a BPF program's tracepoint in [`TRACEPOINTS`]; `None` for a program that [`Samplers`] attaches, and
/// for an iterator's.
fn turn(name: &str, program: &LoadedProgram) -> Option<usize> {
    let is_ours = name.ends_with("_raw") || name.ends_with("_btf");
    place(program.tracepoint()).filter(|_| is_ours)
}

/// Whether the kernel shows this process the addresses of its functions (kernel.kptr_restrict in proc_sys_kernel(5)).
/// `None` if /proc/kallsyms lists no function.
fn kernel_shown() -> Option<bool> {
    let lines = BufReader::new(File::open("/proc/kallsyms").ok()?).lines();
    let address = lines.map_while(Result::ok).find_map(|line| {
        let (address, rest) = line.split_once(' ')?;
        rest.starts_with(['t', 'T']).then(|| address.to_owned())
    });
    address.map(|address| address.bytes().any(|digit| digit != b'0'))
}

impl Plan<'_> {
    /// Opens the compiled object of the BPF programs, and sets everything that has to be set before the programs are
    /// loaded. `types` is the path of the file from which libbpf reads the kernel's types.
    fn open<'a>(
        self,
        storage: &'a mut MaybeUninit<OpenObject>,
        types: &str,
    ) -> Result<OpenTracerSkel<'a>, Error> {
        let action = "open the BPF programs";
        let mut builder = TracerSkelBuilder::default();
        let options = builder.object_builder_mut().btf_custom_path(types);
        options.map_err(failed(action))?;
        let opened = with_object(self.is_usual(), || builder.open(storage));
        let mut skel = opened.map_err(failed(action))?;
        for mut program in skel.open_object_mut().progs_mut() {
            let name = program.name().to_string_lossy().into_owned();
            let section = program.section().to_string_lossy().into_owned();
            program.set_autoload(self.uses(&name, &section));
        }
        self.set_constants(&mut skel);
        self.size_maps(&mut skel).map_err(failed(action))?;
        Ok(skel)
    }

    /// Whether the settings have the values for which the usual object of the BPF programs was compiled (`OPTION` in
    /// `settings.bpf.h`), so that this object can be used.
    fn is_usual(self) -> bool {
        let (kernel, settings) = (self.kernel, self.settings);
        let present = kernel.cast.is_some()
            && (kernel.switch_prev, kernel.switch_state) == (1, Some(3))
            && !kernel.issue_has_queue
            && !kernel.bio_has_queue;
        let chosen = settings.all
            || settings.light
            || settings.target_cgroup.is_some()
            || settings.later_cpus.is_none()
            || !settings.servers
            || settings.containers != Containers::Mine
            || self.stacks().is_some_and(|stacks| stacks.wait_least > 0);
        let tested = settings.count_emitted || settings.hidden_tid != 0 || settings.keep_others;
        present && !chosen && !tested
    }

    /// Whether this recording uses the BPF program with this name and section.
    fn uses(self, name: &str, section: &str) -> bool {
        let (kind, tracepoint) = section.split_once('/').unwrap_or_default();
        let right_form = match kind {
            "tp_btf" => !self.raw,
            "raw_tp" => self.raw || !TYPED_TRACEPOINTS.contains(&tracepoint),
            _ => true,
        };
        let stacks = self.stacks();
        let requested = match name {
            "sample" => stacks.is_some_and(|sampling| sampling.hz > 0),
            "waits" | "make_room" => stacks.is_some_and(|sampling| sampling.wait_least > 0),
            // If all tasks are recorded, there are no other tasks whose CPU times could be summed.
            "migrate_raw" => !self.settings.all,
            _ => self.settings.syscalls || !tracepoint.starts_with("sys_"),
        };
        right_form && requested && (kind == "iter" || self.has_tracepoint(tracepoint))
    }

    fn set_constants(self, skel: &mut OpenTracerSkel<'_>) {
        let (kernel, settings, stacks) = (self.kernel, self.settings, self.stacks());
        let Some(rodata) = &mut skel.maps.rodata_data else {
            return;
        };
        rodata.switch_prev_arg = kernel.switch_prev;
        rodata.switch_state_arg = kernel.switch_state.unwrap_or(0);
        rodata.exit_has_group_dead = kernel.exit_group_dead;
        rodata.preempt_count_distance = kernel.preempt_count.unwrap_or(0);
        rodata.current_distance = kernel.current.unwrap_or(0);
        rodata.has_rdonly_cast = kernel.cast.is_some();
        rodata.syscall_reasons = syscalls::reasons();
        rodata.syscall_timeouts = syscalls::timeouts();
        rodata.hidden_tid = settings.hidden_tid;
        rodata.keep_others = settings.keep_others;
        rodata.light = settings.light;
        rodata.show_kernel = self.kernel_shown;
        rodata.sample_period = stacks.map_or(0, |sampling| sampling.period());
        rodata.sample_half = stacks.map_or(0, |sampling| u64::from(sampling.ring / 2));
        rodata.wait_least = stacks.map_or(0, |sampling| sampling.wait_least);
        rodata.issue_has_queue = kernel.issue_has_queue;
        rodata.bio_has_queue = kernel.bio_has_queue;
        rodata.victim_is_task = kernel.victim_is_task;
        rodata.follow_all = settings.all;
        rodata.followed_count = settings.followed();
        rodata.slot_count = u64::from(settings.slots());
        rodata.life_half = u64::from(settings.life_ring / 2);
        rodata.argv_limit = settings.argv_limit;
        rodata.target_cgroup = settings.target_cgroup.unwrap_or(0);
        rodata.containers = if settings.all {
            Containers::None as u32
        } else {
            settings.containers as u32
        };
        rodata.servers = settings.servers && !settings.all;
        // Even in the loader (the process that sudo runs), this is the user who called sudo: the loader has given up
        // root's rights before.
        let user = nix::unistd::getuid();
        rodata.servers_uid = if user.is_root() {
            u32::MAX
        } else {
            user.as_raw()
        };
        rodata.count_emitted = settings.count_emitted;
        rodata.chosen_cpus = settings.later_cpus.is_none();
    }

    /// Whether the kernel has this tracepoint, and this recording uses it.
    fn has_tracepoint(self, tracepoint: &str) -> bool {
        let unused = if self.settings.light {
            Recordings::Full
        } else {
            Recordings::Light
        };
        match TRACEPOINTS.iter().find(|row| row.name == tracepoint) {
            Some(row) => {
                row.recordings != unused
                    && row.extra.is_none_or(|fact| self.kernel.extras.has(fact))
            }
            None => !self.settings.light,
        }
    }

    /// Sets the sizes of the BPF programs' maps, and which of the maps are created.
    fn size_maps(self, skel: &mut OpenTracerSkel<'_>) -> libbpf_rs::Result<()> {
        let (settings, stacks, large) = (self.settings, self.stacks(), self.large);
        // Sums of system calls need a map for storage that belongs to a task, which only `tp_btf` programs can use
        // (since Linux 5.11).
        let calls = settings.syscalls && !self.raw && self.kernel.extras.has(Extras::CALLS);
        let maps = &mut skel.maps;
        for map in [&mut maps.call_sums, &mut maps.entered] {
            map.set_autocreate(calls)?;
        }
        maps.sample_ring.set_autocreate(stacks.is_some())?;
        maps.waiters
            .set_autocreate(stacks.is_some_and(|sampling| sampling.wait_least > 0))?;
        maps.sample_ring
            .set_max_entries(settings.stacks.map_or(4096, |sampling| sampling.ring))?;
        let targets = u32::try_from(settings.targets.len()).unwrap_or(u32::MAX);
        maps.targets.set_max_entries(targets.max(1))?;
        maps.data_followed.set_value_size(settings.followed())?;
        maps.data_followed.reuse_fd(large.followed.as_fd())?;
        maps.life_ring.reuse_fd(large.life.as_fd())?;
        maps.slots.reuse_fd(large.slots.as_fd())
    }
}
