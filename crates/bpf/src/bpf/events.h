/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The wire structs, from the BPF programs to the recorder.
 *
 * This header is the source. src/wire.rs mirrors it, and a test compares both with the BTF
 * of the compiled object. Padding is explicit. Times are CLOCK_MONOTONIC in ns. Integers
 * have the machine's byte order.
 */
#ifndef TR_EVENTS_H
#define TR_EVENTS_H

#include "kernel.h"

enum sched_kind {
	SCHED_LOST = 0,
	SCHED_SWITCH = 1,
	SCHED_WAKING = 2,
	SCHED_WAKEUP_NEW = 3,
};

enum sched_flag {
	SCHED_PREEMPT = 1, /* switch: prev was preempted */
	SCHED_IOWAIT = 2,  /* switch: prev->in_iowait */
	SCHED_VFORK = 8,   /* wakeup_new: the parent waits for this child */
};

enum waking_context {
	CONTEXT_TASK = 0,
	CONTEXT_HARDIRQ = 1,
	CONTEXT_SOFTIRQ = 2,
	/* a softirq in the waker's own send to a socket */
	CONTEXT_SEND = 3,
};

/* The reasons of a sleep that a system call determines. The numbers are the trace format's, which a
 * test of the recorder compares. */
enum reason {
	REASON_UNKNOWN = 0,
	REASON_CHILD = 1,
	REASON_LOCK = 2,
	REASON_TIMER = 3,
	REASON_SIGNAL = 4,
	REASON_POLL = 5,
	REASON_PIPE_READ = 6,
	REASON_PIPE_WRITE = 7,
	REASON_SOCKET_READ = 8,
	REASON_SOCKET_WRITE = 9,
	REASON_TERMINAL = 10,
	REASON_FILE_READ = 11,
	REASON_FILE_WRITE = 12,
	REASON_SYNC = 13,
	REASON_PATH = 14,
	REASON_OTHER_DESCRIPTOR = 15,
	REASON_FILE_LOCK = 16,
	REASON_IO_URING = 17,
	REASON_MEMORY = 18,
	REASON_PAGE_FAULT = 19,
	REASON_EXEC = 20,
	REASON_EXIT = 21,
	REASON_CLONE = 22,
	REASON_IPC = 23,
	REASON_OTHER = 24,
	REASON_MASK = 31,
	/* The kind of the descriptor in the first argument decides. The reason is that of a read
	 * from it, or, with REASON_WRITE, that of a write, whose number is one higher. Other
	 * calls with REASON_WRITE synchronize the file in the first argument. */
	REASON_BY_DESCRIPTOR = 32,
	REASON_WRITE = 64,
	/* The call can wake the reader of a socket, in a softirq. */
	REASON_SENDS = 128,
};

/* The time-out of a sleep. The numbers are the trace format's. */
enum timeout {
	TIMEOUT_UNKNOWN = 0,
	TIMEOUT_NONE = 1,
	TIMEOUT_SOME = 2, /* of unknown length */
	/* The first class has less than 1,024 ns; the others are four an octave, the last has the rest. */
	TIMEOUT_SHORT = 3,
	TIMEOUT_LAST = 126,
	/* A connection of the process has sent bytes that are not answered. */
	TIMEOUT_ASKED = 128,
};

/* Where a system call has its time-out, in the table of time-outs. 0: nowhere. */
enum timeout_form {
	TIMEOUT_TIMESPEC = 1, /* a pointer to a struct timespec */
	TIMEOUT_TIMEVAL = 2,
	TIMEOUT_MILLISECONDS = 3, /* negative: none */
	TIMEOUT_FUTEX = 4,
	TIMEOUT_CLOCK = 5,    /* clock_nanosleep */
	TIMEOUT_DEADLINE = 6, /* a pointer to an absolute time */
	TIMEOUT_SOCKET = 7,   /* the option SO_RCVTIMEO of the descriptor's socket */
	TIMEOUT_FORM = 7,
	/* The number of the argument. */
	TIMEOUT_ARGUMENT_SHIFT = 3,
	/* The call waits for descriptors: argument 1 has their number; arguments 0 to 3 have it and the
	 * sets. */
	TIMEOUT_POLLS = 64,
	TIMEOUT_SELECTS = 128,
};

/* The number of system calls in the tables of reasons and time-outs. */
#define SYSCALLS 512

/*
 * A scheduling event in the slots of its CPU. Neither word of a written slot is 0, and the
 * reader sets both to 0: each word shows its presence by itself, in whatever order another
 * CPU sees the stores.
 *
 *   when: time, timeout, reason, kind (enum sched_kind), each below the one before it
 *   what: from, to, state, flags (enum sched_flag)
 *
 * time: its lowest 49 bits, which the reader extends; reason: of a switch (enum reason);
 * timeout: of a switch (enum timeout, or a class).
 * from: prev, or the waker; to: next, or the wakee (a tid has 22 bits at most,
 * PID_MAX_LIMIT in include/linux/threads.h); state: of a switch, raw prev_state, of a
 * waking enum waking_context.
 *
 * A loss takes two slots of kind SCHED_LOST: { time of the first lost event, count },
 * { time of the last one, 1 }.
 */
struct wire_slot {
	__u64 when;
	__u64 what;
};

enum slot_shift {
	SLOT_TIME_SHIFT = 15,
	SLOT_TIMEOUT_SHIFT = 7,
	SLOT_REASON_SHIFT = 2,
	SLOT_FROM_SHIFT = 42,
	SLOT_TO_SHIFT = 20,
	SLOT_STATE_SHIFT = 4,
};

/* The kind of a record in the lifecycle ring, in its head. */
enum life_kind {
	LIFE_FORK = 1,
	LIFE_EXEC = 2,
	LIFE_EXIT = 3,
	LIFE_FINAL = 4,
	LIFE_RENAME = 5,
	LIFE_CGROUP_MKDIR = 6,
	LIFE_CGROUP_MOVE = 7,
	LIFE_LOST = 8,
	LIFE_JOIN = 9,
	LIFE_CONNECT = 10,
	LIFE_CONNECTED = 11,
	LIFE_ACCEPTED = 12,
	LIFE_CLOSED = 13,
	LIFE_RECLAIM = 15,
	LIFE_OOM_KILL = 16,
	LIFE_DNS_QUERY = 17,
	LIFE_DNS_ANSWER = 18,
	LIFE_DISK_WAIT = 19,
	LIFE_SAMPLE = 20,
	LIFE_SYNC_FILE = 21,
	LIFE_PINNED = 22,
	LIFE_OUTSIDER = 23,
	LIFE_CONTAINER = 24,
	LIFE_SERVER = 25,
	LIFE_END = 26,
	LIFE_LAST = 27,
	LIFE_CLOCK = 28,
	LIFE_OTHERS = 29,
	LIFE_DIRECTORY = 30,
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
	__u32 argv_len;	     /* bytes recorded */
	__u64 argv_full_len; /* true length */
	__u64 cgroup;
	__u32 argv_unknown; /* the memory could not be read */
	__u32 runtime;	    /* the program is a container's runtime */
	__u64 max_rss_pages;
	__u32 fsuid; /* with these ids the task opens files */
	__u32 fsgid;
	__s32 root_mount; /* the id of the mount whose root is the task's root; -1: another directory is */
	__u32 pad;
	char comm[16];
	char tail[];
};

/* The most directories and mounts on the way from a working directory to the root; the bytes after
 * which no name may begin; the bytes of the longest name, with the NUL. */
#define DIRECTORY_DEPTH 24
#define DIRECTORY_AREA 1024
#define NAME_AREA 256
#define DIRECTORY_LONGEST (DIRECTORY_AREA + NAME_AREA)

/* The working directory of a task that executes a program, before the record of that exec. */
struct wire_directory {
	struct wire_head head;
	__u32 tid;		       /* after the exec */
	__s32 length;		       /* bytes of names; negative: unknown */
	char names[DIRECTORY_LONGEST]; /* from the directory up, each with a NUL */
};

enum delay_bit {
	DELAY_RUN = 1,
	DELAY_BLOCK = 2,
	DELAY_SWAP = 4,
};

/* The times that a task has spent off CPU, as far as the kernel counts them. */
struct wire_delays {
	__u64 run;
	__u64 block;
	__u64 swap;
	__u64 known; /* enum delay_bit */
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
	__u64 program_rss_pages; /* 0: unknown */
	struct wire_delays delays;
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
	struct wire_delays delays;
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

/* A living task. The task iterator writes these structs, and the record of a join contains one. */
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
	__u32 followed; /* 0: no; 1: yes; 2: yes, because the task belongs to a server */
	__u32 pad;
	char comm[16];
};

/* The totals of a task so far. The task iterator writes the totals of living tasks. */
struct wire_total {
	__u64 sum_exec_runtime;
	__u64 run_delay;
	__u32 tid;
	__u32 tgid;
	__u32 run_delay_known;
	__u32 pad;
};

/* The exit of a task in a light recording. The totals lag by up to a tick. A part of the recording
 * that began during the task's life needs the snapshot. */
struct wire_end {
	struct wire_head head;
	struct wire_total total;
	__u32 status; /* of the process if group_dead is set, else of the task */
	__u32 group_dead;
	__u64 max_rss_pages;
	struct wire_snapshot task;
};

/* The final totals of a dead task, when the kernel drops it. */
struct wire_last {
	struct wire_head head;
	struct wire_total total;
};

#define JOIN_ARGV 4096

/* A task has come into the followed cgroup. The record of a process's leader has the arguments of
 * the process, if they can be read. */
struct wire_join {
	struct wire_head head;
	struct wire_snapshot task;
	__u32 argv_len; /* bytes recorded */
	__u32 argv_unknown;
	__u64 argv_full_len; /* true length */
	char tail[];
};

/*
 * A change of a TCP connection. An IPv4 address takes the first 4 bytes. LIFE_CONNECT: the local
 * port is not chosen yet. LIFE_ACCEPTED: the task is the one that called listen(2); 0: unknown.
 * LIFE_CLOSED: the task is the one that closed the connection, or 0 if no code of its process ended
 * it.
 */
struct wire_connection {
	struct wire_head head;
	__u64 socket; /* a number, which names the connection until it is closed */
	__u32 tid;
	__u32 tgid;
	__u16 local_port;
	__u16 remote_port;
	__u16 family; /* AF_INET or AF_INET6 */
	__u16 error;  /* closed: the socket's error, an errno */
	__u8 local[16];
	__u8 remote[16];
	__u64 sent;	/* closed: bytes of payload that the process has written */
	__u64 received; /* closed: bytes of payload that have arrived */
	__u16 state;	/* closed: the TCP state before */
	__u16 reset;	/* closed: without a FIN */
	__u32 pad;
};

/* The memory reclaim of a task since its previous record. */
struct wire_reclaim {
	struct wire_head head;
	__u32 tid;
	__u32 tgid;
	__u64 count;
	__u64 ns;
};

struct wire_oom_kill {
	struct wire_head head;
	__u32 tid;
	__u32 tgid;
	__u64 pages; /* resident; 0: unknown */
};

/* The disk that a task waits for in all its waits for block I/O from now on. */
struct wire_disk_wait {
	struct wire_head head;
	__u32 tid;
	__u32 tgid;
	__u32 device; /* major << MINORBITS | minor; 0: unknown */
	__u32 pad;
};

#define FILE_NAME 128

/* The file that a task waits for in fsync or a similar system call. */
struct wire_sync_file {
	struct wire_head head;
	__u32 tid;
	__u32 tgid;
	__u32 length; /* bytes of name, with the NUL; 0: unknown */
	__u32 pad;
	__u8 name[FILE_NAME]; /* the last component of the path, cut if it is longer */
};

/* Whether a task may run on this CPU alone, as of its switch-out. */
struct wire_pinned {
	struct wire_head head;
	__u32 tid;
	__u32 tgid;
	__u32 pinned;
	__u32 pad;
};

/* The name of a task that is not followed, at its first event together with a followed task. */
struct wire_outsider {
	struct wire_head head;
	__u32 tid;
	__u32 tgid;
	__u64 start_time;
	__u64 cgroup;
	__u32 kthread;
	__u32 pad;
	char comm[16];
};

/* The tasks of one thread group and name on a CPU. */
struct wire_share {
	__u64 ns;   /* 0: there are no more shares */
	__u32 tgid; /* 0: several thread groups */
	__u32 pad;
	char comm[16];
};

/* A power of two. */
#define OTHERS_SHARES 8

/* The tasks that are not followed and had a CPU while followed tasks waited for it, from `since` to
 * the time in `head`. */
struct wire_others {
	struct wire_head head;
	__u64 since;
	__u64 rest;	/* the time of further tasks, in ns */
	__u64 switches; /* the switches among them all */
	struct wire_share shares[OTHERS_SHARES];
};

enum containers {
	CONTAINERS_NONE = 0,
	CONTAINERS_MINE = 1,
	CONTAINERS_ALL = 2,
};

/* Why a container is followed. The numbers are the trace format's. */
enum evidence {
	EVIDENCE_NONE = 0,
	/* A daemon has sent the container's id to the client. */
	EVIDENCE_SENT = 1,
	/* All containers are followed. */
	EVIDENCE_ANY = 4,
	/* No process except the client has a connection to the daemon. */
	EVIDENCE_INFERRED = 5,
	/* The container is not followed: clients that are not followed have connections to the
	 * daemon, too. */
	EVIDENCE_NOT_RECORDED = 6,
};

/* The first process of a container that is followed, or that could be followed, has executed the
 * runtime. */
struct wire_container {
	struct wire_head head;
	__u32 tid;
	__u32 tgid;
	__u32 client;	/* the client's process; 0: unknown */
	__u32 evidence; /* enum evidence */
};

/* A server has answered a followed process and is followed from now on, or a followed server has
 * answered a process that is not followed. */
struct wire_server {
	struct wire_head head;
	__u32 tid;
	__u32 tgid;
	__u32 client; /* the followed process that was answered; 0: `other` was */
	__u32 other;  /* the process that is not followed and was answered; 0: none */
};

/* A followed process is in another time namespace than the recorder. */
struct wire_clock {
	struct wire_head head;
	__u32 tgid;
	__u32 ns_tgid; /* in its innermost pid namespace */
	/* What the namespace adds to CLOCK_MONOTONIC. */
	__s64 seconds;
	__s64 ns;
};

#define DNS_MESSAGE 512

/* A DNS message over UDP. An IPv4 address takes the first 4 bytes. */
struct wire_dns {
	struct wire_head head;
	__u32 tid; /* query */
	__u32 tgid;
	__u8 server[16];
	__u16 family;
	__u16 port;		   /* the port on the recorded machine; 0: unknown */
	__u32 length;		   /* bytes of message; 0: it is not readable */
	__u8 message[DNS_MESSAGE]; /* the first bytes of the message */
};

/* The most frames of a stack in the kernel, and the most in user mode: the kernel's default
 * (kernel.perf_event_max_stack). */
#define SAMPLE_DEPTH 127

/* include/uapi/linux/bpf.h: struct bpf_stack_build_id. */
struct wire_frame {
	__s32 status; /* 1: build_id and an offset in the file; 2: an address; 0: the end */
	__u8 build_id[20];
	__u64 at;
};

/* The stack of a task, innermost frame first. */
struct wire_sample {
	struct wire_head head;
	__u32 tid;
	__u32 tgid;
	__u32 seen_tgid;  /* as the recorder's own pid namespace names it */
	__u32 off_cpu;	  /* 1: the stack of a wait that ended at the time in `head` */
	__u64 ns;	  /* the sampling period, or the length of the wait */
	__s32 kernel_len; /* bytes; negative: there is none */
	__s32 user_len;
	__u64 arguments; /* their address, which differs between a process's programs */
	__u64 kernel[SAMPLE_DEPTH];
	struct wire_frame user[];
};

#define MAX_CPUS 1024

/* The programs' time is measured in one run of this many on each CPU. */
#define SAMPLED 127
/* The longest time of such a run in ns. A hypervisor that takes the CPU away meanwhile for 10 ms would
 * otherwise count as 1.3 s of programs. */
#define SAMPLED_MOST 100000

/* The account of a CPU's events in its slots or in the ring. */
struct account {
	__u64 head;    /* slots written since the start */
	__u64 emitted; /* attempts, when count_emitted is set */
	/* Scheduling events: those lost and not yet reported. Lifecycle events: those reported as
	 * lost so far. */
	__u64 lost;
	__u64 lost_since; /* the time of the first lost event that is not yet reported */
	__u64 lost_until;
	__u64 lost_total;
	__u64 pad[2]; /* a cache line for each CPU */
};

/* A CPU's slots and the read position in them; written by user space. */
struct progress {
	__u64 tail;   /* slots read since the start */
	__u64 first;  /* its first slot, plus 1; 0: none; the reader gives some to a new CPU */
	__u64 pad[6]; /* a cache line for each CPU */
};

/* The last signal of a number to a process. */
struct sent {
	__u64 time;   /* 0: none yet */
	__u32 sender; /* tid */
	__u32 pad;
};

/* A power of two above the largest number. */
#define SIGNALS 128

/* The most block devices, and the buckets of a histogram of latencies: powers of two. */
#define BLOCK_DEVICES 64
#define BLOCK_BUCKETS 32
/* The first bucket counts the latencies below 2^(BLOCK_FIRST_BITS + 1) ns. */
#define BLOCK_FIRST_BITS 10

enum block_group {
	BLOCK_READ = 0,
	BLOCK_WRITE = 1,
	BLOCK_DISCARD = 2,
	BLOCK_FLUSH = 3,
	BLOCK_GROUPS = 4,
};

/* Sums over the completed requests of a device and group, since the start of the recording. */
struct block_sums {
	__u64 count;
	__u64 bytes;
	__u64 latency;	/* from issue to completion, in ns */
	__u64 longest;	/* the longest latency in `interval`, in ns */
	__u64 interval; /* the value of `block_interval` at the last request */
	__u32 buckets[BLOCK_BUCKETS];
};

struct block_device {
	__u64 in_flight;
	__u64 last; /* time of the last event */
	__u64 busy; /* time with a request in flight */
	struct block_sums sums[BLOCK_GROUPS];
};

/* Sums over one system call of a process since user space emptied the table. */
struct call_sum {
	__u64 key; /* process << 32 | CALL_COMPAT | number; 0: free */
	__u64 count;
	__u64 errors;
	__u64 ns; /* from entry to return */
	__u64 longest;
};

/* The places of a table of system calls, a power of two. */
#define CALL_SUMS 65536
/* The flag of a system call of a 32-bit program. */
#define CALL_COMPAT (1U << 31)

#endif
