//! The running kernel's features, by its BTF and not by its version: distributions move
//! features between versions.

use libbpf_rs::btf::types::{Composite, DataSec, FuncProto, MemberAttr, Ptr, Struct, Typedef, Var};
use libbpf_rs::btf::{Btf, BtfKind, BtfType, ReferencesType};

use crate::refusal::BTF;
use crate::{Error, Refusal};

/// The layout of this kernel's tracepoints.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Kernel {
    /// Index of `prev` among the arguments of `sched_switch`.
    pub switch_prev: u32,
    /// Index of `prev_state`; `None` before 5.18.
    pub switch_state: Option<u32>,
    /// `sched_process_exit` has the argument `group_dead` (6.16).
    pub exit_group_dead: bool,
    /// Bytes from a CPU's run queue to its preemption count, which distinguishes wake-ups by
    /// interrupts from those by the running task (x86).
    pub preempt_count: Option<i64>,
    /// The preemption count is in the running task (arm64).
    pub preempt_count_in_task: bool,
    /// Bytes from a CPU's run queue to its pointer to the running task.
    pub current: Option<i64>,
    /// The facts whose tracepoints it has.
    pub extras: Extras,
    /// `block_rq_issue` has the request queue as its first argument (before 5.11).
    pub issue_has_queue: bool,
    /// `block_bio_queue` has it, too (before 5.11).
    pub bio_has_queue: bool,
    /// `mark_victim` has the task as its argument (6.9).
    pub victim_is_task: bool,
}

/// Facts that not every kernel has tracepoints for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Extras(pub(crate) u32);

impl Extras {
    /// TCP connections.
    pub const NETWORK: Extras = Extras(1);
    /// Requests to block devices.
    pub const BLOCK: Extras = Extras(2);
    /// System calls (`CONFIG_FTRACE_SYSCALLS`), which are recorded only if asked for.
    pub const CALLS: Extras = Extras(1 << 8);
    /// Direct reclaim of memory.
    pub const RECLAIM: Extras = Extras(4);
    /// Reclaim of memory of a cgroup.
    pub const CGROUP_RECLAIM: Extras = Extras(8);
    /// Kills for lack of memory.
    pub const OOM_KILLS: Extras = Extras(16);
    /// DNS queries by UDP.
    pub const DNS: Extras = Extras(32);
    /// The disks that tasks wait for.
    pub const DISK_WAITS: Extras = Extras(64);
    /// The state of each task that is switched out, whatever wakes it meanwhile (5.18).
    pub const SWITCH_STATES: Extras = Extras(128);

    fn with(self, other: Extras, is: bool) -> Extras {
        Extras(if is { self.0 | other.0 } else { self.0 })
    }

    /// All of `other` are there.
    pub fn has(self, other: Extras) -> bool {
        self.0 & other.0 == other.0
    }
}

/// Tracepoints that a kernel can lack, and the facts that need them.
const OPTIONAL: [(&str, Extras); 13] = [
    ("inet_sock_set_state", Extras::NETWORK),
    ("block_rq_issue", Extras::BLOCK),
    ("block_rq_complete", Extras::BLOCK),
    ("block_bio_queue", Extras::DISK_WAITS),
    ("mm_vmscan_direct_reclaim_begin", Extras::RECLAIM),
    ("mm_vmscan_direct_reclaim_end", Extras::RECLAIM),
    ("mm_vmscan_memcg_reclaim_begin", Extras::CGROUP_RECLAIM),
    ("mm_vmscan_memcg_reclaim_end", Extras::CGROUP_RECLAIM),
    ("mark_victim", Extras::OOM_KILLS),
    ("net_dev_queue", Extras::DNS),
    ("netif_receive_skb", Extras::DNS),
    ("sys_enter", Extras::CALLS),
    ("sys_exit", Extras::CALLS),
];

/// The tracepoints that the recorder requires.
const NEEDED: [&str; 9] = [
    "sched_switch",
    "sched_waking",
    "sched_wakeup_new",
    "sched_process_fork",
    "sched_process_exec",
    "sched_process_exit",
    "task_rename",
    "cgroup_attach_task",
    "signal_generate",
];

impl Kernel {
    /// Reads the kernel's BTF.
    ///
    /// # Errors
    /// [`Error::Refused`] when it cannot be read, [`Error::Missing`] naming what a
    /// kernel before 5.8 (or one built without it) lacks.
    pub fn detect() -> Result<Kernel, Error> {
        let refused = || Error::Refused(Refusal::find().unwrap_or(Refusal::NoBtf));
        // The recorder reads /proc, too.
        for needed in ["/proc/self", BTF] {
            if !std::path::Path::new(needed).exists() {
                return Err(refused());
            }
        }
        crate::programs::keep_messages();
        let btf = Btf::from_vmlinux().map_err(|source| match std::fs::File::open(BTF) {
            Ok(_) => Error::Bpf {
                action: "read the kernel's BTF",
                source,
            },
            Err(_) => refused(),
        })?;
        for (name, since) in [("bpf_ringbuf", "5.8"), ("bpf_iter__task", "5.8")] {
            if btf.type_by_name::<Struct<'_>>(name).is_none() {
                let what = if name == "bpf_ringbuf" {
                    "BPF ring buffers"
                } else {
                    "BPF task iterators"
                };
                return Err(Error::Missing {
                    what: what.into(),
                    since,
                });
            }
        }
        for name in NEEDED {
            if arguments(&btf, name).is_none() {
                return Err(Error::Missing {
                    what: format!("the tracepoint {name}"),
                    since: "5.8",
                });
            }
        }
        let switch = arguments(&btf, "sched_switch").unwrap_or_default();
        let exit = arguments(&btf, "sched_process_exit").unwrap_or_default();
        let (switch_prev, switch_state) = switch_layout(&switch).ok_or_else(|| Error::Missing {
            what: "a known form of sched_switch".into(),
            since: "5.8",
        })?;
        Ok(Kernel {
            switch_prev,
            switch_state,
            exit_group_dead: exit.len() > 1,
            preempt_count: per_cpu_distance(&btf, "__preempt_count", "preempt_count"),
            preempt_count_in_task: member_offset(&btf, "thread_info", "preempt").is_some(),
            current: per_cpu_distance(&btf, "current_task", "current_task"),
            extras: extras(&btf).with(Extras::SWITCH_STATES, switch_state.is_some()),
            victim_is_task: arguments(&btf, "mark_victim")
                .is_some_and(|all| all.first() == Some(&BtfKind::Ptr)),
            bio_has_queue: arguments(&btf, "block_bio_queue").is_some_and(|all| all.len() > 1),
            issue_has_queue: arguments(&btf, "block_rq_issue").is_some_and(|all| all.len() > 1),
        })
    }

    /// Wake-ups by interrupts are told from those by the running task.
    pub fn knows_interrupts(&self) -> bool {
        self.preempt_count.is_some() || self.preempt_count_in_task
    }

    /// Whether a tracepoint of the programs is there: [`Kernel::detect`] requires the others.
    pub(crate) fn has(&self, tracepoint: &str) -> bool {
        let optional = OPTIONAL.iter().find(|(name, _)| *name == tracepoint);
        optional.is_none_or(|(_, extra)| self.extras.has(*extra))
    }
}

/// The facts of which no tracepoint is missing.
fn extras(btf: &Btf<'_>) -> Extras {
    let bits = OPTIONAL.iter().fold(0, |bits, (_, extra)| bits | extra.0);
    let missing = OPTIONAL
        .iter()
        .filter(|(name, _)| arguments(btf, name).is_none());
    Extras(missing.fold(bits, |bits, (_, extra)| bits & !extra.0))
}

/// The positions of `prev` and `prev_state`, from the arguments' kinds.
///
/// Before 5.18: `preempt, prev, next`. 5.18 had `preempt, prev_state, prev,
/// next`; since then it is `preempt, prev, next, prev_state`.
fn switch_layout(arguments: &[BtfKind]) -> Option<(u32, Option<u32>)> {
    use BtfKind::{Int, Ptr};
    match arguments {
        [Int, Ptr, Ptr] => Some((1, None)),
        [Int, Ptr, Ptr, Int] => Some((1, Some(3))),
        [Int, Int, Ptr, Ptr] => Some((2, Some(1))),
        _ => None,
    }
}

/// From `runqueues` to another variable in the per-CPU section. x86 only: other machines keep
/// the preemption count in the task, and the task in a register. In 6.2 to 6.14 both are
/// members of `pcpu_hot`.
fn per_cpu_distance(btf: &Btf<'_>, variable: &str, member: &str) -> Option<i64> {
    if !cfg!(target_arch = "x86_64") {
        return None;
    }
    // CONFIG_FAIR_GROUP_SCHED: a task has a pointer to its CPU's run queue.
    member_offset(btf, "cfs_rq", "rq")?;
    member_offset(btf, "sched_entity", "cfs_rq")?;
    let section: DataSec<'_> = btf.type_by_name(".data..percpu")?;
    let offset_of = |name: &str| {
        section
            .iter()
            .find(|var| {
                btf.type_by_id::<Var<'_>>(var.ty)
                    .is_some_and(|v| v.name() == Some(name.as_ref()))
            })
            .map(|var| i64::from(var.offset))
    };
    let place = offset_of(variable)
        .or_else(|| Some(offset_of("pcpu_hot")? + member_offset(btf, "pcpu_hot", member)?))?;
    Some(place - offset_of("runqueues")?)
}

/// The offset of a struct's member in bytes, anonymous structs and unions included.
fn member_offset(btf: &Btf<'_>, name: &str, member: &str) -> Option<i64> {
    fn find(btf: &Btf<'_>, composite: &Composite<'_>, member: &str) -> Option<i64> {
        composite.iter().find_map(|m| {
            let MemberAttr::Normal { offset } = m.attr else {
                return None;
            };
            let offset = i64::from(offset / 8);
            match m.name {
                Some(name) => (name == member).then_some(offset),
                None => {
                    let inner = btf
                        .type_by_id::<BtfType<'_>>(m.ty)?
                        .skip_mods_and_typedefs();
                    Some(offset + find(btf, &Composite::try_from(inner).ok()?, member)?)
                }
            }
        })
    }
    let structure: Struct<'_> = btf.type_by_name(name)?;
    find(btf, &Composite::from(structure), member)
}

/// The kinds of a tracepoint's arguments, without the leading `void *__data`.
fn arguments(btf: &Btf<'_>, tracepoint: &str) -> Option<Vec<BtfKind>> {
    let typedef: Typedef<'_> = btf.type_by_name(&format!("btf_trace_{tracepoint}"))?;
    let pointer = Ptr::try_from(typedef.referenced_type()).ok()?;
    let function = FuncProto::try_from(pointer.referenced_type()).ok()?;
    let kinds = function.iter().skip(1).map(|parameter| {
        btf.type_by_id::<BtfType<'_>>(parameter.ty)
            .map(|t| t.skip_mods_and_typedefs().kind())
    });
    kinds.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_published_form_of_sched_switch_is_known() {
        use BtfKind::{Int, Ptr};
        assert_eq!(switch_layout(&[Int, Ptr, Ptr]), Some((1, None)));
        assert_eq!(switch_layout(&[Int, Ptr, Ptr, Int]), Some((1, Some(3))));
        assert_eq!(switch_layout(&[Int, Int, Ptr, Ptr]), Some((2, Some(1))));
        assert_eq!(switch_layout(&[Ptr, Ptr]), None);
    }
}
