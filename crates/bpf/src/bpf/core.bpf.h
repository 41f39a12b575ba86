/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The parts that all features share: reading the kernel's structures, the definition of a program,
 * the set of followed tasks, and the records of the lifecycle ring.
 */
#ifndef TR_CORE_BPF_H
#define TR_CORE_BPF_H

#include "settings.bpf.h"

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
	ID_socket,
	ID_request,
};

/* A field of the kernel's `struct type` at `address`: a plain load where the kernel can check it
 * (6.2). For a pointer to a struct, also where the verifier knows the type of what it is read from:
 * there it would search through all of the kernel's types by name, at each way to the load, whether
 * that pointer can be trusted. */
#define PEEK(type, address, field)                                                                 \
	({                                                                                         \
		typeof(((struct type *)0)->field) value = 0;                                       \
		if (has_rdonly_cast) {                                                             \
			struct type *at =                                                          \
				rdonly_cast((void *)(address),                                     \
					    bpf_core_enum_value(enum kernel_type_id, ID_##type));  \
			value = at->field;                                                         \
		} else {                                                                           \
			bpf_probe_read_kernel(&value, sizeof(value),                               \
					      (void *)(address) +                                  \
						      bpf_core_field_offset(struct type, field));  \
		}                                                                                  \
		value;                                                                             \
	})

/* A field of a task. `btf`: the verifier knows the type of `task`. */
#define TASK(btf, task, field) ((btf) ? (task)->field : PEEK(task_struct, task, field))

/* ---- The running task of this CPU ---- */

static __always_inline __u32 this_cpu(void)
{
	return bpf_get_smp_processor_id() & (MAX_CPUS - 1);
}

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

/* ---- Programs ---- */

/*
 * The time in the programs is measured in one run of SAMPLED on each CPU, so that it is known where
 * kernel.bpf_stats_enabled is 0. The number is odd: of programs that run in turn each has its share.
 * The time of the begin is in memory, where it does not divide the verifier's ways. An interrupt's
 * program, or one that preempts, can end a measurement early. The call of a program lies
 * outside. The kernel's figure has it: it is three quarters of a read of the clock, on average.
 */
static __always_inline void begin_run(void)
{
	__u32 cpu = this_cpu();
	__u64 time;

	if (++cpus[cpu].runs >= SAMPLED) {
		cpus[cpu].runs = 0;
		time = bpf_ktime_get_ns();
		cpus[cpu].begun = time + (bpf_ktime_get_ns() - time) / 4;
	}
}

static __always_inline void end_run(void)
{
	__u32 cpu = this_cpu();
	__u64 time;

	if (cpus[cpu].begun) {
		time = bpf_ktime_get_ns() - cpus[cpu].begun;
		cpus[cpu].begun = 0;
		__sync_fetch_and_add(&sampled_time, time < SAMPLED_MOST ? time : SAMPLED_MOST);
	}
}

/* Calls a function that returns an int, and measures its time in some of the runs. */
#define MEASURED(call)                                                                             \
	({                                                                                         \
		int result;                                                                        \
		begin_run();                                                                       \
		result = call;                                                                     \
		end_run();                                                                         \
		result;                                                                            \
	})

/*
 * Defines a program. `call` uses `ctx`. It is no tp_btf: since 6.12 the verifier searches for the
 * names of such a program's arguments among all of the kernel's types, by name.
 */
#define PROGRAM(name, tracepoint, call)                                                            \
	SEC("raw_tp/" #tracepoint) int name##_raw(__u64 *ctx)                                      \
	{                                                                                          \
		return MEASURED(call);                                                             \
	}

/* Defines a program for both kinds of attachment. `call` uses `ctx` and the constant `btf`. */
#define TYPED_PROGRAM(name, tracepoint, call)                                                      \
	SEC("tp_btf/" #tracepoint) int name##_btf(__u64 *ctx)                                      \
	{                                                                                          \
		const bool btf = true;                                                             \
		return MEASURED(call);                                                             \
	}                                                                                          \
	SEC("raw_tp/" #tracepoint) int name##_raw(__u64 *ctx)                                      \
	{                                                                                          \
		const bool btf = false;                                                            \
		return MEASURED(call);                                                             \
	}

/* Argument n of the tracepoint. In assembly, because the verifier wants constant offsets
 * into ctx and clang would otherwise merge branches into a variable one. */
#define ARG(ctx, n)                                                                                \
	({                                                                                         \
		__u64 value;                                                                       \
		asm volatile("%0 = *(u64 *)(%1 + %2)" : "=r"(value) : "r"(ctx), "i"((n) * 8));     \
		value;                                                                             \
	})

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

/*
 * Calls step(number, context) for each number below `most`, until it returns a number other than 0.
 * In the usual object this is a call of the kernel (Linux 5.17), whose verifier follows a step once and
 * not each time. The loops of the exec program were a third of all that it followed.
 */
#ifdef USUAL
#define REPEAT(most, step, context) bpf_loop(most, step, context, 0)
#else
#define REPEAT(most, step, context)                                                                \
	for (__u32 number = 0; number < (most); number++) {                                        \
		if (step(number, context))                                                         \
			break;                                                                     \
	}
#endif

/* 1 if `value` is 0, else 0, without a branch. */
static __always_inline __u64 is_zero(__u64 value)
{
	value = ~value & (value - 1);
	barrier_var(value);
	return value >> 63;
}

/* ---- The set of followed tasks ---- */

/*
 * The followed tasks: one byte (enum standing) for every possible tid. It is never full, and
 * global data needs no look-up. The last switch-out of a task clears its byte, unless a new
 * task has the tid by then.
 */
__u8 followed[4096] SEC(".data.followed"); /* resized by the loader */
const volatile __u32 followed_count = 4096;

/* How the task that has a tid is followed, in the byte of the tid. 0: the task is not followed. */
enum standing {
	FOLLOWED = 1,
	ENDED = 2, /* it has exited; its last switch-out is to come */
	LEFT = 3, /* a leader after its last switch-out, whose tid an exec by another thread takes */
};

#define STANDING 0x03

/* A bit of the byte, also with `follow_all`: according to the task's last record it may run on one
 * CPU alone. */
#define PINNED 0x80
/* Bits of the byte for a task that is not followed: a record has its present name; it is a daemon
 * that starts containers; it can belong to a server. */
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

/* Changes the byte of a tid. The bits of the tid's previous holder go, such as NAMED. */
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

/*
 * Sets and clears bits of the byte of a task that is not followed. Another CPU can begin to follow it
 * meanwhile: its write to the byte is not undone. The word with the byte is changed, as there are no
 * atomic operations on bytes. Before Linux 5.12 there are none for bits, and the byte is changed as it
 * was read.
 */
static __always_inline void change_bits(__u32 tid, __u32 set, __u32 clear)
{
	__u32 shift = tid % 4 * 8;
	__u64 at = tid & ~3ULL;
	__u8 *all = followed;
	__u8 *slot;

	if (!bpf_core_enum_value_exists(enum bpf_func_id, BPF_FUNC_check_mtu)) {
		slot = follow_slot(tid);
		if (slot)
			*slot = (*slot & ~clear) | set;
		return;
	}
	barrier_var(all);
	barrier_var(at);
	if (at > followed_count - 4)
		return;
	if (clear)
		__sync_fetch_and_and((__u32 *)(all + at), ~(clear << shift));
	if (set)
		__sync_fetch_and_or((__u32 *)(all + at), set << shift);
}

/* ---- Records of the lifecycle ring ---- */

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 4096); /* set by the loader */
} life_ring SEC(".maps");

/* Wakes the recorder by a discarded record in the lifecycle ring: no reader sees it. */
static __always_inline void wake_reader(void)
{
	void *bell = bpf_ringbuf_reserve(&life_ring, 8, 0);

	if (bell)
		bpf_ringbuf_discard(bell, BPF_RB_FORCE_WAKEUP);
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

/* Reports the lost lifecycle events of a CPU before its next record. Not static: the verifier looks
 * at it once. */
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

/* Reserves a record of `size` bytes (a constant) in the lifecycle ring and fills its head. NULL if
 * there is no room, which counts as a loss if `count` is set. */
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

#endif
