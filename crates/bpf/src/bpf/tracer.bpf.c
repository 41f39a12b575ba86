// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The tracer: stamps scheduler and process events and writes them into the slots of their
 * CPU or into the lifecycle ring. It aggregates nothing.
 *
 * The programs are raw_tp (PROGRAM), where a field is a PEEK or a bpf_probe_read_kernel. Those
 * that run most often exist as tp_btf, too (TYPED_PROGRAM), where the verifier knows the types
 * of the arguments and fields are plain loads. The loader picks one. `btf` is a constant in
 * each, so the compiler removes the other half of every branch.
 *
 * The scheduling programs (switch, waking, wakeup_new) run with interrupts off, under the
 * run queue lock or pi_lock: no event of this CPU comes between the time stamp and the
 * record. The exception is a task that wakes itself, see `busy`. Records are built in the
 * ring's own memory, never in per-CPU scratch: PREEMPT_LAZY kernels preempt programs.
 */
#include "kernel.h"
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_core_read.h>
#include "events.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

/* ---- Settings, fixed before loading ---- */

#define ANY_USER (~0U)
/* The number of a helper function that no kernel has: the loader replaces the calls. */
#define RDONLY_CAST 0x7472

/* Position of `prev` in sched_switch's arguments. The loader reads it from BTF: 5.18 moved
 * it (fa2c3254d7cf) and a later fix moved it again (9c2136be0878). */
const volatile __u32 switch_prev_arg = 1;
/* Position of prev_state; 0: not an argument, read the task's own field. */
const volatile __u32 switch_state_arg = 3;
/* sched_process_exit has group_dead as its second argument (since 6.16). */
const volatile bool exit_has_group_dead = false;
/* Record every task, not only the followed ones. */
const volatile bool follow_all = false;
/* Slots of each CPU, a power of two. */
const volatile __u64 slot_count = 256;
/* The number of waiting bytes in the lifecycle ring that wakes the recorder. */
const volatile __u64 life_half = 0;
const volatile __u32 argv_limit = 16384;
/* The cgroup whose tasks are followed, or 0. */
const volatile __u64 target_cgroup = 0;
/* The containers that are followed (enum containers). */
const volatile __u32 containers = CONTAINERS_NONE;
/* Servers of followed tasks are followed: those of this user, or of any. */
const volatile bool servers = false;
const volatile __u32 servers_uid = ANY_USER;
/* From a CPU's run queue to its preemption count and to its pointer to the running task, in
 * bytes; 0: unknown. */
const volatile __s64 preempt_count_distance = 0;
const volatile __s64 current_distance = 0;
/* The reason of each system call (enum reason), by its number. */
const volatile __u8 syscall_reasons[SYSCALLS];
/* Count every attempt to emit, for the test recorded + lost = emitted. */
const volatile bool count_emitted = false;
/* CPUs without slots are left out (--cpu). Otherwise they came online later. */
const volatile bool chosen_cpus = false;
/* block_rq_issue has the request queue as its first argument (before 5.11). */
const volatile bool issue_has_queue = false;
/* block_bio_queue has it, too (before 5.11). */
const volatile bool bio_has_queue = false;
/* mark_victim has the task as its argument (since 6.9). */
const volatile bool victim_is_task = false;
/* Of the samples of stacks, in ns. */
const volatile __u64 sample_period = 0;
/* The number of waiting bytes in the ring of samples that wakes the recorder. */
const volatile __u64 sample_half = 0;
/* User space may know the kernel's addresses in stacks. */
const volatile bool show_kernel = false;
/* The shortest wait whose stack is recorded, in ns; 0: none is. */
const volatile __u64 wait_least = 0;
/* Record forks, execs and ends alone. Their CPUs and the moments before them are not told. */
const volatile bool light = false;
/* Ignore the switches of this task, as some guests' kernels do, for the test of wakers. */
const volatile __u32 hidden_tid = 0;
/* The kernel has bpf_rdonly_cast (6.2). */
const volatile bool has_rdonly_cast = false;

/*
 * The reader of all this can be an ordinary user's process, and hostile (--sudo): it can write
 * whatever it maps to write, at any time. So a variable is the programs' own unless it stands in
 * one of two sections. No kernel address is in these, nor in a record.
 */

/* ---- Of the programs alone ---- */

struct {
	__u64 rq; /* address of the run queue; 0: not looked up yet */
	__u32 busy; /* a slot is being written */
	/* A followed task waits, or has waited, in the run queue, and the CPU has not been idle since. */
	__u32 awaited;
	__u64 address; /* see `address_of` */
	__u64 pad[5]; /* a cache line for each CPU */
} cpus[MAX_CPUS] __attribute__((aligned(64)));
/* From a task's stack to the user's registers on it, in bytes; 0: unknown. */
__u64 regs_offset, own_regs;
/* The depth of the recorder's pid namespace. */
__u32 recorder_level;
/* The recorder's time namespace. */
__u64 recorder_clock;
/* A followed task has reclaimed memory, has sent a request to a disk, has sent a DNS query. */
bool any_reclaimed, any_submitted, any_query;
/* A tid was given to a new task before its last holder's last switch-out. */
bool any_reused;

/* ---- Told to user space, which cannot write it: the loader freezes this map ---- */

#define TOLD SEC(".bss.told")

struct account sched_account[MAX_CPUS] TOLD __attribute__((aligned(64)));
struct account life_account[MAX_CPUS] TOLD;
/* Runs of a program while another one on the same CPU wrote a slot. */
__u64 nested_runs TOLD;
/* The last signals sent to COMMAND's process and to the recorder's, in this order. */
struct sent sent[2][SIGNALS] TOLD;
/* `regs_offset` is known. */
__u32 regs_known TOLD;
/* The facts that are recorded beside the tasks' own, see src/kernel.rs. */
__u32 extras TOLD;
/* Tasks newly followed by all snapshot passes. */
__u64 newly_followed TOLD;
/* The resident pages that all passes with `sum_resident` have added up. */
__u64 resident TOLD;
/* Tasks whose id did not fit into `followed`, and threads beyond JOINING. */
__u64 follow_overflow TOLD;
/* System calls without a place in their table. */
__u64 call_overflow TOLD;
/* Samples of stacks that found no room in their ring. */
__u64 sample_overflow TOLD;
/* Waits of tasks that have no room for their stacks. */
__u64 wait_overflow TOLD;
/* Connections that found no room in `connections`, and ports in `listeners`. */
__u64 connection_overflow TOLD;
/* The numbers of the block devices, in the order of their first requests; 0: none yet. */
__u32 block_numbers[BLOCK_DEVICES] TOLD;
struct block_device block_devices[BLOCK_DEVICES] TOLD __attribute__((aligned(64)));
/* Requests that found no room. */
__u64 block_overflow TOLD;
/* Answers of servers beyond MAX_SERVERS. */
__u64 server_overflow TOLD;
/* Tasks that found no room in `reclaimers` and in `submitters`. */
__u64 reclaim_overflow TOLD, submitter_overflow TOLD;

/* ---- Written by user space. Any value is to do no harm: none is an address, and an index is
 * held to its map's bounds ---- */

#define ASKED SEC(".bss.asked")

struct progress sched_progress[MAX_CPUS] ASKED __attribute__((aligned(64)));
/* COMMAND's process and the recorder's, by the host's ids; 0: none. */
__u32 command_tgid ASKED, recorder_tgid ASKED;
/* The table of `call_sums` that the programs fill: 0 or 1. */
__u32 call_table ASKED;
/* The iterator adds up the resident pages of the followed processes instead of listing tasks. */
__u32 sum_resident ASKED;
/* The iterator tells the totals of the followed tasks instead of listing tasks. */
__u32 tell_totals ASKED;
/* The number of the interval whose longest requests the block devices keep. */
__u64 block_interval ASKED;

/* Brings the wire structs into the BTF of the object, for a test, and the kinds of records, for Rust. */
union wire_types {
	struct wire_slot slot;
	struct account account;
	struct progress progress;
	struct wire_head head;
	struct wire_fork fork;
	struct wire_exec exec;
	struct wire_exit exit;
	struct wire_final final;
	struct wire_rename rename;
	struct wire_cgroup cgroup;
	struct wire_life_lost life_lost;
	struct wire_snapshot snapshot;
	struct wire_end end;
	struct wire_last last;
	struct wire_join join;
	struct wire_connection connection;
	struct wire_reclaim reclaim;
	struct wire_oom_kill oom_kill;
	struct wire_disk_wait disk_wait;
	struct wire_sync_file sync_file;
	struct wire_pinned pinned;
	struct wire_outsider outsider;
	struct wire_container container;
	struct wire_server server;
	struct wire_clock clock;
	struct wire_dns dns;
	struct wire_frame frame;
	struct wire_sample sample;
	struct block_sums block_sums;
	struct block_device block_device;
	struct call_sum call_sum;
	enum life_kind life_kind;
	enum reason reason;
} *wire_types;

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 4096); /* set by the loader */
} life_ring SEC(".maps");

/*
 * The slots of all CPUs, one region after the other; the reader maps them. They need no
 * lock: only the CPU writes its head, only the reader its tail.
 */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1); /* set by the loader */
	__type(key, __u32);
	__type(value, struct wire_slot);
} slots SEC(".maps");

/*
 * The followed tasks: one byte (enum standing) for every possible tid. It is never full, and
 * global data needs no look-up. The last switch-out of a task clears its byte, unless a new
 * task has the tid by then.
 */
__u8 followed[4096] SEC(".data.followed"); /* resized by the loader */
const volatile __u32 followed_count = 4096;

/* Processes to follow from the start, by their ids in the recorder's pid namespace. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 4096);
	__type(key, __u32);
	__type(value, __u32);
} targets SEC(".maps");

/* ---- Reading the kernel's structures ---- */

#define FIELD(btf, p, field) ((btf) ? (p)->field : BPF_CORE_READ(p, field))

static __always_inline __u32 task_state(bool btf, struct task_struct *task)
{
	if (bpf_core_field_exists(task->__state))
		return FIELD(btf, task, __state);
	return BPF_CORE_READ((struct task_struct___v5_13 *)task, state);
}

static __always_inline __u64 cgroup_id(struct cgroup *cgroup)
{
	return BPF_CORE_READ(cgroup, kn, id);
}

static __always_inline __u64 task_cgroup(struct task_struct *task)
{
	return BPF_CORE_READ(task, cgroups, dfl_cgrp, kn, id);
}

/* A task's id in the pid namespace at `level`, or in its innermost one if that is higher. */
static __always_inline __u32 ns_tid(struct task_struct *task, __u32 level)
{
	struct pid *pid = BPF_CORE_READ(task, thread_pid);
	__u32 innermost = BPF_CORE_READ(pid, level);
	__u32 nr = 0;

	if (level > innermost)
		level = innermost;
	bpf_probe_read_kernel(&nr, sizeof(nr),
			      (void *)pid + bpf_core_field_offset(struct pid, numbers) +
				      level * bpf_core_type_size(struct upid) +
				      bpf_core_field_offset(struct upid, nr));
	return nr;
}

/* Casts an address to a pointer to a kernel type; the kernel checks loads through it. The loader
 * puts the kernel's function there (src/load.rs). */
static void *(*const rdonly_cast)(const void *address, __u32 btf_id) = (void *)RDONLY_CAST;

/* Numbers of types in the kernel's BTF, which libbpf puts there: the loader adds an enum of this
 * name to the types that it gives libbpf (src/btf.rs). */
enum kernel_type_id {
	ID_task_struct,
	ID_list_head,
	ID_pt_regs,
	ID_pt_regs___arm64,
	ID_files_struct,
	ID_fdtable,
	ID_file,
	ID_inode,
	ID_upid,
	ID_thread_info___arm64,
	ID_sk_buff,
	ID_sock,
	ID_request,
};

/* A field of the kernel's `struct type` at `address`: a plain load where the kernel can check it
 * (6.2). For a pointer to a struct, also where the verifier knows the type of what it is read from:
 * there it would search through all of the kernel's types by name, at each way to the load, whether
 * that pointer can be trusted. */
#define PEEK(type, address, field)                                                              \
	({                                                                                      \
		typeof(((struct type *)0)->field) value = 0;                                    \
		if (has_rdonly_cast) {                                                          \
			struct type *at =                                                       \
				rdonly_cast((void *)(address),                                  \
					    bpf_core_enum_value(enum kernel_type_id, ID_##type)); \
			value = at->field;                                                      \
		} else {                                                                        \
			bpf_probe_read_kernel(&value, sizeof(value),                            \
					      (void *)(address) +                               \
						      bpf_core_field_offset(struct type, field)); \
		}                                                                               \
		value;                                                                          \
	})

/* A task's field; `btf` if the verifier knows the type of `task`. */
#define TASK(btf, task, field)                                                                  \
	((btf) ? (task)->field : PEEK(task_struct, task, field))

/* ---- The running task of this CPU ---- */

/* The address of this CPU's run queue, the base of `current_distance` and
 * `preempt_count_distance`. Only to be called if one of them is known. */
static __always_inline __u64 run_queue(__u32 cpu)
{
	if (!cpus[cpu].rq) {
		struct task_struct *task = (struct task_struct *)bpf_get_current_task();

		cpus[cpu].rq = (__u64)BPF_CORE_READ(task, se.cfs_rq, rq);
	}
	return cpus[cpu].rq;
}

/* The task that runs on this CPU. bpf_get_current_task() costs 9 ns: it returns through the
 * kernel's return thunk. */
static __always_inline struct task_struct *current(__u32 cpu)
{
	__u64 rq;

	if (!current_distance || !has_rdonly_cast)
		return (struct task_struct *)bpf_get_current_task();
	rq = run_queue(cpu);
	return (struct task_struct *)PEEK(list_head, rq + current_distance, next);
}

/* The address of a task as a number, for functions that are not static: the verifier takes a pointer
 * for one only after it has been in memory. */
static __always_inline __u64 address_of(__u32 cpu, struct task_struct *task)
{
	*(volatile __u64 *)&cpus[cpu].address = (__u64)task;
	return *(volatile __u64 *)&cpus[cpu].address;
}

/* include/linux/preempt.h: the preemption count's bits of NMI and hardirq, and the bit of the
 * softirq count that means that one is being served. The others disable softirqs. */
#define IN_HARDIRQ 0x00ff0000
#define SERVING_SOFTIRQ 0x00000100

/* ---- System calls ---- */

/* The user's registers of a task, which the kernel saved at its entry; 0: unknown. The saved
 * mode is another one for kernel threads, which have no such registers, and for 32-bit tasks,
 * whose system calls have other numbers. */
static __always_inline __u64 user_regs(bool btf, struct task_struct *task)
{
	__u64 regs = regs_offset;
	bool known;

	if (!regs)
		return 0;
	regs += (__u64)TASK(btf, task, stack);
	if (bpf_core_field_exists(struct pt_regs, cs))
		known = (__u16)PEEK(pt_regs, regs, cs) == USER_CS;
	else
		known = !(PEEK(pt_regs___arm64, regs, pstate) & PSR_MODE);
	return known ? regs : 0;
}

/* The number of a system call; negative: none, an exception. */
static __always_inline int syscall_number(__u64 regs)
{
	if (bpf_core_field_exists(struct pt_regs, orig_ax))
		return PEEK(pt_regs, regs, orig_ax);
	return PEEK(pt_regs___arm64, regs, syscallno);
}

/* A system call's entry in the table. */
static __always_inline __u32 syscall_entry(int number)
{
	return (__u32)number < SYSCALLS ? syscall_reasons[number & (SYSCALLS - 1)] : REASON_OTHER;
}

/* The file of the descriptor that is a system call's first argument; 0: there is none. */
static __always_inline __u64 descriptor_file(__u64 files, __u64 regs)
{
	__u64 table = (__u64)PEEK(files_struct, files, fdt), file;
	__u32 number;

	if (bpf_core_field_exists(struct pt_regs, di))
		number = PEEK(pt_regs, regs, di);
	else
		number = PEEK(pt_regs___arm64, regs, orig_x0);
	if (number >= PEEK(fdtable, table, max_fds))
		return 0;
	file = (__u64)PEEK(fdtable, table, fd) + number * sizeof(void *);
	return (__u64)PEEK(list_head, file, next);
}

/* The reason of a read from the descriptor that is a system call's first argument. */
static __always_inline __u32 descriptor_reason(__u64 files, __u64 regs)
{
	__u64 file = descriptor_file(files, regs), inode;
	__u32 mode, major;

	if (!file)
		return REASON_OTHER_DESCRIPTOR;
	inode = (__u64)PEEK(file, file, f_inode);
	mode = PEEK(inode, inode, i_mode) & S_IFMT;
	if (mode == S_IFIFO)
		return REASON_PIPE_READ;
	if (mode == S_IFSOCK)
		return REASON_SOCKET_READ;
	if (mode == S_IFREG || mode == S_IFBLK)
		return REASON_FILE_READ;
	if (mode != S_IFCHR)
		return REASON_OTHER_DESCRIPTOR;
	major = PEEK(inode, inode, i_rdev) >> MINORBITS;
	if (major == TTY_MAJOR || major == TTYAUX_MAJOR ||
	    (major >= UNIX98_PTY_MASTER_MAJOR && major <= UNIX98_PTY_SLAVE_LAST))
		return REASON_TERMINAL;
	return REASON_OTHER_DESCRIPTOR;
}

/* An entry's reason, with the kind of the descriptor if that decides. */
static __always_inline __u32 reason_of(bool btf, struct task_struct *task, __u32 entry, __u64 regs)
{
	__u32 reason;

	if (!(entry & REASON_BY_DESCRIPTOR))
		return entry & REASON_MASK;
	reason = descriptor_reason((__u64)PEEK(task_struct, task, files), regs);
	if (!(entry & REASON_WRITE) || reason == REASON_TERMINAL ||
	    reason == REASON_OTHER_DESCRIPTOR)
		return reason;
	return reason + 1;
}

/* The reason of a task that goes to sleep. */
static __always_inline __u64 sleep_reason(bool btf, struct task_struct *task)
{
	__u64 regs = user_regs(btf, task);
	int number;

	if (!regs)
		return REASON_UNKNOWN;
	number = syscall_number(regs);
	if (number < 0)
		return REASON_PAGE_FAULT;
	return reason_of(btf, task, syscall_entry(number), regs);
}

/* Whether the running task is in a system call that sends to a socket. Not static, like the next
 * one: the verifier follows each of their ways once. */
__noinline __u32 sends(void)
{
	struct task_struct *task = (struct task_struct *)bpf_get_current_task();
	__u64 regs = user_regs(false, task);
	__u32 entry;

	if (!regs)
		return false;
	entry = syscall_entry(syscall_number(regs));
	if (!(entry & REASON_SENDS))
		return false;
	return !(entry & REASON_BY_DESCRIPTOR) ||
	       reason_of(false, task, entry, regs) == REASON_SOCKET_READ + 1;
}

/* Whether a task can wait for a socket. The softirq that a send raises is not the only one
 * that can run in it: others complete block I/O. */
__noinline __u32 receives(__u64 task)
{
	__u32 reason = sleep_reason(false, (struct task_struct *)task);

	return reason == REASON_SOCKET_READ || reason == REASON_SOCKET_READ + 1 ||
	       reason == REASON_POLL || reason == REASON_IO_URING;
}

/* The context of this CPU (enum waking_context). x86 keeps the preemption count in a per-CPU
 * variable whose address is not always exported; BTF has its distance to the run queue. arm64
 * keeps it in the running task. PREEMPT_RT counts softirqs in the task that serves them. */
static __always_inline __u64 waking_context(__u32 cpu, struct task_struct *waker,
					    struct task_struct *wakee)
{
	__u32 count;

	if (bpf_core_field_exists(struct thread_info___arm64, preempt.count))
		count = PEEK(thread_info___arm64,
			     (__u64)waker + bpf_core_field_offset(waker->thread_info),
			     preempt.count);
	else if (preempt_count_distance)
		count = PEEK(upid, run_queue(cpu) + preempt_count_distance, nr);
	else
		return CONTEXT_TASK;
	if (bpf_core_field_exists(waker->softirq_disable_cnt))
		count |= PEEK(task_struct, waker, softirq_disable_cnt) & SERVING_SOFTIRQ;
	if (count & IN_HARDIRQ)
		return CONTEXT_HARDIRQ;
	if (count & SERVING_SOFTIRQ)
		return sends() && receives(address_of(cpu, wakee)) ? CONTEXT_SEND : CONTEXT_SOFTIRQ;
	return CONTEXT_TASK;
}

/*
 * Defines a program. `call` uses `ctx`. It is no tp_btf: since 6.12 the verifier searches for the
 * names of such a program's arguments among all of the kernel's types, by name.
 */
#define PROGRAM(name, tracepoint, call)                                                         \
	SEC("raw_tp/" #tracepoint) int name##_raw(__u64 *ctx)                                   \
	{                                                                                       \
		return call;                                                                    \
	}

/* The same for both kinds of attachment. `call` uses the constant `btf`, too. */
#define TYPED_PROGRAM(name, tracepoint, call)                                                   \
	SEC("tp_btf/" #tracepoint) int name##_btf(__u64 *ctx)                                   \
	{                                                                                       \
		const bool btf = true;                                                          \
		return call;                                                                    \
	}                                                                                       \
	SEC("raw_tp/" #tracepoint) int name##_raw(__u64 *ctx)                                   \
	{                                                                                       \
		const bool btf = false;                                                         \
		return call;                                                                    \
	}

/* Argument n of the tracepoint. In assembly, because the verifier wants constant offsets
 * into ctx and clang would otherwise merge branches into a variable one. */
#define ARG(ctx, n)                                                                             \
	({                                                                                      \
		__u64 value;                                                                    \
		asm volatile("%0 = *(u64 *)(%1 + %2)" : "=r"(value) : "r"(ctx), "i"((n) * 8));  \
		value;                                                                          \
	})

/* ---- The set of followed tasks ---- */

/* What the byte of a tid says of the task that has it. 0: it is not followed. */
enum standing {
	FOLLOWED = 1,
	ENDED = 2, /* it has exited; its last switch-out is to come */
	LEFT = 3,  /* a leader after its last switch-out, whose tid an exec by another thread takes */
};

#define STANDING 0x03

/* Beside it, also with `follow_all`: the task's last event says that it may run on one CPU alone. */
#define PINNED 0x80
/* Of a task that is not followed: a record tells its present name; that is the name of a daemon that
 * starts containers; it can be a server's. */
#define NAMED 0x40
#define DAEMON 0x20
#define SERVES 0x08

static __always_inline __u8 *follow_slot(__u32 tid)
{
	__u8 *all = followed;
	__u64 at = tid;

	/* The compiler must not know the declared length of the array, and must add the same
	 * register that it compares: the verifier follows only that one. */
	barrier_var(all);
	barrier_var(at);
	return at < followed_count ? all + at : NULL;
}

static __always_inline __u8 standing(__u32 tid)
{
	__u8 *slot;

	if (follow_all)
		return FOLLOWED;
	slot = follow_slot(tid);
	return slot ? *slot & STANDING : 0;
}

static __always_inline bool is_followed(__u32 tid)
{
	return standing(tid);
}

/* Changes the byte of a tid that has one, if it is not the same. The name, too, is a new one then. */
static __always_inline void set_standing(__u32 tid, __u8 new)
{
	__u8 *slot;

	if (follow_all)
		return;
	slot = follow_slot(tid);
	if (slot && *slot != new)
		*slot = new;
}

static __always_inline void follow(__u32 tid)
{
	__u8 *slot = follow_slot(tid);

	if (slot)
		*slot = FOLLOWED;
	else if (!follow_all)
		__sync_fetch_and_add(&follow_overflow, 1);
}

/* The tid of a task that is switched; 0 if the task is dead and a new one has its tid. */
static __always_inline __u32 own_tid(bool btf, struct task_struct *task)
{
	__u32 tid = FIELD(btf, task, pid);

	return FIELD(btf, task, exit_state) && standing(tid) == FOLLOWED ? 0 : tid;
}

/* ---- Slots of scheduling events ---- */

static __always_inline __u32 this_cpu(void)
{
	return bpf_get_smp_processor_id() & (MAX_CPUS - 1);
}

/* `first` is user space's: the look-up refuses a key beyond the map, and a CPU's events in another
 * one's slots spoil that reader's trace alone. */
static __always_inline struct wire_slot *slot_at(__u32 cpu, __u64 head)
{
	__u32 key = sched_progress[cpu].first - 1 + (head & (slot_count - 1));

	return bpf_map_lookup_elem(&slots, &key);
}

static __always_inline void write_loss(__u32 cpu, __u64 head, __u64 time, __u64 what)
{
	struct wire_slot *slot = slot_at(cpu, head);

	if (slot) {
		slot->what = what;
		slot->when = time << SLOT_TIME_SHIFT | SCHED_LOST;
	}
}

static __always_inline void note_lost(struct account *account, __u64 time)
{
	if (!account->lost)
		account->lost_since = time;
	account->lost_until = time;
	account->lost++;
	account->lost_total++;
}

/* The number of a CPU's events between two checks of the fill level of its slots. */
#define LOOK_EVERY 128

/* Wakes the recorder by a discarded record in the lifecycle ring: no reader sees it. */
static __always_inline void wake_reader(void)
{
	void *bell = bpf_ringbuf_reserve(&life_ring, 8, 0);

	if (bell)
		bpf_ringbuf_discard(bell, BPF_RB_FORCE_WAKEUP);
}

/* Wakes the recorder when the slots become half full. */
static __always_inline void look(__u64 head, __u64 waiting)
{
	if (head % LOOK_EVERY == 0 && waiting - slot_count / 2 < LOOK_EVERY)
		wake_reader();
}

/* Out of line, so that the usual way is short: this CPU came online later. Its events are
 * lost until the reader has given it slots. Like the other ones out of line it is not static: the
 * verifier looks at it once, and not at each way to it. */
__noinline int await_slots(__u32 cpu)
{
	struct account *account = &sched_account[cpu & (MAX_CPUS - 1)];

	if (chosen_cpus)
		return 0;
	if (count_emitted)
		account->emitted++;
	if (!account->lost_total)
		wake_reader();
	note_lost(account, bpf_ktime_get_ns());
	return 0;
}

/* This CPU's events are recorded. */
static __always_inline bool is_recorded(__u32 cpu)
{
	if (sched_progress[cpu].first)
		return true;
	await_slots(cpu);
	return false;
}

/* Writes the loss before the next event. True if the slots have room for both. */
__noinline int report_loss(__u32 cpu)
{
	struct account *account;
	__u64 head;

	cpu &= MAX_CPUS - 1;
	account = &sched_account[cpu];
	head = account->head;
	if (head + 3 - sched_progress[cpu].tail > slot_count)
		return false;
	write_loss(cpu, head, account->lost_since, account->lost);
	write_loss(cpu, head + 1, account->lost_until, 1);
	account->head = head + 2;
	account->lost = 0;
	return true;
}

/* A slot's second word, see events.h. */
static __always_inline __u64 pack(__u32 from, __u32 to, __u64 state, __u64 flags)
{
	return (__u64)from << SLOT_FROM_SHIFT | (__u64)to << SLOT_TO_SHIFT |
	       (state & 0xffff) << SLOT_STATE_SHIFT | flags;
}

/*
 * Writes an event into the next slot of this CPU, or counts it as lost. Returns its time.
 * `kind` has the reason, too.
 *
 * The time is read last: the read waits for all earlier loads, so that the slow ones
 * overlap.
 */
static __always_inline __u64 emit_sched(__u32 cpu, __u64 kind, __u64 what)
{
	struct account *account = &sched_account[cpu];
	struct wire_slot *slot;
	__u64 head, waiting, time;

	if (count_emitted)
		account->emitted++;
	if (account->lost && !report_loss(cpu)) {
		time = bpf_ktime_get_ns();
		note_lost(account, time);
		return time;
	}
	head = account->head;
	waiting = head - *(volatile __u64 *)&sched_progress[cpu].tail;
	if (waiting >= slot_count) {
		time = bpf_ktime_get_ns();
		note_lost(account, time);
		return time;
	}
	slot = slot_at(cpu, head);
	if (!slot)
		return 0; /* beyond the last slot: user space gave a wrong place */
	account->head = head + 1;
	look(head, waiting);
	slot->what = what;
	time = bpf_ktime_get_ns();
	slot->when = time << SLOT_TIME_SHIFT | kind;
	return time;
}

/*
 * The account of this CPU's lifecycle events. Unlike the scheduling programs, a lifecycle
 * program can be preempted, also by another one (a task's last switch-out). So the total
 * changes by atomic additions only, `lost` is the total at the last report, and a report
 * has the total: the same report twice does no harm.
 */
static __always_inline struct account *life_losses(__u32 cpu)
{
	return &life_account[cpu & (MAX_CPUS - 1)];
}

static __always_inline void note_lost_life(struct account *account, __u64 time)
{
	if (account->lost == account->lost_total)
		account->lost_since = time;
	account->lost_until = time;
	__sync_fetch_and_add(&account->lost_total, 1);
}

/* Writes the loss before the next record. Not static: the verifier looks at it once. */
__noinline int report_life_loss(__u32 cpu)
{
	struct account *account = life_losses(cpu);
	__u64 total = account->lost_total;
	struct wire_life_lost *lost = bpf_ringbuf_reserve(&life_ring, sizeof(*lost), 0);

	if (!lost)
		return 0;
	lost->head.time = account->lost_since;
	lost->head.kind = LIFE_LOST;
	lost->head.cpu = cpu;
	lost->until = account->lost_until;
	lost->count = total;
	account->lost = total;
	bpf_ringbuf_submit(lost, BPF_RB_NO_WAKEUP);
	return 0;
}

/* Reserves a record of `size` (a constant) in the lifecycle ring and fills its head. NULL
 * if there is no room; with `count` that is a loss. */
static __always_inline void *reserve_life(__u64 time, __u32 kind, __u64 size, bool count)
{
	__u32 cpu = bpf_get_smp_processor_id();
	struct account *account = life_losses(cpu);
	struct wire_head *head;

	if (account->lost_total != account->lost)
		report_life_loss(cpu);
	head = bpf_ringbuf_reserve(&life_ring, size, 0);
	if (!head) {
		if (count)
			note_lost_life(account, time);
		return NULL;
	}
	head->time = time;
	head->kind = kind;
	head->cpu = light ? ~0U : cpu;
	return head;
}

static __always_inline void submit_life(void *record)
{
	__u64 wake = BPF_RB_NO_WAKEUP;

	if (bpf_ringbuf_query(&life_ring, BPF_RB_AVAIL_DATA) > life_half)
		wake = BPF_RB_FORCE_WAKEUP;
	bpf_ringbuf_submit(record, wake);
}

static __always_inline void count_life(void)
{
	if (count_emitted)
		__sync_fetch_and_add(&life_losses(bpf_get_smp_processor_id())->emitted, 1);
}

/* ---- Scheduling ---- */

static __always_inline void put_delays(struct wire_delays *out, struct task_struct *task)
{
	struct task_delay_info *delays = NULL;

	out->run = out->block = out->swap = out->known = 0;
	if (bpf_core_field_exists(task->sched_info.run_delay)) {
		out->run = BPF_CORE_READ(task, sched_info.run_delay);
		out->known = DELAY_RUN;
	}
	/* NULL if the kernel does not count them (kernel.task_delayacct). */
	if (bpf_core_field_exists(task->delays))
		delays = BPF_CORE_READ(task, delays);
	if (delays) {
		out->block = BPF_CORE_READ(delays, blkio_delay);
		out->swap = BPF_CORE_READ(delays, swapin_delay);
		out->known |= DELAY_BLOCK | DELAY_SWAP;
	}
}

/* The last switch-out of a dead task. Dequeue and switch count precede the tracepoint, so
 * these are the kernel's final figures. */
static __always_inline void on_final(struct task_struct *task, __u64 time)
{
	struct wire_final *final;

	count_life();
	final = reserve_life(time, LIFE_FINAL, sizeof(*final), true);
	if (final) {
		final->tid = BPF_CORE_READ(task, pid);
		final->pad = 0;
		final->sum_exec_runtime = BPF_CORE_READ(task, se.sum_exec_runtime);
		final->nvcsw = BPF_CORE_READ(task, nvcsw);
		final->nivcsw = BPF_CORE_READ(task, nivcsw);
		put_delays(&final->delays, task);
		submit_life(final);
	}
}

/* A task's last switch-out. A new task that has its tid stays followed. */
static __always_inline void forget(struct task_struct *task)
{
	__u32 tid = BPF_CORE_READ(task, pid);
	__u32 tgid = BPF_CORE_READ(task, tgid);

	if (follow_all || standing(tid) != ENDED)
		return;
	/* While other threads live, one of them may take over the leader's tid by an exec
	 * (de_thread) and must be followed from then on. */
	set_standing(tid, tid == tgid ? LEFT : 0);
	/* The last thread clears the leader's byte, or the leader if it is the last to go. */
	if (BPF_CORE_READ(task, signal, live.counter) == 0 && standing(tgid) == LEFT)
		set_standing(tgid, 0);
}

#include "waits.h"

/* Out of line, so that all other switches run less code. */
__noinline int last_switch(__u32 cpu, __u64 task, __u64 what)
{
	struct task_struct *prev = (struct task_struct *)task;
	__u64 time;

	cpu &= MAX_CPUS - 1;
	time = is_recorded(cpu) ? emit_sched(cpu, SCHED_SWITCH, what) : bpf_ktime_get_ns();
	on_final(prev, time);
	end_submitter(BPF_CORE_READ(prev, pid));
	forget(prev);
	return 0;
}

/* The task may run on this CPU alone. The mask of one that is on its way to its only CPU has
 * another CPU. */
static __always_inline bool is_pinned(__u32 cpu, struct task_struct *task)
{
	unsigned long bits = 0;

	if (BPF_CORE_READ(task, nr_cpus_allowed) != 1)
		return false;
	bpf_probe_read_kernel(&bits, sizeof(bits),
			      (void *)task + bpf_core_field_offset(task->cpus_mask) +
				      cpu / 64 * sizeof(bits));
	return bits >> (cpu % 64) & 1;
}

/* With --cpu: a task that leaves one of the CPUs, and may run on it alone, is not elsewhere until
 * it comes back. */
__noinline int note_pinned(__u32 cpu, __u64 address)
{
	struct task_struct *task = (struct task_struct *)address;
	__u32 tid = BPF_CORE_READ(task, pid);
	bool pinned = is_pinned(cpu & (MAX_CPUS - 1), task);
	struct wire_pinned *record;
	__u8 *slot = follow_slot(tid);

	if (!slot || !!(*slot & PINNED) == pinned)
		return 0;
	count_life();
	record = reserve_life(bpf_ktime_get_ns(), LIFE_PINNED, sizeof(*record), true);
	if (!record)
		return 0;
	record->tid = tid;
	record->tgid = BPF_CORE_READ(task, tgid);
	record->pinned = pinned;
	record->pad = 0;
	/* Again: the verifier has forgotten its bounds. */
	slot = follow_slot(tid);
	if (slot)
		*slot = (*slot & ~PINNED) | (pinned ? PINNED : 0);
	submit_life(record);
	return 0;
}

#include "containers.h"
#include "servers.h"
#include "clients.h"

/*
 * ---- Tasks that are not followed, beside those that are ----
 *
 * One that has a CPU before or after a followed task, or while one waits for it, and one that wakes
 * a followed task, is told by name: once, until another task has its tid, or it has another name.
 */

/* What a process can be for followed ones: DAEMON or SERVES. Its leader's name decides. Not static:
 * the verifier looks at it once. */
__noinline __u32 can_be(__u64 leader)
{
	struct task_struct *task = (struct task_struct *)leader;
	__u32 part;

	if (!containers && !servers)
		return 0;
	part = part_of(task);
	if (part == PART_DAEMON)
		return containers ? DAEMON : 0;
	if (!servers || part || !may_serve(task))
		return 0;
	return SERVES;
}

/* Out of line: it is rare. Returns what the task can be. */
__noinline int name_outsider(__u64 address)
{
	struct task_struct *task = (struct task_struct *)address;
	__u32 tid = BPF_CORE_READ(task, pid);
	__u32 is = can_be((__u64)BPF_CORE_READ(task, group_leader));
	struct wire_outsider *record;
	__u8 *slot = follow_slot(tid);

	if (!slot)
		return 0;
	*slot |= NAMED | is;
	count_life();
	record = reserve_life(bpf_ktime_get_ns(), LIFE_OUTSIDER, sizeof(*record), true);
	if (!record)
		return is;
	record->tid = tid;
	record->tgid = BPF_CORE_READ(task, tgid);
	record->start_time = BPF_CORE_READ(task, start_time);
	record->cgroup = task_cgroup(task);
	record->kthread = !!(BPF_CORE_READ(task, flags) & PF_KTHREAD);
	record->pad = 0;
	BPF_CORE_READ_INTO(&record->comm, task, comm);
	submit_life(record);
	return is;
}

/* A followed task meets this one. Returns what it can be for that. */
static __always_inline __u32 meet(struct task_struct *task, __u32 tid)
{
	__u8 *slot;

	if (follow_all || !tid)
		return 0;
	slot = follow_slot(tid);
	if (!slot || *slot & STANDING)
		return 0;
	return *slot & NAMED ? *slot & (DAEMON | SERVES) : name_outsider(address_of(this_cpu(), task));
}

/* The task has another name. */
static __always_inline void rename_outsider(__u32 tid)
{
	__u8 *slot = follow_all ? NULL : follow_slot(tid);

	if (slot && *slot & NAMED)
		*slot &= ~(NAMED | DAEMON | SERVES);
}

/* A followed task waits in a run queue. */
static __always_inline void await_cpu(__u32 cpu)
{
	__u32 *awaited = &cpus[cpu & (MAX_CPUS - 1)].awaited;

	/* Another CPU reads the same cache line. */
	if (!follow_all && !*awaited)
		*awaited = 1;
}

/* A switch between tasks that are not followed, while a followed one may wait for the CPU. An idle
 * CPU has none that waits. */
__noinline int outsiders_switch(__u64 prev_address, __u64 next_address, __u64 what)
{
	struct task_struct *prev = (struct task_struct *)prev_address;
	struct task_struct *next = (struct task_struct *)next_address;
	__u32 cpu = this_cpu();
	__u32 from = BPF_CORE_READ(prev, pid);
	__u32 to = BPF_CORE_READ(next, pid);

	if (!from || !to) {
		cpus[cpu].awaited = 0;
		return 0;
	}
	if (!is_recorded(cpu))
		return 0;
	meet(prev, from);
	meet(next, to);
	emit_sched(cpu, SCHED_SWITCH, what);
	return 0;
}

static __always_inline int on_switch(bool btf, bool preempt, struct task_struct *prev,
				     struct task_struct *next, __u32 state)
{
	__u32 cpu = this_cpu();
	__u32 from = FIELD(btf, prev, pid);
	__u32 to = FIELD(btf, next, pid);
	__u64 reason = REASON_UNKNOWN, what;
	bool mine = is_followed(from);

	if (hidden_tid && (from == hidden_tid || to == hidden_tid))
		return 0;
	if (!mine && !is_followed(to)) {
		if (cpus[cpu].awaited)
			outsiders_switch(address_of(cpu, prev), address_of(cpu, next),
					 pack(from, to, state, preempt ? SCHED_PREEMPT : 0));
		return 0;
	}
	if (any_reused) {
		from = own_tid(btf, prev);
		to = own_tid(btf, next);
		mine = is_followed(from);
		if (!mine && !is_followed(to))
			return 0;
	}
	what = pack(from, to, state, preempt ? SCHED_PREEMPT : 0);
	if (state & TASK_UNINTERRUPTIBLE) {
		if (btf ? BPF_CORE_READ_BITFIELD(prev, in_iowait) :
			  BPF_CORE_READ_BITFIELD_PROBED(prev, in_iowait)) {
			what |= SCHED_IOWAIT;
			if (mine && any_submitted)
				io_wait(address_of(cpu, prev));
		}
	}
	if (mine)
		meet(next, to);
	else
		meet(prev, from);
	if ((state & TASK_DEAD) && mine && from)
		return last_switch(cpu, address_of(cpu, prev), what);
	if (!is_recorded(cpu))
		return 0;
	if (chosen_cpus && mine && from)
		note_pinned(cpu, address_of(cpu, prev));
	if (mine && state && !preempt)
		reason = sleep_reason(btf, prev);
	else if (mine)
		await_cpu(cpu);
	if (reason == REASON_SYNC)
		sync_wait(address_of(cpu, prev));
	emit_sched(cpu, SCHED_SWITCH | reason << SLOT_REASON_SHIFT, what);
	return 0;
}

/* The tasks among the arguments of sched_switch. */
static __always_inline void switched(__u64 *ctx, struct task_struct **prev,
				     struct task_struct **next)
{
	if (switch_prev_arg == 2) {
		*prev = (struct task_struct *)ARG(ctx, 2);
		*next = (struct task_struct *)ARG(ctx, 3);
	} else {
		*prev = (struct task_struct *)ARG(ctx, 1);
		*next = (struct task_struct *)ARG(ctx, 2);
	}
}

/* `preempt` is the first argument in all layouts. */
static __always_inline int switch_event(bool btf, __u64 *ctx)
{
	struct task_struct *prev, *next;
	__u32 state;

	switched(ctx, &prev, &next);
	if (switch_state_arg == 3)
		state = ARG(ctx, 3);
	else if (switch_state_arg == 1)
		state = ARG(ctx, 1);
	else
		state = task_state(btf, prev);
	return on_switch(btf, ARG(ctx, 0), prev, next, state);
}

TYPED_PROGRAM(switch, sched_switch, switch_event(btf, ctx))

/*
 * Writes the event of a waking. Interrupts are on if a task wakes itself. Kernels before
 * 5.19 nest programs: an interrupt on a busy CPU counts its event as missed, as later
 * kernels do.
 */
static __always_inline void emit_waking(__u32 cpu, __u64 kind, __u64 what)
{
	if (cpus[cpu].busy) {
		__sync_fetch_and_add(&nested_runs, 1);
		return;
	}
	cpus[cpu].busy = 1;
	barrier();
	if (is_recorded(cpu))
		emit_sched(cpu, kind, what);
	barrier();
	cpus[cpu].busy = 0;
}

static __always_inline int on_waking(bool btf, struct task_struct *wakee)
{
	__u32 cpu = this_cpu();
	struct task_struct *waker = current(cpu);
	__u32 from = PEEK(task_struct, waker, pid);
	__u32 to = FIELD(btf, wakee, pid);
	__u64 context;
	__u32 is;

	if (!is_followed(from) && !is_followed(to))
		return 0;
	context = waking_context(cpu, waker, wakee);
	if (is_followed(to)) {
		await_cpu(FIELD(btf, wakee, wake_cpu));
		if (context == CONTEXT_TASK || context == CONTEXT_SEND) {
			is = meet(waker, from);
			if (is & DAEMON)
				answer((__u64)BPF_CORE_READ(wakee, group_leader));
			else if (is)
				serve(address_of(cpu, wakee), context);
		}
	} else if (server_count && (context == CONTEXT_TASK || context == CONTEXT_SEND)) {
		if (share(address_of(cpu, wakee), context))
			meet(wakee, to);
	}
	emit_waking(cpu, SCHED_WAKING, pack(from, to, context, 0));
	return 0;
}

TYPED_PROGRAM(waking, sched_waking, on_waking(btf, (struct task_struct *)ctx[0]))

#include "memory.h"

/* ---- Processes ---- */

static __always_inline __u64 time_namespace(struct task_struct *task)
{
	struct nsproxy *proxy = BPF_CORE_READ(task, nsproxy);

	if (!bpf_core_field_exists(proxy->time_ns))
		return 0;
	return (__u64)BPF_CORE_READ(proxy, time_ns);
}

/* A process is in another time namespace, so its programs read other times. Not static: the verifier
 * looks at it once. */
__noinline int put_clock(__u64 address, __u64 time)
{
	struct task_struct *task = (struct task_struct *)address;
	struct time_namespace *own = (struct time_namespace *)time_namespace(task);
	struct wire_clock *clock;

	count_life();
	clock = reserve_life(time, LIFE_CLOCK, sizeof(*clock), true);
	if (!clock)
		return 0;
	clock->tgid = BPF_CORE_READ(task, tgid);
	clock->ns_tgid = ns_tid(BPF_CORE_READ(task, group_leader), ~0U);
	clock->seconds = BPF_CORE_READ(own, offsets.monotonic.tv_sec);
	clock->ns = BPF_CORE_READ(own, offsets.monotonic.tv_nsec);
	submit_life(clock);
	return 0;
}

/* A process has begun, or has executed a program, which can take it to its children's namespace. The
 * snapshot of the living tasks looks at those from before it, when the recorder's namespace is not known. */
static __always_inline void note_clock(struct task_struct *task, __u64 time)
{
	__u64 own = time_namespace(task);

	if (own && recorder_clock && own != recorder_clock)
		put_clock(address_of(this_cpu(), task), time);
}

/* Follows a new task. */
static __always_inline int put_fork(struct task_struct *parent, struct task_struct *child)
{
	__u32 parent_tid = BPF_CORE_READ(parent, pid);
	__u32 tid = BPF_CORE_READ(child, pid);
	__u64 time = bpf_ktime_get_ns();
	struct wire_fork *fork;

	if (standing(tid) == ENDED)
		any_reused = true;
	follow(tid);
	count_life();
	fork = reserve_life(time, LIFE_FORK, sizeof(*fork), true);
	if (!fork)
		return 0;
	fork->parent_tid = parent_tid;
	fork->parent_tgid = BPF_CORE_READ(parent, tgid);
	fork->tid = tid;
	fork->tgid = BPF_CORE_READ(child, tgid);
	fork->start_time = light ? time : BPF_CORE_READ(child, start_time);
	fork->cgroup = task_cgroup(child);
	fork->ns_tid = ns_tid(child, ~0U);
	fork->pad = 0;
	BPF_CORE_READ_INTO(&fork->comm, child, comm);
	submit_life(fork);
	if (tid == BPF_CORE_READ(child, tgid))
		note_clock(child, time);
	return 0;
}

static __always_inline bool in_target_cgroup(struct cgroup *cgroup);
int join(__u64 address, __u32 born);

/* CLONE_PARENT: the new process is a child of its creator's parent, which a record of a join names. */
static __always_inline bool has_other_parent(struct task_struct *creator, struct task_struct *child)
{
	return BPF_CORE_READ(child, pid) == BPF_CORE_READ(child, tgid) &&
	       BPF_CORE_READ(child, real_parent, tgid) != BPF_CORE_READ(creator, tgid);
}

static __always_inline int on_fork(struct task_struct *parent, struct task_struct *child)
{
	__u32 tid = BPF_CORE_READ(child, pid);

	/* A task that forks has not exited: otherwise the byte is its tid's last holder's. */
	if (standing(BPF_CORE_READ(parent, pid)) == FOLLOWED) {
		put_fork(parent, child);
		return has_other_parent(parent, child) ? join((__u64)child, true) : 0;
	}
	/* CLONE_INTO_CGROUP: no move follows. */
	if (in_target_cgroup(BPF_CORE_READ(child, cgroups, dfl_cgrp))) {
		put_fork(parent, child);
		return join((__u64)child, true);
	}
	set_standing(tid, 0);
	return 0;
}

PROGRAM(fork, sched_process_fork,
	on_fork((struct task_struct *)ctx[0], (struct task_struct *)ctx[1]))

/* Workers of io_uring and vhost come without sched_process_fork; and the kernel leaves out
 * runs of a program inside itself. */
static __always_inline bool has_fork(struct task_struct *task, __u32 tid)
{
	__u32 workers = PF_IO_WORKER;
	__u8 *slot;

	if (bpf_core_type_exists(struct vhost_task))
		workers |= PF_USER_WORKER;
	if (PEEK(task_struct, task, flags) & workers)
		return false;
	if (follow_all)
		return true;
	slot = follow_slot(tid);
	return !slot || (*slot & STANDING) == FOLLOWED;
}

/* kernel_clone has set vfork_done before: it tells a parent that will wait for this child
 * from one that sleeps in the kernel for another reason. */
static __always_inline int on_wakeup_new(struct task_struct *wakee)
{
	__u32 from = (__u32)bpf_get_current_pid_tgid();
	__u32 to = PEEK(task_struct, wakee, pid);
	__u64 flags = 0;

	if (!is_followed(from) && !is_followed(to))
		return 0;
	if (is_followed(from) && !has_fork(wakee, to))
		put_fork((struct task_struct *)bpf_get_current_task(), wakee);
	if (PEEK(task_struct, wakee, vfork_done))
		flags = SCHED_VFORK;
	if (is_followed(to))
		await_cpu(PEEK(task_struct, wakee, wake_cpu));
	emit_waking(this_cpu(), SCHED_WAKEUP_NEW, pack(from, to, 0, flags));
	return 0;
}

PROGRAM(wakeup_new, sched_wakeup_new, on_wakeup_new((struct task_struct *)ctx[0]))

/* What a record of an exec says, beside its strings. */
struct executed {
	__u64 time;
	const char *filename;
	unsigned long arg_start;
	__u64 argv_len;
	__u64 cgroup;
	__u64 max_rss_pages;
	__u32 tid;
	__u32 tgid;
	__u32 old_tid;
	__u32 part;
	char comm[TASK_COMM_LEN];
};

/*
 * Writes a record with room for `filename_area` + `argv_area` bytes at its tail. A ring
 * record has a constant size, so there is one call for each, inlined. False: no room for it.
 *
 * argv is one copy of mm->arg_start..arg_end: the kernel has just written these pages, so
 * they are resident.
 */
static __always_inline bool put_exec(const struct executed *it, const __u32 filename_area,
				     const __u32 argv_area, bool last)
{
	struct wire_exec *exec = reserve_life(it->time, LIFE_EXEC,
					      sizeof(*exec) + filename_area + argv_area, last);
	__u64 len;
	long name_len;

	/* First of all: the compiler merges this with the check in reserve_life. Verifiers
	 * before 6.2 would follow the branch of a second check, on which a reserved record is
	 * NULL and never submitted. */
	if (!exec)
		return false;
	len = it->argv_len < argv_limit ? it->argv_len : argv_limit;
	name_len = bpf_probe_read_kernel_str(exec->tail, filename_area, it->filename);
	exec->filename_len = name_len > 0 ? name_len : 0;
	exec->filename_area = filename_area;
	exec->tid = it->tid;
	exec->tgid = it->tgid;
	exec->old_tid = it->old_tid;
	exec->argv_full_len = it->argv_len;
	exec->cgroup = it->cgroup;
	exec->runtime = it->part == PART_RUNTIME;
	exec->max_rss_pages = it->max_rss_pages;
	__builtin_memcpy(exec->comm, it->comm, sizeof(exec->comm));
	if (len > argv_area)
		len = argv_area;
	exec->argv_len = len;
	exec->argv_unknown = 0;
	if (len && bpf_probe_read_user(exec->tail + filename_area, len, (void *)it->arg_start)) {
		exec->argv_len = 0;
		exec->argv_unknown = 1;
	}
	/* The recorder reads the container's name while the runtime has it. */
	if (it->part == PART_RUNTIME)
		bpf_ringbuf_submit(exec, BPF_RB_FORCE_WAKEUP);
	else
		submit_life(exec);
	return true;
}

/* The running task, which is followed, has executed a program. Not static: the verifier looks at it
 * once, and not again for each way here. */
__noinline int record_exec(__u64 name_address, __u32 old_tid)
{
	struct task_struct *task = (struct task_struct *)bpf_get_current_task();
	struct mm_struct *mm = BPF_CORE_READ(task, mm);
	unsigned long end = BPF_CORE_READ(mm, arg_end);
	struct executed it = {
		.time = bpf_ktime_get_ns(),
		.filename = (const char *)name_address,
		.arg_start = BPF_CORE_READ(mm, arg_start),
		.cgroup = task_cgroup(task),
		/* exec_mmap has added the memory of the program before. */
		.max_rss_pages = BPF_CORE_READ(task, signal, maxrss),
		.tid = BPF_CORE_READ(task, pid),
		.tgid = BPF_CORE_READ(task, tgid),
		.old_tid = old_tid,
		.part = containers ? part_of(task) : PART_NONE,
	};
	__u64 want;
	bool put;

	BPF_CORE_READ_INTO(&it.comm, task, comm);
	it.argv_len = end > it.arg_start ? end - it.arg_start : 0;
	want = it.argv_len < argv_limit ? it.argv_len : argv_limit;
	if (old_tid != it.tid) {
		/* The former leader has the caller's old tid until its last switch-out. */
		set_standing(old_tid, standing(it.tid) == ENDED ? ENDED : 0);
		end_submitter(old_tid);
		end_submitter(it.tid);
	}
	follow(it.tid);
	note_clock(task, it.time);
	count_life();
	/* A name too long for the short area. */
	{
		char name[FILENAME_SHORT];

		if (bpf_probe_read_kernel_str(name, sizeof(name), it.filename) == sizeof(name)) {
			put = want <= 16384 ? put_exec(&it, FILENAME_LONG, 16384, false) :
					      put_exec(&it, FILENAME_LONG, 2097152, false);
			if (put)
				return 0;
		}
	}
#define PUT(argv_area) put_exec(&it, FILENAME_SHORT, argv_area, false)
	/* The verifier leaves out what is longer than argv_limit. */
	if (want <= 256)
		put = PUT(256);
	else if (want <= 1024)
		put = PUT(1024);
	else if (want <= 4096)
		put = PUT(4096);
	else if (want <= 16384)
		put = PUT(16384);
	else if (want <= 131072)
		put = PUT(131072);
	else
		put = PUT(2097152);
#undef PUT
	/* No room for the whole argv: a cut argv is better than a lost exec. */
	if (!put)
		put_exec(&it, FILENAME_SHORT, 256, true);
	return 0;
}

static __always_inline int on_exec(struct task_struct *task, __u32 old_tid,
				   struct linux_binprm *bprm)
{
	__u32 tid = BPF_CORE_READ(task, pid);

	if (!is_followed(tid) && !is_followed(old_tid)) {
		rename_outsider(tid);
		if (!containers || !adopt())
			return 0;
	}
	return record_exec((__u64)BPF_CORE_READ(bprm, filename), old_tid);
}

PROGRAM(exec, sched_process_exec,
	on_exec((struct task_struct *)ctx[0], ctx[1], (struct linux_binprm *)ctx[2]))

/* The largest resident set of a task's present memory, in pages; 0: unknown. Since 6.16
 * sched_process_exit comes before exit_mm; group_dead became its argument then. */
static __always_inline __u64 program_rss(struct task_struct *task)
{
	struct mm_struct *mm;
	__u64 most, now;

	if (!exit_has_group_dead)
		return 0;
	mm = BPF_CORE_READ(task, mm);
	if (!mm)
		return 0;
	most = BPF_CORE_READ(mm, hiwater_rss);
	now = resident_pages(mm);
	return most > now ? most : now;
}

/* As wait_task_zombie: the group's code, else the leader's. */
static __always_inline __u32 group_status(struct task_struct *task, struct signal_struct *signal)
{
	if (BPF_CORE_READ(signal, flags) & SIGNAL_GROUP_EXIT)
		return BPF_CORE_READ(signal, group_exit_code);
	return BPF_CORE_READ(task, group_leader, exit_code);
}

static __always_inline int on_exit(struct task_struct *task, bool group_dead)
{
	__u32 tid = BPF_CORE_READ(task, pid);
	struct signal_struct *signal = BPF_CORE_READ(task, signal);
	struct wire_exit *exit;
	__u64 time;

	if (!is_followed(tid))
		return 0;
	if (group_dead) {
		end_client(BPF_CORE_READ(task, tgid));
		end_server(BPF_CORE_READ(task, tgid));
	}
	set_standing(tid, ENDED);
	end_reclaim(tid, BPF_CORE_READ(task, tgid));
	time = bpf_ktime_get_ns();
	count_life();
	exit = reserve_life(time, LIFE_EXIT, sizeof(*exit), true);
	if (!exit)
		return 0;
	exit->tid = tid;
	exit->tgid = BPF_CORE_READ(task, tgid);
	exit->status = BPF_CORE_READ(task, exit_code);
	exit->group_dead = group_dead;
	exit->group_status = group_status(task, signal);
	exit->utime = BPF_CORE_READ(task, utime);
	exit->stime = BPF_CORE_READ(task, stime);
	exit->sum_exec_runtime = BPF_CORE_READ(task, se.sum_exec_runtime);
	exit->nvcsw = BPF_CORE_READ(task, nvcsw);
	exit->nivcsw = BPF_CORE_READ(task, nivcsw);
	exit->min_flt = BPF_CORE_READ(task, min_flt);
	exit->maj_flt = BPF_CORE_READ(task, maj_flt);
	/* do_exit has updated it if this is the last thread. */
	exit->max_rss_pages = group_dead ? BPF_CORE_READ(signal, maxrss) : 0;
	exit->program_rss_pages = group_dead ? program_rss(task) : 0;
	put_delays(&exit->delays, task);
	exit->io_known = 0;
	exit->read_bytes = 0;
	exit->write_bytes = 0;
	if (bpf_core_field_exists(task->ioac.read_bytes)) {
		exit->io_known = 1;
		exit->read_bytes = BPF_CORE_READ(task, ioac.read_bytes);
		exit->write_bytes = BPF_CORE_READ(task, ioac.write_bytes);
	}
	submit_life(exit);
	return 0;
}

static __always_inline void fill_total(bool btf, struct wire_total *total, struct task_struct *task)
{
	total->tid = TASK(btf, task, pid);
	total->tgid = TASK(btf, task, tgid);
	total->sum_exec_runtime = TASK(btf, task, se.sum_exec_runtime);
	total->run_delay = total->run_delay_known = total->pad = 0;
	if (bpf_core_field_exists(task->sched_info.run_delay)) {
		total->run_delay_known = 1;
		total->run_delay = TASK(btf, task, sched_info.run_delay);
	}
}

static __always_inline void fill_snapshot(struct wire_snapshot *record, struct task_struct *task,
					  __u32 level);

/* In a light recording. */
static __always_inline int on_end(struct task_struct *task, bool group_dead)
{
	__u32 tid = PEEK(task_struct, task, pid);
	struct signal_struct *signal = PEEK(task_struct, task, signal);
	struct wire_end *end;

	if (!is_followed(tid))
		return 0;
	set_standing(tid, ENDED);
	count_life();
	end = reserve_life(bpf_ktime_get_ns(), LIFE_END, sizeof(*end), true);
	if (!end)
		return 0;
	fill_total(false, &end->total, task);
	end->status = group_dead ? group_status(task, signal) : PEEK(task_struct, task, exit_code);
	end->group_dead = group_dead;
	end->max_rss_pages = group_dead ? BPF_CORE_READ(signal, maxrss) : 0;
	fill_snapshot(&end->task, task, recorder_level);
	end->task.followed = true;
	submit_life(end);
	return 0;
}

/* Without the argument: signal->live has been counted down already. Two threads that exit
 * at the same time can then both look like the last. */
static __always_inline int exit_event(__u64 *ctx)
{
	struct task_struct *task = (struct task_struct *)ARG(ctx, 0);
	bool group_dead;

	if (exit_has_group_dead)
		group_dead = ARG(ctx, 1) & 1;
	else
		group_dead = BPF_CORE_READ(task, signal, live.counter) == 0;
	return light ? on_end(task, group_dead) : on_exit(task, group_dead);
}

PROGRAM(exit, sched_process_exit, exit_event(ctx))

/*
 * The kernel drops a dead task, a grace period of RCU after somebody has waited for it: without
 * switches this is where its figures are final. A task that got its tid since then stays followed.
 */
static __always_inline int on_free(struct task_struct *task)
{
	__u32 tid = PEEK(task_struct, task, pid);
	struct wire_last *last;

	if (standing(tid) != (follow_all ? FOLLOWED : ENDED))
		return 0;
	set_standing(tid, 0);
	count_life();
	last = reserve_life(bpf_ktime_get_ns(), LIFE_LAST, sizeof(*last), true);
	if (last) {
		fill_total(false, &last->total, task);
		submit_life(last);
	}
	return 0;
}

PROGRAM(free, sched_process_free, on_free((struct task_struct *)ctx[0]))

static __always_inline int on_rename(struct task_struct *task, const char *comm)
{
	__u32 tid = BPF_CORE_READ(task, pid);
	struct wire_rename *rename;

	if (!is_followed(tid)) {
		rename_outsider(tid);
		return 0;
	}
	/* An exec has the new name in its own event. */
	if (bpf_core_field_exists(task->in_execve) &&
	    BPF_CORE_READ_BITFIELD_PROBED(task, in_execve))
		return 0;
	count_life();
	rename = reserve_life(bpf_ktime_get_ns(), LIFE_RENAME, sizeof(*rename), true);
	if (!rename)
		return 0;
	rename->tid = tid;
	rename->tgid = BPF_CORE_READ(task, tgid);
	/* The new name is the argument; the task still has its old one. */
	__builtin_memset(rename->comm, 0, sizeof(rename->comm));
	bpf_probe_read_kernel_str(rename->comm, sizeof(rename->comm), comm);
	submit_life(rename);
	return 0;
}

PROGRAM(rename, task_rename, on_rename((struct task_struct *)ctx[0], (const char *)ctx[1]))

/* ---- cgroups ---- */

/* The levels of cgroups that are searched for the target, and those that are at once. */
#define CGROUP_DEPTH 1024
#define CGROUPS_ONCE 16

/* The target among a cgroup and those above it, or the last one searched; 0: there are no more. `self` is
 * the first member of struct cgroup, so a css of the default hierarchy and its cgroup have the same
 * address (cgroup_parent). Not static: the verifier looks at it once. */
__noinline __u64 cgroup_above(__u64 address)
{
	struct cgroup *cgroup = (struct cgroup *)address;

	for (int level = 0; level < CGROUPS_ONCE && cgroup; level++) {
		if (cgroup_id(cgroup) == target_cgroup)
			break;
		cgroup = (struct cgroup *)BPF_CORE_READ(cgroup, self.parent);
	}
	return (__u64)cgroup;
}

/* Not static, as above. */
__noinline __u32 is_in_target(__u64 address)
{
	for (int up = 0; up < CGROUP_DEPTH / CGROUPS_ONCE && address; up++) {
		address = cgroup_above(address);
		if (address && cgroup_id((struct cgroup *)address) == target_cgroup)
			return true;
	}
	/* It may be further above. */
	if (address)
		__sync_fetch_and_add(&follow_overflow, 1);
	return false;
}

static __always_inline bool in_target_cgroup(struct cgroup *cgroup)
{
	return target_cgroup && is_in_target((__u64)cgroup);
}

/* Ids are unique in their hierarchy alone, and those of a trace are v2's. */
static __always_inline bool in_v2(struct cgroup *cgroup)
{
	return !BPF_CORE_READ(cgroup, root, hierarchy_id);
}

static __always_inline int on_cgroup(__u32 kind, struct cgroup *cgroup, const char *path,
				     __u32 tid, __u32 tgid)
{
	struct wire_cgroup *record;
	long len;

	count_life();
	record = reserve_life(bpf_ktime_get_ns(), kind, sizeof(*record), true);
	if (!record)
		return 0;
	record->tid = tid;
	record->tgid = tgid;
	record->id = cgroup_id(cgroup);
	len = bpf_probe_read_kernel_str(record->path, sizeof(record->path), path);
	record->path_len = len > 0 ? len : 0;
	record->pad = 0;
	submit_life(record);
	return 0;
}

/* A task preempted on its way to sleep is still in the run queue. One that sleeps can be left there,
 * too, until the kernel would choose it: it is marked as delayed. */
static __always_inline bool in_run_queue(struct task_struct *task)
{
	if (!BPF_CORE_READ(task, on_rq))
		return false;
	return !bpf_core_field_exists(task->se.sched_delayed) ||
	       !BPF_CORE_READ(task, se.sched_delayed);
}

/* The task has left its CPU for the last time. */
static __always_inline bool is_zombie(struct task_struct *task)
{
	return (task_state(false, task) & TASK_DEAD) && !BPF_CORE_READ(task, on_cpu);
}

/* Fills a record but for `followed`; `level` is the recorder's pid namespace. */
static __always_inline void fill_snapshot(struct wire_snapshot *record, struct task_struct *task,
					  __u32 level)
{
	record->seen_tid = ns_tid(task, level);
	record->tid = BPF_CORE_READ(task, pid);
	record->tgid = BPF_CORE_READ(task, tgid);
	record->parent_tgid = BPF_CORE_READ(task, real_parent, tgid);
	record->start_time = BPF_CORE_READ(task, start_time);
	record->cgroup = task_cgroup(task);
	record->ns_tid = ns_tid(task, ~0U);
	record->sum_exec_runtime = BPF_CORE_READ(task, se.sum_exec_runtime);
	record->kthread = !!(BPF_CORE_READ(task, flags) & PF_KTHREAD);
	record->pad = 0;
	BPF_CORE_READ_INTO(&record->comm, task, comm);
	record->time = bpf_ktime_get_ns();
	record->on_cpu = BPF_CORE_READ(task, on_cpu) != 0;
	record->state = !record->on_cpu && in_run_queue(task) ? 0 : task_state(false, task);
}

/* Writes the record of a task that comes into the followed cgroup, with `area` bytes for its
 * arguments. `born`: the running task has forked it into the cgroup. */
static __always_inline int put_join(struct task_struct *task, bool born, const __u32 area)
{
	struct task_struct *self = (struct task_struct *)bpf_get_current_task();
	struct mm_struct *mm = BPF_CORE_READ(task, mm);
	unsigned long start = BPF_CORE_READ(mm, arg_start);
	unsigned long end = BPF_CORE_READ(mm, arg_end);
	__u64 len = end > start ? end - start : 0, want = len;
	struct wire_join *record;

	count_life();
	record = reserve_life(bpf_ktime_get_ns(), LIFE_JOIN, sizeof(*record) + area, true);
	if (!record)
		return 0;
	fill_snapshot(&record->task, task, recorder_level);
	record->task.followed = is_followed(record->task.tid);
	record->head.time = record->task.time;
	if (born)
		record->task.state = 0;
	if (want > area)
		want = area;
	if (want > argv_limit)
		want = argv_limit;
	record->argv_full_len = len;
	record->argv_len = 0;
	record->argv_unknown = 1;
	/* Only the memory of the running task can be read: a shell that moves itself, or a
	 * parent, of which a new child's is a copy. */
	if (area && mm && (born || mm == BPF_CORE_READ(self, mm)) &&
	    !bpf_probe_read_user(record->tail, want, (void *)start)) {
		record->argv_len = want;
		record->argv_unknown = 0;
	}
	submit_life(record);
	return 0;
}

/* Not static: the verifier looks at it once. */
__noinline int join(__u64 address, __u32 born)
{
	struct task_struct *task = (struct task_struct *)address;
	__u32 tid = BPF_CORE_READ(task, pid);

	if (!born) {
		if (is_followed(tid))
			return 0;
		follow(tid);
	}
	/* A process can have thousands of threads. */
	if (tid != BPF_CORE_READ(task, tgid))
		return put_join(task, born, 0);
	return put_join(task, born, JOIN_ARGV);
}

/* The most threads of a process that are followed into the cgroup. */
#define JOINING 1024

/* The threads that are followed at once. */
#define JOINING_ONCE 32

/* Follows threads of a process, the first one by its place in their list, which ends at `head`; returns
 * the next one's place. Not static, as above. */
__noinline __u64 join_some(__u64 node, __u64 head)
{
	const __u64 in_task = bpf_core_field_offset(struct task_struct, thread_node);

	for (int i = 0; i < JOINING_ONCE; i++) {
		struct list_head *at = (struct list_head *)node;

		if (!node || node == head)
			return head;
		join(node - in_task, false);
		node = (__u64)BPF_CORE_READ(at, next);
	}
	return node;
}

/* Follows the threads of a process; `counted`: those that are left are a loss. Not static, as
 * above. */
__noinline int join_threads(__u64 address, __u32 counted)
{
	struct signal_struct *signal = (struct signal_struct *)address;
	__u64 head = address + bpf_core_field_offset(struct signal_struct, thread_head);
	__u64 node = (__u64)BPF_CORE_READ(signal, thread_head.next);

	for (int i = 0; i < JOINING / JOINING_ONCE; i++) {
		node = join_some(node, head);
		if (node == head)
			return 0;
	}
	if (counted)
		__sync_fetch_and_add(&follow_overflow,
				     BPF_CORE_READ(signal, nr_threads) - JOINING);
	return 0;
}

/* Moves of a whole process come once, with its leader. One inside the followed cgroup brings
 * nobody. */
static __always_inline void join_all(struct task_struct *task, bool threadgroup)
{
	bool new = !is_followed(BPF_CORE_READ(task, pid));

	join((__u64)task, false);
	if (threadgroup)
		join_threads((__u64)BPF_CORE_READ(task, signal), new);
}

static __always_inline int on_attach(struct cgroup *cgroup, const char *path,
				     struct task_struct *task, bool threadgroup)
{
	__u32 tid = BPF_CORE_READ(task, pid);

	if (!in_v2(cgroup))
		return 0;
	if (in_target_cgroup(cgroup))
		join_all(task, threadgroup);
	if (!is_followed(tid))
		return 0;
	return on_cgroup(LIFE_CGROUP_MOVE, cgroup, path, tid, BPF_CORE_READ(task, tgid));
}

PROGRAM(attach, cgroup_attach_task,
	on_attach((struct cgroup *)ctx[0], (const char *)ctx[1], (struct task_struct *)ctx[2],
		  ctx[3] & 1))

/* A new cgroup's path, which is unknown after the cgroup's removal. */
static __always_inline int on_mkdir(struct cgroup *cgroup, const char *path)
{
	return in_v2(cgroup) ? on_cgroup(LIFE_CGROUP_MKDIR, cgroup, path, 0, 0) : 0;
}

PROGRAM(mkdir, cgroup_mkdir, on_mkdir((struct cgroup *)ctx[0], (const char *)ctx[1]))

/* ---- Signals ---- */

/* The recorder passes its signals on to COMMAND, unless the sender has signalled their
 * whole process group. Only this program can tell the two apart. */
static __always_inline int on_signal(__u32 signal, struct task_struct *task)
{
	__u32 tgid = BPF_CORE_READ(task, tgid);
	struct sent *last;

	if (signal >= SIGNALS || !tgid)
		return 0;
	/* For verifiers that do not remember the comparison. */
	barrier_var(signal);
	signal &= SIGNALS - 1;
	if (tgid == command_tgid)
		last = &sent[0][signal];
	else if (tgid == recorder_tgid)
		last = &sent[1][signal];
	else
		return 0;
	last->time = bpf_ktime_get_ns();
	last->sender = (__u32)bpf_get_current_pid_tgid();
	return 0;
}

PROGRAM(signal, signal_generate, on_signal(ctx[0], (struct task_struct *)ctx[2]))

#include "network.h"
#include "dns.h"
#include "block.h"
#include "syscalls.h"
#include "stacks.h"

/* ---- Living tasks ---- */

/* Finds the registers' place on the stack, which is the same for all tasks. */
static __always_inline void find_regs(struct task_struct *self)
{
	if (!bpf_core_enum_value_exists(enum bpf_func_id, BPF_FUNC_task_pt_regs))
		return;
	/* The verifier computes with a pointer only after it has been in memory. */
	*(volatile __u64 *)&own_regs = bpf_task_pt_regs(bpf_get_current_task_btf());
	regs_offset = *(volatile __u64 *)&own_regs - (__u64)BPF_CORE_READ(self, stack);
	regs_known = regs_offset != 0;
}

static __always_inline void tell_total(struct seq_file *seq, struct task_struct *task)
{
	struct wire_total total;

	if (!is_followed(task->pid))
		return;
	fill_total(true, &total, task);
	bpf_seq_write(seq, &total, sizeof(total));
}

/*
 * Writes a record for every living task and follows the targets and their descendants. A
 * descendant can precede its ancestor, so user space reads again until newly_followed
 * stays 0; meanwhile on_fork follows new tasks.
 */
SEC("iter/task")
int snapshot(struct bpf_iter__task *ctx)
{
	struct task_struct *task = ctx->task;
	struct wire_snapshot record = {};
	struct task_struct *self;
	__u32 seen_tgid;

	if (!task)
		return 0;
	/* Some tasks have not come by a fork. */
	if (wait_least && is_followed(task->pid))
		give_room(task);
	if (sum_resident) {
		add_resident(task);
		return 0;
	}
	if (tell_totals) {
		tell_total(ctx->meta->seq, task);
		return 0;
	}
	self = (struct task_struct *)bpf_get_current_task();
	recorder_level = BPF_CORE_READ(self, thread_pid, level);
	recorder_clock = time_namespace(self);
	if (!regs_offset)
		find_regs(self);
	fill_snapshot(&record, task, recorder_level);
	/* The iterator's reader is the recorder, which does not record itself. A zombie does nothing more,
	 * but an exec by another thread takes the tid of a first one. */
	if (!is_followed(record.tid) &&
	    (!is_zombie(task) || BPF_CORE_READ(task, signal, live.counter) > 0) &&
	    record.tgid != (__u32)(bpf_get_current_pid_tgid() >> 32)) {
		struct task_struct *leader = BPF_CORE_READ(task, group_leader);

		seen_tgid = ns_tid(leader, recorder_level);
		if (bpf_map_lookup_elem(&targets, &seen_tgid) || is_followed(record.tgid) ||
		    is_followed(record.parent_tgid) ||
		    (target_cgroup && in_target_cgroup(BPF_CORE_READ(task, cgroups, dfl_cgrp)))) {
			follow(record.tid);
			/* A task that does not fit must not count again in each pass. */
			if (is_followed(record.tid))
				newly_followed++;
			if (is_zombie(task))
				set_standing(record.tid, LEFT);
		}
	}
	record.followed = is_followed(record.tid);
	if (record.followed && record.tid == record.tgid)
		note_clock(task, bpf_ktime_get_ns());
	record.followed += is_server(record.tgid);
	bpf_seq_write(ctx->meta->seq, &record, sizeof(record));
	return 0;
}
