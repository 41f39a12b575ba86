/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Tasks that are followed although no followed task has forked them: they come into the followed
 * cgroup, begin a container, or serve a followed task.
 */
#ifndef TR_JOINS_BPF_H
#define TR_JOINS_BPF_H

#include "core.bpf.h"

/* Whether a task waits in a run queue. A task that was preempted on its way to sleep does. A task
 * that sleeps can still be in the queue until the kernel would choose it: then it is marked as
 * delayed, and does not wait. */
static __always_inline bool in_run_queue(struct task_struct *task)
{
	if (!BPF_CORE_READ(task, on_rq))
		return false;
	return !bpf_core_field_exists(task->se.sched_delayed) ||
	       !BPF_CORE_READ(task, se.sched_delayed);
}

/* Whether a task has left its CPU for the last time. */
static __always_inline bool is_zombie(struct task_struct *task)
{
	return (task_state(false, task) & TASK_DEAD) && !BPF_CORE_READ(task, on_cpu);
}

/* Fills a snapshot except for `followed`. `level` is the depth of the recorder's pid namespace. */
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
	/* Only the memory of the running task can be read. It is the right one if a shell moves
	 * itself, or if a parent has forked a child, whose memory is a copy. */
	if (area && mm && (born || mm == BPF_CORE_READ(self, mm)) &&
	    !bpf_probe_read_user(record->tail, want, (void *)start)) {
		record->argv_len = want;
		record->argv_unknown = 0;
	}
	submit_life(record);
	return 0;
}

/* Follows a task that comes into the followed cgroup, and records it. Not static: the verifier
 * looks at it once. */
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

/* A place in the list of a process's threads. */
struct thread_list {
	__u64 node;
	__u64 head; /* the end of the list */
};

static __always_inline long join_once(__u32 number, void *context)
{
	const __u64 in_task = bpf_core_field_offset(struct task_struct, thread_node);
	struct thread_list *list = context;
	struct list_head *at = (struct list_head *)list->node;

	if (!at)
		list->node = list->head;
	if (list->node == list->head)
		return 1;
	join(list->node - in_task, false);
	list->node = (__u64)BPF_CORE_READ(at, next);
	return 0;
}

/* Follows up to JOINING_ONCE threads of a process, from the list node `node` on. The list ends at
 * `head`. Returns the node of the next thread. Not static, like `join`. */
__noinline __u64 join_some(__u64 node, __u64 head)
{
	struct thread_list list = { .node = node, .head = head };

	REPEAT(JOINING_ONCE, join_once, &list);
	return list.node;
}

/* Follows the threads of a process. `counted`: threads beyond JOINING count as a loss. Not static,
 * like `join`. */
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
		__sync_fetch_and_add(&follow_overflow, BPF_CORE_READ(signal, nr_threads) - JOINING);
	return 0;
}

#endif
