/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What the BPF programs put into their rings: the wire structs.
 *
 * This header is the source; src/wire.rs mirrors it and a test compares both
 * with the BTF of the compiled object. Padding is explicit. Times are
 * CLOCK_MONOTONIC in ns. All integers are the machine's own; the wire never
 * leaves the machine.
 */
#ifndef TR_EVENTS_H
#define TR_EVENTS_H

enum sched_kind {
	SCHED_SWITCH = 1,
	SCHED_WAKING = 2,
	SCHED_WAKEUP_NEW = 3,
};

enum sched_flag {
	SCHED_PREEMPT = 1, /* switch: prev was preempted */
	SCHED_IOWAIT = 2,  /* switch: prev->in_iowait */
	SCHED_IRQ = 4,     /* waking: from an interrupt */
	SCHED_VFORK = 8,   /* wakeup_new: the parent waits for this child */
};

/* The per-CPU rings hold these, and wire_lost. */
struct wire_sched {
	__u64 time;
	__u32 from;  /* prev, or the waker */
	__u32 to;    /* next, or the wakee */
	__u16 state; /* switch: raw prev_state */
	__u8 kind;   /* enum sched_kind */
	__u8 flags;  /* enum sched_flag */
	__u32 pad;
};

/* Told apart from wire_sched by its size; see record/src/rings.rs. */
struct wire_lost {
	__u64 since; /* stamp of the first lost event */
	__u64 until; /* stamp of the last */
	__u64 count;
	__u64 pad;
};

/* The lifecycle ring holds records that start with this. */
enum life_kind {
	LIFE_FORK = 1,
	LIFE_EXEC = 2,
	LIFE_EXIT = 3,
	LIFE_FINAL = 4,
	LIFE_RENAME = 5,
	LIFE_CGROUP_MKDIR = 6,
	LIFE_CGROUP_MOVE = 7,
	LIFE_LOST = 8,
};

struct wire_head {
	__u64 time;
	__u32 kind; /* enum life_kind */
	__u32 cpu;
};

struct wire_fork {
	struct wire_head head;
	__u32 parent_tid;
	__u32 parent_tgid;
	__u32 tid;
	__u32 tgid;
	__u64 start_time;
	__u64 cgroup;
	__u32 ns_tid;
	__u32 pad;
	char comm[16];
};

#define FILENAME_SHORT 256
#define FILENAME_LONG 4096

struct wire_exec {
	struct wire_head head;
	__u32 tid;
	__u32 tgid;
	__u32 old_tid;
	__u32 filename_len;  /* bytes at tail, with the NUL */
	__u32 filename_area; /* argv starts at tail + filename_area */
	__u32 argv_len;      /* bytes recorded */
	__u64 argv_full_len; /* true length */
	__u64 cgroup;
	__u32 argv_unknown; /* the memory could not be read */
	__u32 pad;
	char comm[16];
	char tail[];
};

struct wire_exit {
	struct wire_head head;
	__u32 tid;
	__u32 tgid;
	__u32 status;
	__u32 group_status;
	__u64 utime;
	__u64 stime;
	__u64 sum_exec_runtime;
	__u64 nvcsw;
	__u64 nivcsw;
	__u64 min_flt;
	__u64 maj_flt;
	__u64 max_rss_pages;
	__u64 read_bytes;
	__u64 write_bytes;
	__u32 group_dead;
	__u32 io_known;
};

struct wire_final {
	struct wire_head head;
	__u32 tid;
	__u32 pad;
	__u64 sum_exec_runtime;
	__u64 nvcsw;
	__u64 nivcsw;
};

struct wire_rename {
	struct wire_head head;
	__u32 tid;
	__u32 tgid;
	char comm[16];
};

#define CGROUP_PATH_MAX 1024

/* mkdir: tid and tgid are 0. */
struct wire_cgroup {
	struct wire_head head;
	__u32 tid;
	__u32 tgid;
	__u64 id;
	__u32 path_len; /* with the NUL */
	__u32 pad;
	char path[CGROUP_PATH_MAX];
};

struct wire_life_lost {
	struct wire_head head; /* time: stamp of the first since the last report */
	__u64 until;
	__u64 count; /* on this CPU since the start */
};

/* The task iterator writes these. */
struct wire_snapshot {
	__u64 time;
	__u64 start_time;
	__u64 cgroup;
	__u64 sum_exec_runtime;
	__u32 tid;
	__u32 tgid;
	__u32 parent_tgid;
	__u32 ns_tid;
	__u32 seen_tid; /* as the recorder's own pid namespace names it */
	__u16 state;
	__u8 on_cpu;
	__u8 kthread;
	__u32 followed;
	__u32 pad;
	char comm[16];
};

#define MAX_CPUS 1024

/* A CPU's account of what it could not put into a ring. */
struct account {
	/* Not yet reported in the ring; of lifecycle events: reported so far. */
	__u64 lost;
	__u64 lost_since; /* of what is not yet reported */
	__u64 lost_until;
	__u64 lost_total;
	__u64 emitted; /* attempts, when count_emitted is set */
	__u64 tick;    /* events since the last look at how full the ring is */
	__u64 preempt_count; /* where this CPU's preemption count is; 0: not looked up yet */
	__u64 pad;           /* a cache line for each CPU */
};

#endif
