/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * System calls of the followed tasks (--syscalls): sums by process and call, in tables that user
 * space maps and empties. What user space writes there is compared and added
 * to alone.
 *
 * tp_btf only: the entry's time is in the task's own storage, which follows a task through an exec
 * by a thread and ends with it. A call that does not return (exit) is not counted, as in strace -c.
 */
#ifndef TR_SYSCALLS_BPF_H
#define TR_SYSCALLS_BPF_H

#include "core.bpf.h"

/* The places that are tried for a process and call. */
#define CALL_PROBES 16

/* Two tables: the programs fill one while user space reads the other. A place is taken by an
 * atomic exchange of its key, and never given back by the programs. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 2 * CALL_SUMS);
	__type(key, __u32);
	__type(value, struct call_sum);
} call_sums SEC(".maps");

/* The system call that a task is in. */
struct entered {
	__u64 time;   /* 0: none */
	__u32 number; /* CALL_COMPAT included */
};

struct {
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct entered);
} entered SEC(".maps");

/* Whether a system call is made by a 32-bit program, or by int 0x80 in a 64-bit program. */
static __always_inline bool is_compat(struct task_struct *task, __u64 regs)
{
	if (bpf_core_field_exists(task->thread_info.status))
		return task->thread_info.status & TS_COMPAT;
	return PEEK(pt_regs___arm64, regs, pstate) & PSR_MODE32;
}

static __always_inline int on_sys_enter(__u64 *ctx)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct entered *in;

	if (!is_followed(task->pid))
		return 0;
	in = NULL;
	if (!hidden_tid || task->pid != hidden_tid)
		in = bpf_task_storage_get(&entered, task, 0, BPF_LOCAL_STORAGE_GET_F_CREATE);
	if (!in) {
		__sync_fetch_and_add(&call_overflow, 1);
		return 0;
	}
	in->number = (__u32)ARG(ctx, 1) & ~CALL_COMPAT;
	if (is_compat(task, ARG(ctx, 0)))
		in->number |= CALL_COMPAT;
	in->time = bpf_ktime_get_ns();
	return 0;
}

SEC("tp_btf/sys_enter") int sys_enter_btf(__u64 *ctx)
{
	return MEASURED(on_sys_enter(ctx));
}

/* The sums of a process and system call (`key`); NULL: there is no room. */
static __always_inline struct call_sum *call_sum(__u64 key)
{
	/* Fibonacci hashing: the high bits depend on all of the key. */
	__u32 at = key * 0x9e3779b97f4a7c15ULL >> 40;
	__u32 table = call_table & 1 ? CALL_SUMS : 0;
	int i;

	for (i = 0; i < CALL_PROBES; i++) {
		__u32 place = table + ((at + i) & (CALL_SUMS - 1));
		struct call_sum *sum = bpf_map_lookup_elem(&call_sums, &place);

		if (!sum)
			return NULL;
		if (sum->key == key)
			return sum;
		if (!sum->key) {
			__u64 before = __sync_val_compare_and_swap(&sum->key, 0, key);

			if (!before || before == key)
				return sum;
		}
	}
	return NULL;
}

static __always_inline int on_sys_exit(__u64 *ctx)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct call_sum *sum;
	struct entered *in;
	__u64 ns;

	if (!is_followed(task->pid))
		return 0;
	in = bpf_task_storage_get(&entered, task, 0, 0);
	/* A new task returns from its parent's fork; the first call began before the recording. */
	if (!in || !in->time)
		return 0;
	ns = bpf_ktime_get_ns() - in->time;
	in->time = 0;
	sum = call_sum((__u64)task->tgid << 32 | in->number);
	if (!sum) {
		__sync_fetch_and_add(&call_overflow, 1);
		return 0;
	}
	__sync_fetch_and_add(&sum->count, 1);
	__sync_fetch_and_add(&sum->ns, ns);
	/* The kernel's range of errors (IS_ERR_VALUE). */
	if ((__u64)ARG(ctx, 1) >= (__u64)-4095)
		__sync_fetch_and_add(&sum->errors, 1);
	/* If two threads return at once, the longer of the two times may be missed. */
	if (ns > sum->longest)
		sum->longest = ns;
	return 0;
}

SEC("tp_btf/sys_exit") int sys_exit_btf(__u64 *ctx)
{
	return MEASURED(on_sys_exit(ctx));
}

#endif
