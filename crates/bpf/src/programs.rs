//! Opens, sizes, loads and attaches the programs.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, BufRead, BufReader};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::thread;

use libbpf_rs::libbpf_sys::{bpf_iter_create, bpf_map_create_opts, bpf_map_freeze, BPF_F_MMAPABLE};
use libbpf_rs::skel::{OpenSkel, SkelBuilder};
use libbpf_rs::{MapCore, MapFlags, MapHandle, MapType, OpenObject};

use crate::kernel::{place, Recordings, TRACEPOINTS};
use crate::load::{self, opened, AllLoaded, Loaded, MemoryFile};
use crate::messages::{keep, keep_messages};
use crate::samplers::Samplers;
use crate::skel::{OpenTracerSkel, TracerSkel, TracerSkelBuilder};
use crate::{names, syscalls, wire, Error, Extras, Kernel, Refusal};

/// The traced tasks and CPUs, and the memory.
#[derive(Clone, Debug, Default)]
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
    /// The containers to follow.
    pub containers: Containers,
    /// Follow servers that answer followed tasks: of this process's user, or for root of any.
    pub servers: bool,
    /// Sum up the system calls of the followed tasks.
    pub syscalls: bool,
    pub stacks: Option<Sampling>,
    /// Record forks, execs and ends alone, with no program on switches and wakings.
    pub light: bool,
    /// Count each attempt to emit an event.
    pub count_emitted: bool,
    /// Ignore the switches of this task, as some guests' kernels do; 0 for none. For tests.
    pub hidden_tid: u32,
}

/// The containers to follow that are no descendants of the followed tasks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(u32)]
pub enum Containers {
    /// None.
    None = 0,
    /// Those that begin because a followed task has asked a daemon for them.
    #[default]
    Mine = 1,
    /// All that begin.
    All = 2,
}

impl Containers {
    /// By number.
    pub fn of(number: u32) -> Option<Containers> {
        let all = [Containers::None, Containers::Mine, Containers::All];
        all.into_iter().find(|it| *it as u32 == number)
    }
}

/// Stacks of followed tasks: samples on the CPUs that are online at the start and on those of
/// [`crate::Tracer::sample_on`], and stacks of waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sampling {
    /// Samples a second of each CPU; 0: none.
    pub hz: u32,
    /// The shortest wait whose stack is recorded, in ns; 0: none is.
    pub wait_least: u64,
    /// Bytes of the ring of samples: a power of two, at least a page.
    pub ring: u32,
}

impl Settings {
    /// Slots of each CPU.
    pub(crate) fn slots(&self) -> u32 {
        self.sched_ring / size_of::<wire::Slot>() as u32
    }

    /// Bytes of the set of followed tasks. A tid has 22 bits at most (PID_MAX_LIMIT), and a map no
    /// more than 4 MiB a value.
    fn followed(&self) -> u32 {
        self.pid_max.clamp(1, 1 << 22)
    }

    /// The number of CPUs that can have slots.
    pub fn regions(&self) -> u32 {
        let cpus = u32::try_from(self.cpus.len()).unwrap_or(u32::MAX);
        cpus.saturating_add(self.later_cpus.unwrap_or(0))
    }
}

/// Attached programs, as descriptors: another process can have loaded them. The programs
/// are unloaded when their descriptors and those of their links are closed.
#[derive(Debug)]
pub struct Programs {
    /// The map of [`crate::slots::Slots`].
    pub(crate) slots: OwnedFd,
    /// The map of what the programs tell, which user space cannot write.
    pub(crate) output: OwnedFd,
    /// The map of what user space asks the programs for.
    pub(crate) input: OwnedFd,
    /// The ring of lifecycle events.
    pub(crate) life: OwnedFd,
    /// The link of the iterator over the tasks.
    tasks: OwnedFd,
    /// The map of [`crate::calls::Calls`], if system calls are recorded.
    pub(crate) calls: Option<OwnedFd>,
    /// The samplers of stacks, if they are recorded.
    pub(crate) samplers: Option<Samplers>,
    /// A link for each program, in the order of [`TRACEPOINTS`].
    pub(crate) links: Vec<OwnedFd>,
    /// The programs, in the same order; none if another process has loaded them.
    pub(crate) programs: Vec<OwnedFd>,
    /// The kernel refused `tp_btf` programs; all programs are `raw_tp`.
    pub(crate) raw: bool,
    /// Stacks have the kernel's addresses.
    pub(crate) kernel_shown: bool,
    /// Wake-ups by interrupts are recorded as such.
    pub(crate) irq_known: bool,
}

/// What [`Programs`] consist of, beside what they always have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Parts {
    /// The programs are `raw_tp`.
    pub raw: bool,
    /// Stacks have the kernel's addresses, see [`crate::Tracer::shows_kernel`].
    pub kernel_shown: bool,
    /// Wake-ups by interrupts are recorded as such.
    pub irq_known: bool,
    /// The number of perf events and links that call the samplers of stacks, if there are any.
    pub callers: Option<usize>,
    /// System calls are recorded.
    pub calls: bool,
}

/// Whether it was for lack of rights, the kernel's error number does not tell: the
/// verifier refuses with EACCES, too. So the facts are asked.
pub(crate) fn failed(action: &'static str) -> impl FnOnce(libbpf_rs::Error) -> Error {
    move |source| match Refusal::of(&source) {
        Some(refusal) => {
            keep(&format!("cannot {action}: {source}\n"));
            Error::Refused(refusal)
        }
        None => Error::Bpf { action, source },
    }
}

/// A descriptor of its own.
pub(crate) fn own(fd: BorrowedFd<'_>) -> Result<OwnedFd, Error> {
    let copy = fd.try_clone_to_owned();
    copy.map_err(|error| failed("copy the descriptors of the BPF programs")(error.into()))
}

/// The large maps: the kernel clears a MiB in 0.6 ms.
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
            // libbpf would fill it: with 4 MiB of zeros that it has to make first.
            followed: map(MapType::Array, "followed", [4, settings.followed(), 1], 0)?,
        })
    }
}

impl Programs {
    /// Reads the kernel's features; opens, sizes, loads and attaches the programs: those on switches
    /// and wakings as `tp_btf`, or as `raw_tp` where that is refused. The recording begins.
    ///
    /// # Errors
    /// Those of [`Kernel::detect`]; [`Error::Refused`], [`Error::TooManyCpus`], [`Error::Bpf`].
    pub fn start(settings: &Settings) -> Result<Programs, Error> {
        if settings.possible_cpus > wire::MAX_CPUS {
            return Err(Error::TooManyCpus {
                found: settings.possible_cpus,
            });
        }
        keep_messages();
        // On two CPUs at once.
        let (kernel, large) = thread::scope(|scope| {
            let large = thread::Builder::new();
            let large = large.spawn_scoped(scope, || Large::create(settings));
            let kernel = Kernel::detect();
            (kernel, large.ok().and_then(|it| it.join().ok()))
        });
        let kernel = kernel?;
        let large = large.unwrap_or_else(|| Large::create(settings));
        let kernel_shown = settings.stacks.is_some() && kernel_shown().unwrap_or(false);
        let large = large.map_err(failed("create the maps of the BPF programs"))?;
        let attach =
            |raw, large: &Large| Programs::attach((&kernel, settings, large), (raw, kernel_shown));
        attach(false, &large).or_else(|refused| {
            // Programs that were attached may have written to the first ones.
            let large = Large::create(settings).ok();
            let programs = large.and_then(|large| attach(true, &large).ok());
            // The first refusal is the one that matters.
            programs.ok_or(refused)
        })
    }

    /// Opens, sizes, loads and attaches them; `form` is that of [`open`].
    fn attach(given: (&Kernel, &Settings, &Large), form: (bool, bool)) -> Result<Programs, Error> {
        let (kernel, settings, _) = given;
        let (mut storage, action) = (MaybeUninit::uninit(), "load the BPF programs");
        let types = MemoryFile::new(&kernel.types).map_err(|error| failed(action)(error.into()))?;
        let path = types.path();
        let mut skel = open(&mut storage, given, form, &path)?;
        let loaded = load::load(skel.open_object_mut(), &kernel.targets, kernel.cast);
        let loaded = loaded.map_err(|error| failed(action)(error.into()))?;
        let mut skel = skel.load().map_err(failed(action))?;
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
        updated.map_err(failed("tell the names of servers"))?;
        let mut programs = Programs::of(&skel, &loaded, form, settings)?;
        programs.irq_known = kernel.knows_interrupts();
        // The kernel freezes no map that is mapped to write, as libbpf does.
        drop(skel);
        // SAFETY: a system call on an open descriptor.
        match unsafe { bpf_map_freeze(programs.output.as_raw_fd()) } {
            0 => Ok(programs),
            error => Err(failed("freeze the programs' memory")(
                io::Error::from_raw_os_error(-error).into(),
            )),
        }
    }

    /// Attaches loaded programs. The descriptors outlive the skeleton.
    fn of(
        skel: &TracerSkel<'_>,
        loaded: &AllLoaded,
        (raw, kernel_shown): (bool, bool),
        settings: &Settings,
    ) -> Result<Programs, Error> {
        let attach = |program: &Loaded| {
            let link = program.attach();
            link.map_err(|error| failed("attach the BPF programs")(error.into()))
        };
        let (mut links, mut programs) = (Vec::new(), Vec::new());
        let in_order = loaded
            .iter()
            .filter_map(|(name, it)| Some((turn(name, it)?, it)));
        for program in in_order.collect::<BTreeMap<_, _>>().into_values() {
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
            samplers: match &settings.stacks.filter(|_| !raw) {
                Some(sampling) => Some(Samplers::start(skel, loaded, sampling, &settings.cpus)?),
                None => None,
            },
            calls: match loaded.contains_key("sys_exit_btf") {
                true => Some(own(skel.maps.call_sums.as_fd())?),
                false => None,
            },
            links,
            programs,
            raw,
            kernel_shown,
            irq_known: false,
        })
    }

    /// The descriptors for another process, in the order that [`Programs::from_descriptors`]
    /// takes. The programs' own are not among them: who has one can attach the program again, or to
    /// another tracepoint, whose arguments it would take for addresses, without any right.
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

    /// The programs that another process of this version has attached; `None`: another number
    /// of descriptors.
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
        // A kernel can lack tracepoints. A light recording has the fewest.
        let light = TRACEPOINTS.iter().filter(|it| it.of != Recordings::Full);
        if !(light.count()..=TRACEPOINTS.len()).contains(&links.len()) {
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

    /// What [`Programs::from_descriptors`] has to know.
    pub fn parts(&self) -> Parts {
        Parts {
            raw: self.raw,
            kernel_shown: self.kernel_shown,
            irq_known: self.irq_known,
            callers: self.samplers.as_ref().map(Samplers::callers),
            calls: self.calls.is_some(),
        }
    }

    /// Opens an iterator over the tasks.
    ///
    /// # Errors
    /// Before Linux 5.19 EPERM without `CAP_BPF`, if `kernel.unprivileged_bpf_disabled` is set.
    pub fn iterator(&self) -> io::Result<OwnedFd> {
        // SAFETY: `self` keeps the link's descriptor open; the call opens the iterator's, or fails.
        unsafe { opened(bpf_iter_create(self.tasks.as_raw_fd())) }
    }
}

/// The tracepoints whose programs exist as `tp_btf`, too.
const TYPED: [&str; 2] = ["sched_waking", "sched_switch"];

/// The place of a program among those of [`TRACEPOINTS`]; `None`: something else calls it.
fn turn(name: &str, program: &Loaded) -> Option<usize> {
    let is_ours = name.ends_with("_raw") || name.ends_with("_btf");
    place(program.tracepoint()).filter(|_| is_ours)
}

/// A program that should be there is not.
pub(crate) fn missing() -> libbpf_rs::Error {
    io::Error::from(io::ErrorKind::NotFound).into()
}

/// The kernel tells this process the addresses of its functions, see kernel.kptr_restrict in
/// proc_sys_kernel(5). `None`: there is no list of them.
fn kernel_shown() -> Option<bool> {
    let lines = BufReader::new(File::open("/proc/kallsyms").ok()?).lines();
    let address = lines.map_while(Result::ok).find_map(|line| {
        let (address, rest) = line.split_once(' ')?;
        rest.starts_with(['t', 'T']).then(|| address.to_owned())
    });
    address.map(|address| address.bytes().any(|digit| digit != b'0'))
}

/// Opens the object and sets everything that must be known before loading: for `raw_tp` if `raw`.
/// `types` is the path of the kernel's BTF for libbpf.
fn open<'a>(
    storage: &'a mut MaybeUninit<OpenObject>,
    (kernel, settings, large): (&Kernel, &Settings, &Large),
    (raw, kernel_shown): (bool, bool),
    types: &str,
) -> Result<OpenTracerSkel<'a>, Error> {
    let action = "open the BPF programs";
    let mut builder = TracerSkelBuilder::default();
    let options = builder.object_builder_mut().btf_custom_path(types);
    options.map_err(failed(action))?;
    let mut skel = builder.open(storage).map_err(failed(action))?;
    // Linux 5.11 has the storage of tasks, and tp_btf programs know their types.
    let stacks = settings.stacks.filter(|_| !raw);
    for mut program in skel.open_object_mut().progs_mut() {
        let section = program.section().to_string_lossy().into_owned();
        let (kind, tracepoint) = section.split_once('/').unwrap_or_default();
        let wanted = match kind {
            "tp_btf" => !raw,
            "raw_tp" => raw || !TYPED.contains(&tracepoint),
            _ => true,
        };
        let requested = settings.syscalls || !tracepoint.starts_with("sys_");
        let name = program.name().to_string_lossy().into_owned();
        let needs = match name.as_str() {
            "sample" => stacks.is_some_and(|it| it.hz > 0),
            "waits" | "make_room" => stacks.is_some_and(|it| it.wait_least > 0),
            _ => true,
        };
        let part = match kind {
            "iter" => true,
            _ => has_tracepoint(kernel, settings.light, tracepoint),
        };
        program.set_autoload(wanted && requested && needs && part);
    }
    if let Some(rodata) = &mut skel.maps.rodata_data {
        rodata.switch_prev_arg = kernel.switch_prev;
        rodata.switch_state_arg = kernel.switch_state.unwrap_or(0);
        rodata.exit_has_group_dead = kernel.exit_group_dead;
        rodata.preempt_count_distance = kernel.preempt_count.unwrap_or(0);
        rodata.current_distance = kernel.current.unwrap_or(0);
        rodata.has_rdonly_cast = kernel.cast.is_some();
        rodata.syscall_reasons = syscalls::reasons();
        rodata.hidden_tid = settings.hidden_tid;
        rodata.light = settings.light;
        rodata.show_kernel = kernel_shown;
        rodata.sample_period = stacks.map_or(0, |it| it.period());
        rodata.sample_half = stacks.map_or(0, |it| u64::from(it.ring / 2));
        rodata.wait_least = stacks.map_or(0, |it| it.wait_least);
        rodata.issue_has_queue = kernel.issue_has_queue;
        rodata.bio_has_queue = kernel.bio_has_queue;
        rodata.victim_is_task = kernel.victim_is_task;
        rodata.follow_all = settings.all;
        rodata.followed_count = settings.followed();
        rodata.slot_count = u64::from(settings.slots());
        rodata.life_half = u64::from(settings.life_ring / 2);
        rodata.argv_limit = settings.argv_limit;
        rodata.target_cgroup = settings.target_cgroup.unwrap_or(0);
        rodata.containers = match settings.all {
            true => Containers::None,
            false => settings.containers,
        } as u32;
        rodata.servers = settings.servers && !settings.all;
        // The loader is the caller's process by now.
        let user = nix::unistd::getuid();
        rodata.servers_uid = if user.is_root() {
            u32::MAX
        } else {
            user.as_raw()
        };
        rodata.count_emitted = settings.count_emitted;
        rodata.chosen_cpus = settings.later_cpus.is_none();
    }
    // Linux 5.11 has the map of tasks' storage.
    let calls = settings.syscalls && !raw && kernel.extras.has(Extras::CALLS);
    size_maps(&mut skel, settings, large, (calls, stacks)).map_err(failed(action))?;
    Ok(skel)
}

/// Whether the kernel has this tracepoint, and such a recording asks for it.
fn has_tracepoint(kernel: &Kernel, light: bool, tracepoint: &str) -> bool {
    let never = match light {
        true => Recordings::Full,
        false => Recordings::Light,
    };
    match TRACEPOINTS.iter().find(|it| it.name == tracepoint) {
        Some(it) => it.of != never && it.extra.is_none_or(|fact| kernel.extras.has(fact)),
        None => !light,
    }
}

/// Creates the maps that are needed, at their sizes: `calls` and `stacks` are recorded.
fn size_maps(
    skel: &mut OpenTracerSkel<'_>,
    settings: &Settings,
    large: &Large,
    (calls, stacks): (bool, Option<Sampling>),
) -> libbpf_rs::Result<()> {
    let maps = &mut skel.maps;
    for map in [&mut maps.call_sums, &mut maps.entered] {
        map.set_autocreate(calls)?;
    }
    maps.sample_ring.set_autocreate(stacks.is_some())?;
    maps.waiters
        .set_autocreate(stacks.is_some_and(|it| it.wait_least > 0))?;
    maps.sample_ring
        .set_max_entries(settings.stacks.map_or(4096, |it| it.ring))?;
    let targets = u32::try_from(settings.targets.len()).unwrap_or(u32::MAX);
    maps.targets.set_max_entries(targets.max(1))?;
    maps.data_followed.set_value_size(settings.followed())?;
    maps.data_followed.reuse_fd(large.followed.as_fd())?;
    maps.life_ring.reuse_fd(large.life.as_fd())?;
    maps.slots.reuse_fd(large.slots.as_fd())
}
