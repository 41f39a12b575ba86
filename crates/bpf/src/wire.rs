//! Mirrors of the structs in `src/bpf/events.h`, the source. A test compares sizes and
//! offsets with the BTF of the compiled programs.

use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

/// `sched_kind`: half of a loss.
pub const SCHED_LOST: u8 = 0;
/// `sched_kind`: `sched_switch`.
pub const SCHED_SWITCH: u8 = 1;
/// `sched_kind`: `sched_waking`.
pub const SCHED_WAKING: u8 = 2;
/// `sched_kind`: `sched_wakeup_new`.
pub const SCHED_WAKEUP_NEW: u8 = 3;

/// `sched_flag`: prev was preempted.
pub const SCHED_PREEMPT: u8 = 1;
/// `sched_flag`: prev waits for block I/O.
pub const SCHED_IOWAIT: u8 = 2;
/// `sched_flag`: woken from an interrupt.
pub const SCHED_IRQ: u8 = 4;
/// `sched_flag`: the parent waits for the new task's exec or exit.
pub const SCHED_VFORK: u8 = 8;

/// `life_kind`: [`Fork`].
pub const LIFE_FORK: u32 = 1;
/// `life_kind`: [`Exec`].
pub const LIFE_EXEC: u32 = 2;
/// `life_kind`: [`Exit`].
pub const LIFE_EXIT: u32 = 3;
/// `life_kind`: [`Final`].
pub const LIFE_FINAL: u32 = 4;
/// `life_kind`: [`Rename`].
pub const LIFE_RENAME: u32 = 5;
/// `life_kind`: [`Cgroup`], a new cgroup.
pub const LIFE_CGROUP_MKDIR: u32 = 6;
/// `life_kind`: [`Cgroup`], a task moved.
pub const LIFE_CGROUP_MOVE: u32 = 7;
/// `life_kind`: [`LifeLost`].
pub const LIFE_LOST: u32 = 8;

/// The most CPUs the programs have accounts for.
pub const MAX_CPUS: usize = 1024;

macro_rules! wire {
    ($($(#[$meta:meta])* $name:ident = $c:literal { $($field:ident : $type:ty),* $(,)? })*) => {
        $(
            $(#[$meta])*
            #[repr(C)]
            #[derive(Clone, Copy, Debug, FromBytes, IntoBytes, KnownLayout, Immutable)]
            #[allow(missing_docs)] // events.h is where the fields are explained
            pub struct $name { $(pub $field: $type),* }
        )*

        /// Name of each struct in C, its size, and its fields with their offsets.
        #[cfg(test)]
        fn layouts() -> Vec<(&'static str, usize, Vec<(&'static str, usize)>)> {
            vec![$((
                $c,
                size_of::<$name>(),
                vec![$((stringify!($field), std::mem::offset_of!($name, $field))),*],
            )),*]
        }
    };
}

wire! {
    /// A scheduling event, packed; see [`Slot::event`].
    Slot = "wire_slot" { when: u64, what: u64 }
    /// The read position in a CPU's slots.
    Progress = "progress" { tail: u64, pad: [u64; 7] }
    /// The head of every lifecycle record.
    Head = "wire_head" { time: u64, kind: u32, cpu: u32 }
    /// A new task.
    Fork = "wire_fork" {
        head: Head, parent_tid: u32, parent_tgid: u32, tid: u32, tgid: u32, start_time: u64,
        cgroup: u64, ns_tid: u32, pad: u32, comm: [u8; 16],
    }
    /// A successful exec; the file name and the arguments follow.
    Exec = "wire_exec" {
        head: Head, tid: u32, tgid: u32, old_tid: u32, filename_len: u32, filename_area: u32,
        argv_len: u32, argv_full_len: u64, cgroup: u64, argv_unknown: u32, pad: u32, comm: [u8; 16],
    }
    /// A task begins to exit.
    Exit = "wire_exit" {
        head: Head, tid: u32, tgid: u32, status: u32, group_status: u32, utime: u64, stime: u64,
        sum_exec_runtime: u64, nvcsw: u64, nivcsw: u64, min_flt: u64, maj_flt: u64,
        max_rss_pages: u64, read_bytes: u64, write_bytes: u64, group_dead: u32, io_known: u32,
    }
    /// A task's last switch-out.
    Final = "wire_final" {
        head: Head, tid: u32, pad: u32, sum_exec_runtime: u64, nvcsw: u64, nivcsw: u64,
    }
    /// A new comm.
    Rename = "wire_rename" { head: Head, tid: u32, tgid: u32, comm: [u8; 16] }
    /// A new cgroup, or a task moved to one.
    Cgroup = "wire_cgroup" {
        head: Head, tid: u32, tgid: u32, id: u64, path_len: u32, pad: u32, path: [u8; 1024],
    }
    /// The lost lifecycle events of one CPU since the start.
    LifeLost = "wire_life_lost" { head: Head, until: u64, count: u64 }
    /// A living task, from the task iterator.
    Snapshot = "wire_snapshot" {
        time: u64, start_time: u64, cgroup: u64, sum_exec_runtime: u64, tid: u32, tgid: u32,
        parent_tgid: u32, ns_tid: u32, seen_tid: u32, state: u16, on_cpu: u8, kthread: u8,
        followed: u32, pad: u32, comm: [u8; 16],
    }
}

/// The scheduling event in a [`Slot`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sched {
    /// `CLOCK_MONOTONIC` in ns.
    pub time: u64,
    /// prev, or the waker.
    pub from: u32,
    /// next, or the wakee.
    pub to: u32,
    /// Of a switch, the raw `prev_state`.
    pub state: u16,
    /// [`SCHED_SWITCH`], [`SCHED_WAKING`] or [`SCHED_WAKEUP_NEW`].
    pub kind: u8,
    /// [`SCHED_PREEMPT`] and the others.
    pub flags: u8,
}

/// Lost scheduling events of one CPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lost {
    /// Time of the first, `CLOCK_MONOTONIC` in ns.
    pub since: u64,
    /// Time of the last.
    pub until: u64,
    /// Their number.
    pub count: u64,
}

/// A task id has no more bits (`PID_MAX_LIMIT`, include/linux/threads.h).
const TID_BITS: u32 = 22;

impl Slot {
    /// Not written, or not completely.
    pub fn is_empty(self) -> bool {
        self.when == 0 || self.what == 0
    }

    /// `sched_kind`.
    pub fn kind(self) -> u8 {
        (self.when & 3) as u8
    }

    /// `CLOCK_MONOTONIC` in ns.
    pub fn time(self) -> u64 {
        self.when >> 2
    }

    /// The event; meaningless for a [`SCHED_LOST`].
    pub fn event(self) -> Sched {
        let tid = |shift: u32| (self.what >> shift & ((1 << TID_BITS) - 1)) as u32;
        Sched {
            time: self.time(),
            from: tid(42),
            to: tid(20),
            state: (self.what >> 4 & 0xffff) as u16,
            kind: self.kind(),
            flags: (self.what & 15) as u8,
        }
    }
}

impl From<Sched> for Slot {
    fn from(event: Sched) -> Slot {
        Slot {
            when: event.time << 2 | u64::from(event.kind & 3),
            what: u64::from(event.from) << 42
                | u64::from(event.to) << 20
                | u64::from(event.state) << 4
                | u64::from(event.flags & 15),
        }
    }
}

#[cfg(test)]
mod tests {
    use libbpf_rs::btf::types::Struct;
    use libbpf_rs::btf::{Btf, HasSize};

    use super::{layouts, Sched, Slot};

    #[test]
    fn a_slot_holds_the_largest_event_and_the_smallest() {
        for (from, to, state, flags) in [(4_194_303, 4_194_302, 0xffff, 15), (0, 1, 0, 0)] {
            let event = Sched {
                time: (1 << 62) - 1,
                from,
                to,
                state,
                kind: 3,
                flags,
            };
            let slot = Slot::from(event);
            assert!(!slot.is_empty());
            assert_eq!(slot.event(), event);
        }
    }

    #[test]
    fn mirrors_have_the_layout_of_the_c_structs() {
        let object = include_bytes!(concat!(env!("OUT_DIR"), "/tracer.bpf.o"));
        let btf = Btf::from_raw("tracer", object)
            .unwrap()
            .expect("the object has BTF");
        for (name, size, fields) in layouts() {
            let c: Struct<'_> = btf
                .type_by_name(name)
                .unwrap_or_else(|| panic!("no {name} in BTF"));
            assert_eq!(c.size(), size, "size of {name}");
            for (field, offset) in fields {
                let member = c
                    .iter()
                    .find(|m| m.name.is_some_and(|n| n == field))
                    .unwrap_or_else(|| panic!("no {name}.{field}"));
                let bits = match member.attr {
                    libbpf_rs::btf::types::MemberAttr::Normal { offset } => offset,
                    libbpf_rs::btf::types::MemberAttr::BitField { .. } => panic!("bit field"),
                };
                assert_eq!(bits as usize, offset * 8, "offset of {name}.{field}");
            }
        }
    }
}
