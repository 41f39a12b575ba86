/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Tasks that are not followed, but have an event together with a followed task: they have a CPU
 * before or after it, or they wake it.
 *
 * Such a task gets a record with its name. It gets another one only if its name changes, or if
 * another task gets its tid.
 */
#ifndef TR_OUTSIDERS_BPF_H
#define TR_OUTSIDERS_BPF_H

#include "core.bpf.h"
#include "names.bpf.h"
#include "servers.bpf.h"

/* What a process can be for followed processes: DAEMON, SERVES or 0. The name of its leader
 * decides. Not static: the verifier looks at it once. */
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

/* Records the name of a task that is not followed. Returns what the task can be, like `can_be`. Out
 * of line, because it is rare. */
__noinline int name_outsider(__u64 address)
{
	struct task_struct *task = (struct task_struct *)address;
	__u32 tid = BPF_CORE_READ(task, pid);
	__u32 is = can_be((__u64)BPF_CORE_READ(task, group_leader));
	struct wire_outsider *record;

	change_bits(tid, NAMED | is, 0);
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

/* Notes a task that has an event together with a followed task. Returns what the task can be, like
 * `can_be`. */
static __always_inline __u32 meet(struct task_struct *task, __u32 tid)
{
	__u8 *slot;

	if (follow_all || !tid)
		return 0;
	slot = follow_slot(tid);
	if (!slot || *slot & STANDING)
		return 0;
	return *slot & NAMED ? *slot & (DAEMON | SERVES)
			     : name_outsider(address_of(this_cpu(), task));
}

/* A task that is not followed has got another name. */
static __always_inline void rename_outsider(__u32 tid)
{
	__u8 *slot = follow_all ? NULL : follow_slot(tid);

	if (slot && *slot & NAMED)
		change_bits(tid, 0, NAMED | DAEMON | SERVES);
}

#endif
