//! Finds the features of the running kernel. Its BTF decides, and not its version, because distributions move
//! features between versions.

use std::collections::HashMap;
use std::fs::File;
use std::io::Read;

use memmap2::{Mmap, MmapOptions};

use crate::btf::{kind, Btf, Id, Type};
use crate::error::Error;
use crate::refusal::{Refusal, BTF};

/// The features of the running kernel: the layouts of its tracepoints and of the types that the BPF programs read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Kernel {
    /// The index of `prev`, the task that is switched out, among the arguments of the tracepoint `sched_switch`.
    pub switch_prev: u32,
    /// The index of `prev_state` among the arguments of the tracepoint `sched_switch`; `None` before Linux 5.18,
    /// which added it.
    pub switch_state: Option<u32>,
    /// Whether the tracepoint `sched_process_exit` has the argument `group_dead`, as since Linux 6.16.
    pub exit_group_dead: bool,
    /// The distance in bytes from a CPU's run queue to the CPU's preemption count, if the kernel keeps the count per
    /// CPU (x86). The count distinguishes wake-ups by interrupts from wake-ups by the running task.
    pub preempt_count: Option<i64>,
    /// Whether the kernel keeps the preemption count in the running task's struct (arm64).
    pub preempt_count_in_task: bool,
    /// The distance in bytes from a CPU's run queue to the CPU's pointer to the running task, if the kernel keeps the
    /// pointer per CPU.
    pub current: Option<i64>,
    /// The optional facts that can be recorded, because this kernel has tracepoints for them.
    pub extras: Extras,
    /// Whether the tracepoint `block_rq_issue` has the request queue as its first argument, as before Linux 5.11.
    pub issue_has_queue: bool,
    /// Whether the tracepoint `block_bio_queue` has the request queue as its first argument, as before Linux 5.11.
    pub bio_has_queue: bool,
    /// Whether the tracepoint `mark_victim` has the task as its argument, as since Linux 6.9.
    pub victim_is_task: bool,
    /// A BTF (type information) that has only those types of the kernel that the BPF programs read.
    pub(crate) types: Vec<u8>,
    /// The numbers in the kernel's BTF of the tracepoints and of the iterator to which BPF programs attach, by their
    /// names.
    pub(crate) targets: HashMap<&'static str, Id>,
    /// The number that `bpf_rdonly_cast`, a function that BPF programs can call since Linux 6.2, has in the kernel's
    /// BTF; `None` if the kernel lacks it.
    pub(crate) cast: Option<Id>,
}

/// The names of the kernel's structs, unions and enums that the BPF programs use.
pub(crate) const TYPES: &[&str] = &include!(concat!(env!("OUT_DIR"), "/type_names.rs"));

/// The names of the types, variables and functions that are looked up in the kernel's BTF, in addition to those of
/// the tracepoints.
const BTF_NAMES: [&str; 12] = [
    "bpf_ringbuf",
    "bpf_iter__task",
    "cfs_rq",
    "sched_entity",
    "pcpu_hot",
    "thread_info",
    PER_CPU,
    "__preempt_count",
    "current_task",
    "runqueues",
    CAST_FUNCTION,
    ITERATOR,
];

/// The name in the kernel's BTF of the section with the variables that each CPU has.
const PER_CPU: &str = ".data..percpu";
const CAST_FUNCTION: &str = "bpf_rdonly_cast";
/// The name of the function by which the kernel's BTF names the iterator over the tasks.
const ITERATOR: &str = "bpf_iter_task";

/// A set of the kinds of optional facts that a recording can have. Not every kernel has tracepoints for them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Extras(pub(crate) u32);

impl Extras {
    pub const NETWORK: Extras = Extras(1);
    /// An optional kind of facts in a recording: requests to block devices.
    pub const BLOCK: Extras = Extras(2);
    /// An optional kind of facts in a recording: the number and the duration of system calls, summed up for each
    /// process (`CONFIG_FTRACE_SYSCALLS`). These sums are recorded only on request.
    pub const CALLS: Extras = Extras(1 << 8);
    /// An optional kind of facts in a recording: direct reclaim of memory.
    pub const RECLAIM: Extras = Extras(4);
    /// An optional kind of facts in a recording: reclaim of memory in a cgroup that has reached its limit.
    pub const CGROUP_RECLAIM: Extras = Extras(8);
    /// An optional kind of facts in a recording: kills for lack of memory.
    pub const OOM_KILLS: Extras = Extras(16);
    /// An optional kind of facts in a recording: DNS queries by UDP.
    pub const DNS: Extras = Extras(32);
    /// An optional kind of facts in a recording: the disks that tasks wait for.
    pub const DISK_WAITS: Extras = Extras(64);
    /// An optional kind of facts in a recording: the state of each task at its switch-out, known even if the task is
    /// woken at the same moment (since Linux 5.18).
    pub const SWITCH_STATES: Extras = Extras(128);

    fn with(self, other: Extras, included: bool) -> Extras {
        Extras(if included { self.0 | other.0 } else { self.0 })
    }

    /// Whether this set of optional facts contains all facts of the set `other`.
    pub fn has(self, other: Extras) -> bool {
        self.0 & other.0 == other.0
    }
}

/// The recordings that use the BPF program of a tracepoint: all, only those with scheduling events (full), or only
/// those without them (light).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Recordings {
    All,
    Full,
    Light,
}

/// A tracepoint of the kernel to which a BPF program attaches.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Tracepoint {
    pub name: &'static str,
    pub recordings: Recordings,
    /// The kind of optional fact for which this tracepoint is needed; `None` if no recording is possible without the
    /// tracepoint.
    pub extra: Option<Extras>,
}

const fn needed(name: &'static str, recordings: Recordings) -> Tracepoint {
    Tracepoint {
        name,
        recordings,
        extra: None,
    }
}

const fn optional(name: &'static str, extra: Extras) -> Tracepoint {
    Tracepoint {
        name,
        recordings: Recordings::Full,
        extra: Some(extra),
    }
}

/// The tracepoints in the order in which BPF programs are attached to them. The lifecycle events come first, so that
/// no task has scheduling events without its fork. The tracepoint of signals is last, because `Tracer::detach` keeps
/// the last link.
pub(crate) const TRACEPOINTS: [Tracepoint; 25] = [
    needed("sched_process_fork", Recordings::All),
    needed("sched_process_exec", Recordings::All),
    needed("sched_process_exit", Recordings::All),
    // This event shows that the kernel drops a dead task from its tables.
    needed("sched_process_free", Recordings::Light),
    needed("task_rename", Recordings::Full),
    needed("cgroup_attach_task", Recordings::All),
    needed("cgroup_mkdir", Recordings::All),
    needed("sched_migrate_task", Recordings::Full),
    needed("sched_wakeup_new", Recordings::Full),
    needed("sched_waking", Recordings::Full),
    needed("sched_switch", Recordings::Full),
    optional("inet_sock_set_state", Extras::NETWORK),
    // The program for DNS answers is attached before that for queries, so that each recorded query has its answer
    // recorded.
    optional("netif_receive_skb", Extras::DNS),
    optional("net_dev_queue", Extras::DNS),
    // The program for completions is attached before that for requests, so that each recorded request has its
    // completion recorded.
    optional("block_rq_complete", Extras::BLOCK),
    optional("block_rq_issue", Extras::BLOCK),
    optional("block_bio_queue", Extras::DISK_WAITS),
    optional("mm_vmscan_direct_reclaim_begin", Extras::RECLAIM),
    optional("mm_vmscan_direct_reclaim_end", Extras::RECLAIM),
    optional("mm_vmscan_memcg_reclaim_begin", Extras::CGROUP_RECLAIM),
    optional("mm_vmscan_memcg_reclaim_end", Extras::CGROUP_RECLAIM),
    optional("mark_victim", Extras::OOM_KILLS),
    optional("sys_exit", Extras::CALLS),
    optional("sys_enter", Extras::CALLS),
    needed("signal_generate", Recordings::All),
];

/// The index of a tracepoint in [`TRACEPOINTS`]; `None` if it is not in this list.
pub(crate) fn place(tracepoint: &str) -> Option<usize> {
    TRACEPOINTS.iter().position(|row| row.name == tracepoint)
}

impl Kernel {
    /// Finds the features of the running kernel in its BTF.
    ///
    /// # Errors
    /// [`Error::Refused`] if /proc is not mounted or the BTF cannot be opened. [`Error::Bpf`] if the BTF cannot be
    /// read or has an unknown form. [`Error::Missing`] names a feature that this kernel lacks, because it is older
    /// than 5.8 or was built without the feature.
    pub fn detect() -> Result<Kernel, Error> {
        let refused = || Error::Refused(Refusal::find().unwrap_or(Refusal::NoBtf));
        // Besides the file with the BTF, /proc is checked, because the recorder needs /proc.
        for needed in ["/proc/self", BTF] {
            if !std::path::Path::new(needed).exists() {
                return Err(refused());
            }
        }
        let bytes = Bytes::read().map_err(|source| match File::open(BTF) {
            Ok(_) => Error::Bpf {
                action: READ_BTF,
                source: source.into(),
            },
            Err(_) => refused(),
        })?;
        let typedefs = TRACEPOINTS.map(|tracepoint| typedef(tracepoint.name));
        let names =
            (TYPES.iter().chain(&BTF_NAMES).copied()).chain(typedefs.iter().map(String::as_str));
        let unknown = || Error::Bpf {
            action: READ_BTF,
            source: std::io::Error::other("its form is not known").into(),
        };
        let btf = Btf::find(bytes.get(), names.map(str::as_bytes)).ok_or_else(unknown)?;
        Kernel::of(&btf)?.ok_or_else(unknown)
    }

    /// Finds the features of a kernel in its BTF; `None` if the types cannot be copied, because their form is not
    /// known.
    fn of(btf: &Btf<'_>) -> Result<Option<Kernel>, Error> {
        for (name, what) in [
            ("bpf_ringbuf", "BPF ring buffers"),
            ("bpf_iter__task", "BPF task iterators"),
        ] {
            if btf.named(name, kind::STRUCT).is_none() {
                return Err(Error::Missing {
                    what: what.into(),
                    since: "5.8",
                });
            }
        }
        for Tracepoint { name, extra, .. } in TRACEPOINTS {
            if extra.is_none() && arguments(btf, name).is_none() {
                return Err(Error::Missing {
                    what: format!("the tracepoint {name}"),
                    since: "5.8",
                });
            }
        }
        let switch = arguments(btf, "sched_switch").unwrap_or_default();
        let exit = arguments(btf, "sched_process_exit").unwrap_or_default();
        let (switch_prev, switch_state) = switch_layout(&switch).ok_or_else(|| Error::Missing {
            what: "a known form of sched_switch".into(),
            since: "5.8",
        })?;
        let Some(types) = btf.extract(TYPES) else {
            return Ok(None);
        };
        let target = |row: Tracepoint| Some((row.name, btf.id(&typedef(row.name), kind::TYPEDEF)?));
        let mut targets: HashMap<_, _> = TRACEPOINTS.into_iter().filter_map(target).collect();
        targets.extend(btf.id(ITERATOR, kind::FUNC).map(|id| ("task", id)));
        Ok(Some(Kernel {
            switch_prev,
            switch_state,
            exit_group_dead: exit.len() > 1,
            preempt_count: per_cpu_distance(btf, "__preempt_count", "preempt_count"),
            preempt_count_in_task: member_offset(btf, "thread_info", "preempt").is_some(),
            current: per_cpu_distance(btf, "current_task", "current_task"),
            extras: extras(btf).with(Extras::SWITCH_STATES, switch_state.is_some()),
            victim_is_task: arguments(btf, "mark_victim")
                .is_some_and(|all| all.first() == Some(&kind::PTR)),
            bio_has_queue: arguments(btf, "block_bio_queue").is_some_and(|all| all.len() > 1),
            issue_has_queue: arguments(btf, "block_rq_issue").is_some_and(|all| all.len() > 1),
            types,
            targets,
            cast: btf.id(CAST_FUNCTION, kind::FUNC),
        }))
    }

    /// Whether this kernel shows whether an interrupt or the running task has woken a task.
    pub fn knows_interrupts(&self) -> bool {
        self.preempt_count.is_some() || self.preempt_count_in_task
    }
}

/// The optional facts for which this kernel has all of the needed tracepoints.
fn extras(btf: &Btf<'_>) -> Extras {
    let optional = || {
        TRACEPOINTS
            .iter()
            .filter_map(|tracepoint| Some((tracepoint.name, tracepoint.extra?)))
    };
    let bits = optional().fold(0, |bits, (_, extra)| bits | extra.0);
    let missing = optional().filter(|(name, _)| arguments(btf, name).is_none());
    Extras(missing.fold(bits, |bits, (_, extra)| bits & !extra.0))
}

/// The positions of `prev` and `prev_state` among the arguments of the tracepoint `sched_switch`, found by the kinds
/// of the arguments.
///
/// The arguments before Linux 5.18 are `preempt, prev, next`. 5.18 had `preempt, prev_state, prev, next`; later
/// kernels have `preempt, prev, next, prev_state`.
fn switch_layout(arguments: &[u32]) -> Option<(u32, Option<u32>)> {
    use kind::{INT, PTR};
    match arguments {
        [INT, PTR, PTR] => Some((1, None)),
        [INT, PTR, PTR, INT] => Some((1, Some(3))),
        [INT, INT, PTR, PTR] => Some((2, Some(1))),
        _ => None,
    }
}

/// The distance in bytes from `runqueues` to another variable in the kernel's per-CPU section. `None` if it is
/// unknown, as on machines other than x86-64: they keep the preemption count in the running task's struct, and the
/// pointer to this task in a register. In Linux 6.2 to 6.14 the variables are members of `pcpu_hot`.
fn per_cpu_distance(btf: &Btf<'_>, variable: &str, member: &str) -> Option<i64> {
    if !cfg!(target_arch = "x86_64") {
        return None;
    }
    // A task has a pointer to its CPU's run queue only in kernels with CONFIG_FAIR_GROUP_SCHED.
    member_offset(btf, "cfs_rq", "rq")?;
    member_offset(btf, "sched_entity", "cfs_rq")?;
    let section = btf.named(PER_CPU, kind::DATASEC)?;
    let offset_of = |name: &str| {
        let mut variables = section.parts();
        variables
            .find(|[id, _, _]| btf.name_of(*id) == name.as_bytes())
            .map(|[_, offset, _]| i64::from(offset))
    };
    let place = offset_of(variable)
        .or_else(|| Some(offset_of("pcpu_hot")? + member_offset(btf, "pcpu_hot", member)?))?;
    Some(place - offset_of("runqueues")?)
}

/// The offset in bytes of a member in a struct of the kernel. The member can be inside an anonymous struct or union.
fn member_offset(btf: &Btf<'_>, name: &str, member: &str) -> Option<i64> {
    fn find(btf: &Btf<'_>, of: Type<'_>, member: &str, depth: usize) -> Option<i64> {
        of.parts().find_map(|[name, id, offset]| {
            let offset = i64::from(of.bits(offset)? / 8);
            match btf.name(name) {
                b"" => {
                    let inner = btf.plain(id)?;
                    if !matches!(inner.kind(), kind::STRUCT | kind::UNION) {
                        return None;
                    }
                    Some(offset + find(btf, inner, member, depth.checked_sub(1)?)?)
                }
                name => (name == member.as_bytes()).then_some(offset),
            }
        })
    }
    find(btf, btf.named(name, kind::STRUCT)?, member, 16)
}

/// The name that the type of a tracepoint's function has in the kernel's BTF.
fn typedef(tracepoint: &str) -> String {
    format!("btf_trace_{tracepoint}")
}

/// The BTF kinds of the arguments of a tracepoint, without the leading `void *__data`.
fn arguments(btf: &Btf<'_>, tracepoint: &str) -> Option<Vec<u32>> {
    let pointer = btf.get(btf.named(&typedef(tracepoint), kind::TYPEDEF)?.target)?;
    let function = btf.get(pointer.target)?;
    if (pointer.kind(), function.kind()) != (kind::PTR, kind::FUNC_PROTO) {
        return None;
    }
    let parameters = function.parts().skip(1);
    parameters
        .map(|[_, id]| Some(btf.plain(id)?.kind()))
        .collect()
}

const READ_BTF: &str = "read the kernel's BTF";

/// The bytes of the kernel's BTF: a mapping (since Linux 6.16), or memory into which they were read.
enum Bytes {
    Mapped(Mmap),
    Read(Vec<u8>),
}

impl Bytes {
    fn read() -> std::io::Result<Bytes> {
        let mut file = File::open(BTF)?;
        // The mapping is private, because the kernel refuses a shared one. SAFETY: the file is the kernel's own memory,
        // which stays and does not change.
        if let Ok(map) = unsafe { MmapOptions::new().map_copy_read_only(&file) } {
            return Ok(Bytes::Mapped(map));
        }
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes)?;
        Ok(Bytes::Read(bytes))
    }

    fn get(&self) -> &[u8] {
        match self {
            Bytes::Mapped(map) => map,
            Bytes::Read(bytes) => bytes,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_program_has_a_tracepoint_of_its_own() {
        let object = include_bytes!(concat!(env!("OUT_DIR"), "/tracer.bpf.o"));
        let object = libbpf_rs::ObjectBuilder::default().open_memory(object);
        let mut object = object.unwrap();
        let mut raw = Vec::new();
        for program in object.progs_mut() {
            let section = program.section().to_str().unwrap().to_owned();
            if let Some(tracepoint) = section.strip_prefix("raw_tp/") {
                raw.push(place(tracepoint).unwrap_or_else(|| panic!("no row of {tracepoint}")));
            }
        }
        // The list has only programs of the kind `raw_tp` so far. The programs on system calls are of the other kind,
        // `tp_btf`, so the tracepoints of these programs are added.
        let typed = ["sys_exit", "sys_enter"].map(|name| place(name).unwrap());
        raw.extend(typed);
        raw.sort_unstable();
        assert_eq!(raw, (0..TRACEPOINTS.len()).collect::<Vec<_>>());
    }

    #[test]
    fn every_published_form_of_sched_switch_is_known() {
        use kind::{INT, PTR};
        assert_eq!(switch_layout(&[INT, PTR, PTR]), Some((1, None)));
        assert_eq!(switch_layout(&[INT, PTR, PTR, INT]), Some((1, Some(3))));
        assert_eq!(switch_layout(&[INT, INT, PTR, PTR]), Some((2, Some(1))));
        assert_eq!(switch_layout(&[PTR, PTR]), None);
    }
}
