//! Mirrors of the C structs that the BPF programs and their reader in user space exchange. `src/bpf/events.h` is the
//! source; a test compares sizes and offsets with the BTF of the compiled programs. The enums are those of this header.

use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

use crate::skel::types::slot_shift as At;

/// The number of entries in a table of sums of system calls, a power of two.
pub const CALL_SUMS: usize = 65_536;
/// The flag, in the key of a [`CallSum`], of a system call in the table of 32-bit programs.
pub const CALL_COMPAT: u32 = 1 << 31;
/// The number of system calls for which the tables of the reasons for waits and of the time-outs have an entry.
pub const SYSCALLS: usize = 512;

/// The state that a task has in its last switch-out (`TASK_DEAD` in `include/linux/sched.h`).
pub const TASK_DEAD: u16 = 0x80;

/// The kind of a record in the ring buffer of lifecycle events, such as a fork or an exec.
pub use crate::skel::types::life_kind as Kind;
/// The enums of the numbers and flags in a [`Slot`], and of the times in [`Delays`] that are known. [`Reason`] also has
/// the flags that an entry in the table of the reasons for waits in system calls can have.
pub use crate::skel::types::{
    delay_bit as DelayBit, reason as Reason, sched_flag as SchedFlag, sched_kind as SchedKind,
    waking_context as WakingContext,
};

/// The value of `followed` in a [`Snapshot`] of a task that belongs to a recorded server.
pub const FOLLOWED_SERVER: u32 = 2;

/// The largest number of kernel frames, and of user-mode frames, that a sampled stack has.
pub const SAMPLE_DEPTH: usize = 127;
/// The status of a [`StackFrame`] that is given as a build id and an offset in the file.
pub const FRAME_IN_FILE: i32 = 1;
/// The status of a [`StackFrame`] that is given as an address.
pub const FRAME_ADDRESS: i32 = 2;

/// The state of an established TCP connection.
pub const TCP_ESTABLISHED: u16 = 1;
/// The state of a TCP connection that was begun and is not established.
pub const TCP_SYN_SENT: u16 = 2;
/// The state of a TCP connection whose peer has closed its direction.
pub const TCP_CLOSE_WAIT: u16 = 8;

/// The BPF programs stop adding directory names to a [`Directory`]'s path after this many bytes.
pub const DIRECTORY_AREA: usize = 1024;
/// The size in bytes of the longest file name that Linux supports, with the NUL at its end.
pub const NAME_AREA: usize = 256;

/// The largest number of shares in an [`Others`] record. Each share is the CPU time of one thread group and task name.
pub const OTHERS_SHARES: usize = 8;

/// The largest number of CPUs that the BPF programs support.
pub const MAX_CPUS: usize = 1024;
/// The BPF programs measure the time of one run in every group of this many runs on a CPU.
pub const SAMPLED: u64 = 127;

/// The largest number of block devices for which the BPF programs sum up requests.
pub const BLOCK_DEVICES: usize = 64;
/// The number of groups into which requests to block devices are divided: read, write, discard and flush.
pub const BLOCK_GROUPS: usize = 4;
/// The number of buckets in a histogram of the latencies of requests to block devices.
pub const BLOCK_BUCKETS: usize = 32;

macro_rules! wire {
    ($($(#[$meta:meta])* $name:ident = $c:literal { $($field:ident : $type:ty),* $(,)? })*) => {
        $(
            $(#[$meta])*
            #[repr(C)]
            #[derive(Clone, Copy, Debug, FromBytes, IntoBytes, KnownLayout, Immutable)]
            // The fields are explained in events.h.
            pub struct $name { $(pub $field: $type),* }
        )*

        /// For each struct of the C header, its name in C, its size in bytes, and the names and offsets of its fields.
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
    /// A slot of mapped memory with a scheduling event in packed form; see [`Slot::event`].
    Slot = "wire_slot" { when: u64, what: u64 }
    /// The head with which every lifecycle record begins.
    Head = "wire_head" { time: u64, kind: u32, cpu: u32 }
    Fork = "wire_fork" {
        head: Head, parent_tid: u32, parent_tgid: u32, tid: u32, tgid: u32, start_time: u64,
        cgroup: u64, ns_tid: u32, pad: u32, comm: [u8; 16],
    }
    /// A process has executed a program. The file name and the arguments follow this struct in the record.
    Exec = "wire_exec" {
        head: Head, tid: u32, tgid: u32, old_tid: u32, filename_len: u32, filename_area: u32,
        argv_len: u32, argv_full_len: u64, cgroup: u64, argv_unknown: u32, runtime: u32,
        max_rss_pages: u64, fsuid: u32, fsgid: u32, root_mount: i32, pad: u32, comm: [u8; 16],
    }
    /// The working directory of a task that executes a program.
    Directory = "wire_directory" {
        head: Head, tid: u32, length: i32, names: [u8; DIRECTORY_AREA + NAME_AREA],
    }
    /// The times in ns that a task has spent in run queues and in waits for block I/O and swap in its whole life.
    Delays = "wire_delays" { run: u64, block: u64, swap: u64, known: u64 }
    /// A task begins to exit, and will be switched out for the last time later.
    Exit = "wire_exit" {
        head: Head, tid: u32, tgid: u32, status: u32, group_status: u32, utime: u64, stime: u64,
        sum_exec_runtime: u64, nvcsw: u64, nivcsw: u64, min_flt: u64, maj_flt: u64,
        max_rss_pages: u64, read_bytes: u64, write_bytes: u64, program_rss_pages: u64,
        delays: Delays, group_dead: u32, io_known: u32,
    }
    /// A task was switched out for the last time.
    Final = "wire_final" {
        head: Head, tid: u32, pad: u32, sum_exec_runtime: u64, nvcsw: u64, nivcsw: u64,
        delays: Delays,
    }
    Rename = "wire_rename" { head: Head, tid: u32, tgid: u32, comm: [u8; 16] }
    /// A new cgroup exists, or a task was moved to a cgroup.
    Cgroup = "wire_cgroup" {
        head: Head, tid: u32, tgid: u32, id: u64, path_len: u32, pad: u32, path: [u8; 1024],
    }
    /// A record of a loss: the number of lifecycle events of one CPU that have been lost since the start.
    LifeLost = "wire_life_lost" { head: Head, until: u64, count: u64 }
    /// A task with its ids, name, state and CPU time, from the iterator over living tasks, or in the record of a join
    /// or end.
    Snapshot = "wire_snapshot" {
        time: u64, start_time: u64, cgroup: u64, sum_exec_runtime: u64, tid: u32, tgid: u32,
        parent_tgid: u32, ns_tid: u32, seen_tid: u32, state: u16, on_cpu: u8, kthread: u8,
        followed: u32, pad: u32, comm: [u8; 16],
    }
    /// The total times that a task has spent on CPUs and in run queues so far, from the iterator over the tasks or at
    /// the task's end.
    Total = "wire_total" {
        sum_exec_runtime: u64, run_delay: u64, tid: u32, tgid: u32, run_delay_known: u32, pad: u32,
    }
    /// A task has ended in a recording that has no scheduling events.
    End = "wire_end" {
        head: Head, total: Total, status: u32, group_dead: u32, max_rss_pages: u64, task: Snapshot,
    }
    /// The kernel's last totals of a task that has ended: the times that it spent on CPUs and in run queues.
    TotalLast = "wire_last" { head: Head, total: Total }
    /// A task has come into the cgroup whose tasks are recorded. If the task is the leader of its process, the
    /// arguments of its program follow this struct in the record.
    Join = "wire_join" {
        head: Head, task: Snapshot, argv_len: u32, argv_unknown: u32, argv_full_len: u64,
    }
    /// The state of a TCP connection of a recorded task has changed, for example to established.
    Connection = "wire_connection" {
        head: Head, socket: u64, tid: u32, tgid: u32, local_port: u16, remote_port: u16,
        family: u16, error: u16, local: [u8; 16], remote: [u8; 16], sent: u64, received: u64,
        state: u16, reset: u16, pad: u32,
    }
    /// A recorded process is in another time namespace than the recorder, so that the clocks of the process have an
    /// offset.
    Clock = "wire_clock" { head: Head, tgid: u32, ns_tgid: u32, seconds: i64, ns: i64 }
    /// The memory reclaim of a task since its previous record of this kind.
    Reclaim = "wire_reclaim" { head: Head, tid: u32, tgid: u32, count: u64, ns: u64 }
    /// The kernel kills a process for lack of memory.
    OomKill = "wire_oom_kill" { head: Head, tid: u32, tgid: u32, pages: u64 }
    /// The disk of a task's waits for block I/O, from this record to the next one about the task.
    DiskWait = "wire_disk_wait" { head: Head, tid: u32, tgid: u32, device: u32, pad: u32 }
    /// The file of a task's waits in fsync, from this record to the next one about the task.
    SyncFile = "wire_sync_file" {
        head: Head, tid: u32, tgid: u32, length: u32, pad: u32, name: [u8; 128],
    }
    /// Whether a task that leaves one of the chosen CPUs may run on this CPU alone. The record is written when the
    /// answer changes.
    Pinned = "wire_pinned" { head: Head, tid: u32, tgid: u32, pinned: u32, pad: u32 }
    /// The name and the ids of a task that is not recorded. This record is written at the first event that involves
    /// both this task and a recorded task.
    Outsider = "wire_outsider" {
        head: Head, tid: u32, tgid: u32, start_time: u64, cgroup: u64, kthread: u32, pad: u32,
        comm: [u8; 16],
    }
    /// A share of an [`Others`] record: the time in ns for which the tasks with this name in this thread group had a
    /// CPU. The thread group is 0 if there are several. A time of 0 ends the list.
    Share = "wire_share" { ns: u64, tgid: u32, pad: u32, comm: [u8; 16] }
    /// The tasks that are not recorded but had a CPU while recorded tasks waited for it, with their times on the CPU.
    Others = "wire_others" {
        head: Head, since: u64, rest: u64, switches: u64, shares: [Share; OTHERS_SHARES],
    }
    /// The first process of a container has executed the container's runtime. `evidence` says why the container is
    /// recorded, or that it is not.
    Container = "wire_container" { head: Head, tid: u32, tgid: u32, client: u32, evidence: u32 }
    /// A server has answered a client. Either the client is recorded and the server is new: the server is recorded from
    /// now on. Or the server is recorded and the client is not.
    Server = "wire_server" { head: Head, tid: u32, tgid: u32, client: u32, other: u32 }
    /// A task has sent or received a DNS message by UDP.
    Dns = "wire_dns" {
        head: Head, tid: u32, tgid: u32, server: [u8; 16], family: u16, port: u16, length: u32,
        message: [u8; 512],
    }
    /// A frame of a sampled stack in user mode.
    StackFrame = "wire_frame" { status: i32, build_id: [u8; 20], at: u64 }
    /// The stack of a running task, or of a task after a wait. The frames in user mode follow this struct in the
    /// record.
    Sample = "wire_sample" {
        head: Head, tid: u32, tgid: u32, seen_tgid: u32, off_cpu: u32, ns: u64, kernel_len: i32,
        user_len: i32, arguments: u64, kernel: [u64; SAMPLE_DEPTH],
    }
    /// The sums over the requests of one group, such as reads, to a block device.
    BlockSums = "block_sums" {
        count: u64, bytes: u64, latency: u64, longest: u64, interval: u64,
        buckets: [u32; BLOCK_BUCKETS],
    }
    /// The sums over all requests to a block device, one for each group of requests.
    BlockDevice = "block_device" {
        in_flight: u64, last: u64, busy: u64, sums: [BlockSums; BLOCK_GROUPS],
    }
    /// The sums over the calls of one system call by a process since the table was emptied.
    CallSum = "call_sum" { key: u64, count: u64, errors: u64, ns: u64, longest: u64 }
}

impl Head {
    /// The kind of the record that begins with this head.
    pub fn kind(&self) -> Kind {
        Kind(self.kind)
    }
}

/// The scheduling event that is packed in a [`Slot`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sched {
    /// The time of the scheduling event by `CLOCK_MONOTONIC` in ns.
    pub time: u64,
    /// The task that is switched out, by its tid; in a waking, the task that wakes the other one.
    pub from: u32,
    /// The task that is switched in, by its tid; in a waking, the task that is woken.
    pub to: u32,
    /// The raw state of the task that is switched out (`prev_state`), or the context of a waking ([`WakingContext`]).
    pub state: u16,
    /// The reason for the sleep that begins with the switch.
    pub reason: Reason,
    /// The time-out of the sleep that begins with the switch: a value of `enum timeout`, or a number that stands for a
    /// range of lengths.
    pub timeout: u8,
    pub kind: SchedKind,
    /// The flags of the scheduling event ([`SchedFlag`]).
    pub flags: u8,
}

/// A loss of scheduling events of one CPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lost {
    /// The time of the first lost scheduling event by `CLOCK_MONOTONIC` in ns.
    pub since: u64,
    /// The time of the last lost scheduling event by `CLOCK_MONOTONIC` in ns.
    pub until: u64,
    /// The number of scheduling events of the CPU that this loss is about.
    pub count: u64,
}

impl Slot {
    /// Whether the slot has no scheduling event, or an event that is not completely written yet.
    pub fn is_empty(self) -> bool {
        self.when == 0 || self.what == 0
    }

    /// The kind of the scheduling event in the slot.
    pub fn kind(self) -> SchedKind {
        SchedKind((self.when & ((1 << At::SLOT_REASON_SHIFT.0) - 1)) as u32)
    }

    /// The time of the slot's scheduling event by `CLOCK_MONOTONIC` in ns. The slot has only the lowest 49 bits of the
    /// event's time; `near` is any time that differs from the event's by less than three days.
    pub fn time(self, near: u64) -> u64 {
        let shift = At::SLOT_TIME_SHIFT.0;
        let distance = (self.when >> shift).wrapping_sub(near) << shift;
        near.wrapping_add((distance as i64 >> shift) as u64)
    }

    /// The scheduling event that is packed in the slot, which must not be of kind `SCHED_LOST`. `near` is a time by
    /// `CLOCK_MONOTONIC` in ns that differs from the event's by less than three days.
    pub fn event(self, near: u64) -> Sched {
        // The number in the bits of a word from the place `low` up to below the place `end`.
        let part = |word: u64, low: u32, end: u32| word >> low & ((1 << (end - low)) - 1);
        let (from, to) = (At::SLOT_FROM_SHIFT.0, At::SLOT_TO_SHIFT.0);
        let (state, time) = (At::SLOT_STATE_SHIFT.0, At::SLOT_TIME_SHIFT.0);
        let (reason, timeout) = (At::SLOT_REASON_SHIFT.0, At::SLOT_TIMEOUT_SHIFT.0);
        Sched {
            time: self.time(near),
            from: part(self.what, from, u64::BITS) as u32,
            to: part(self.what, to, from) as u32,
            state: part(self.what, state, to) as u16,
            reason: Reason(part(self.when, reason, timeout) as u32),
            timeout: part(self.when, timeout, time) as u8,
            kind: self.kind(),
            flags: part(self.what, 0, state) as u8,
        }
    }
}

#[cfg(test)]
mod tests {
    use libbpf_rs::btf::types::Struct;
    use libbpf_rs::btf::{Btf, HasSize};

    use super::{layouts, At, Reason, Sched, SchedKind, Slot};

    #[test]
    fn a_slot_has_room_for_the_largest_event() {
        let (when, what) = (u64::MAX, u64::MAX);
        let largest = Sched {
            time: (1 << 49) - 1,
            from: (1 << 22) - 1, // PID_MAX_LIMIT in include/linux/threads.h
            to: (1 << 22) - 1,
            state: 0xffff,
            reason: Reason::REASON_MASK,
            timeout: 255,
            kind: SchedKind::SCHED_WAKEUP_NEW,
            flags: 15,
        };
        assert_eq!(Slot { when, what }.event(1 << 49), largest);
    }

    #[test]
    fn a_time_is_extended_by_one_nearby() {
        let day = 86_400 * 1_000_000_000u64;
        for near in [0, day, 1 << 49, 30 * day, 10_000 * day, u64::MAX / 2] {
            for time in [near, near + 1, near + 3 * day, near.saturating_sub(3 * day)] {
                let slot = Slot {
                    when: time << At::SLOT_TIME_SHIFT.0 | 0x7fff,
                    what: 1,
                };
                assert_eq!(slot.time(near), time, "near {near}");
            }
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
