/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Stacks of the followed tasks (--stacks): samples at a fixed interval of each CPU's clock, in a
 * ring of their own, so that none takes the room of a fork or an exec.
 *
 * A perf event calls the program in the interrupt of its timer: no other program of this CPU
 * runs in between. A record has room for the deepest stack; the reader copies the used part.
 */
#ifndef TR_STACKS_BPF_H
#define TR_STACKS_BPF_H

#include "core.bpf.h"

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 4096); /* set by the loader */
} sample_ring SEC(".maps");

static __always_inline void submit_sample(void *record)
{
	bpf_ringbuf_submit(record, BPF_RB_NO_WAKEUP);
	if (bpf_ringbuf_query(&sample_ring, BPF_RB_AVAIL_DATA) > sample_half)
		wake_reader();
}

/* The address that stands for a frame in the kernel if user space may not know kernel addresses. */
#define SOMEWHERE 1

/* Hides the frames of a stack in the kernel; `length` is the stack's. */
static __always_inline __s32 hide(__u64 *frames, __s32 length)
{
	__builtin_memset(frames, 0, SAMPLE_DEPTH * sizeof(*frames));
	if (length <= 0)
		return length;
	frames[0] = SOMEWHERE;
	return sizeof(*frames);
}

/* The stack of the running task; `ctx` is the program's. */
static __always_inline void put_stack(void *ctx, struct wire_sample *record)
{
	__u64 first;

	/* An error is negative: a kernel thread has no user stack. The ring's memory can be read
	 * before the record is submitted, so no hidden address comes there. */
	if (show_kernel)
		record->kernel_len = bpf_get_stack(ctx, record->kernel, sizeof(record->kernel), 0);
	else
		record->kernel_len =
			hide(record->kernel, bpf_get_stack(ctx, &first, sizeof(first), 0));
	record->user_len = bpf_get_stack(ctx, record->user, SAMPLE_DEPTH * sizeof(record->user[0]),
					 BPF_F_USER_STACK | BPF_F_USER_BUILD_ID);
}

static __always_inline int on_sample(void *ctx)
{
	struct task_struct *task = (struct task_struct *)bpf_get_current_task();
	__u64 id = bpf_get_current_pid_tgid();
	struct wire_sample *record;

	if (!(__u32)id || !is_followed(id))
		return 0;
	record = bpf_ringbuf_reserve(&sample_ring,
				     sizeof(*record) + SAMPLE_DEPTH * sizeof(record->user[0]), 0);
	if (!record) {
		__sync_fetch_and_add(&sample_overflow, 1);
		return 0;
	}
	record->head.time = bpf_ktime_get_ns();
	record->head.kind = LIFE_SAMPLE;
	record->head.cpu = bpf_get_smp_processor_id();
	record->tid = id;
	record->tgid = id >> 32;
	record->seen_tgid = ns_tid(BPF_CORE_READ(task, group_leader), recorder_level);
	record->arguments = BPF_CORE_READ(task, mm, arg_start);
	record->off_cpu = 0;
	record->ns = sample_period;
	put_stack(ctx, record);
	submit_sample(record);
	return 0;
}

SEC("perf_event") int sample(void *ctx)
{
	return MEASURED(on_sample(ctx));
}

/* ---- Waits (--off-cpu-stacks) ---- */

/* The stack at a task's last switch-out into a sleep. */
struct waiter {
	__u64 since; /* 0: it is not asleep, or was before the recording */
	__s32 kernel_len;
	__s32 user_len;
	__u64 kernel[SAMPLE_DEPTH];
	struct wire_frame user[SAMPLE_DEPTH];
};

/*
 * A task's storage for its stack is allocated before the task sleeps: an allocation wakes kswapd if
 * memory is short, and no program may do that under the lock of a run queue. The task gets its
 * storage at its fork, or, if it began without a fork, from the iterator over the tasks, which runs
 * once a second. Both can fail.
 */
struct {
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct waiter);
} waiters SEC(".maps");

static __always_inline void give_room(struct task_struct *task)
{
	if (!hidden_tid || task->pid != hidden_tid)
		bpf_task_storage_get(&waiters, task, 0, BPF_LOCAL_STORAGE_GET_F_CREATE);
}

SEC("tp_btf/sched_process_fork") int make_room(__u64 *ctx)
{
	struct task_struct *child = (struct task_struct *)ctx[1];

	if (is_followed(child->pid) || is_followed(((struct task_struct *)ctx[0])->pid))
		give_room(child);
	return 0;
}

/* The innermost frames of a stack at sched_switch: this program, bpf_trace_run4 and the
 * tracepoint's own function. */
#define OWN_FRAMES 3

/* Stores the stack of a task that begins to wait. It is still the running task. */
static __always_inline void begin_wait(__u64 *ctx, struct task_struct *task)
{
	struct waiter *waiter = bpf_task_storage_get(&waiters, task, 0, 0);

	if (!waiter) {
		__sync_fetch_and_add(&wait_overflow, 1);
		return;
	}
	waiter->since = bpf_ktime_get_ns();
	waiter->kernel_len = bpf_get_stack(ctx, waiter->kernel, sizeof(waiter->kernel), OWN_FRAMES);
	waiter->user_len = bpf_get_stack(ctx, waiter->user, sizeof(waiter->user),
					 BPF_F_USER_STACK | BPF_F_USER_BUILD_ID);
}

static __always_inline void end_wait(struct task_struct *task)
{
	struct waiter *waiter = bpf_task_storage_get(&waiters, task, 0, 0);
	struct wire_sample *record;
	__u64 now, since;

	if (!waiter || !waiter->since)
		return;
	now = bpf_ktime_get_ns();
	since = waiter->since;
	waiter->since = 0;
	if (now - since < wait_least)
		return;
	record = bpf_ringbuf_reserve(&sample_ring,
				     sizeof(*record) + SAMPLE_DEPTH * sizeof(record->user[0]), 0);
	if (!record) {
		__sync_fetch_and_add(&sample_overflow, 1);
		return;
	}
	record->head.time = now;
	record->head.kind = LIFE_SAMPLE;
	record->head.cpu = bpf_get_smp_processor_id();
	record->tid = task->pid;
	record->tgid = task->tgid;
	record->seen_tgid = ns_tid(BPF_CORE_READ(task, group_leader), recorder_level);
	record->arguments = BPF_CORE_READ(task, mm, arg_start);
	record->off_cpu = 1;
	record->ns = now - since;
	record->kernel_len = waiter->kernel_len;
	record->user_len = waiter->user_len;
	if (show_kernel)
		bpf_probe_read_kernel(record->kernel, sizeof(waiter->kernel), waiter->kernel);
	else
		record->kernel_len = hide(record->kernel, waiter->kernel_len);
	bpf_probe_read_kernel(record->user, sizeof(waiter->user), waiter->user);
	submit_sample(record);
}

static __always_inline int on_wait(__u64 *ctx)
{
	struct task_struct *prev, *next;
	bool preempt;
	__u32 state;

	switched(ctx, &prev, &next);
	preempt = ARG(ctx, 0) & 1;
	if (is_followed(prev->pid) && prev->pid && !preempt) {
		state = task_state(true, prev);
		if (state && !(state & TASK_DEAD))
			begin_wait(ctx, prev);
	}
	if (is_followed(next->pid) && next->pid)
		end_wait(next);
	return 0;
}

SEC("tp_btf/sched_switch") int waits(__u64 *ctx)
{
	return MEASURED(on_wait(ctx));
}

#endif
