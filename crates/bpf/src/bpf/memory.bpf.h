/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Memory: direct reclaim and kills for lack of memory of the followed tasks, and the resident
 * memory of their processes.
 *
 * A task under memory pressure reclaims thousands of times a second, so the kernel side adds
 * its times up: a record at most once a second, and one at its exit.
 */
#ifndef TR_MEMORY_BPF_H
#define TR_MEMORY_BPF_H

#include "core.bpf.h"

/* The most living tasks that have reclaimed memory. */
#define MAX_RECLAIMERS 4096
#define SECOND 1000000000ULL

struct reclaimer {
	__u64 begun; /* 0: not reclaiming */
	__u64 reported;
	__u64 count;
	__u64 ns;
};

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, MAX_RECLAIMERS);
	__type(key, __u32); /* tid */
	__type(value, struct reclaimer);
} reclaimers SEC(".maps");

static __always_inline void report_reclaim(struct reclaimer *reclaimer, __u64 now, __u32 tid,
					   __u32 tgid)
{
	struct wire_reclaim *record;

	count_life();
	record = reserve_life(now, LIFE_RECLAIM, sizeof(*record), true);
	if (record) {
		record->tid = tid;
		record->tgid = tgid;
		record->count = reclaimer->count;
		record->ns = reclaimer->ns;
		submit_life(record);
	}
	reclaimer->count = 0;
	reclaimer->ns = 0;
	reclaimer->reported = now;
}

static __always_inline int on_reclaim_begin(void)
{
	__u32 tid = (__u32)bpf_get_current_pid_tgid();
	struct reclaimer new = {}, *known;

	if (!is_followed(tid))
		return 0;
	new.begun = bpf_ktime_get_ns();
	known = bpf_map_lookup_elem(&reclaimers, &tid);
	if (known) {
		known->begun = new.begun;
		return 0;
	}
	new.reported = new.begun;
	if (bpf_map_update_elem(&reclaimers, &tid, &new, 0))
		__sync_fetch_and_add(&reclaim_overflow, 1);
	else
		any_reclaimed = true;
	return 0;
}

static __always_inline int on_reclaim_end(void)
{
	__u64 self = bpf_get_current_pid_tgid(), now;
	__u32 tid = self;
	struct reclaimer *known;

	if (!any_reclaimed)
		return 0;
	known = bpf_map_lookup_elem(&reclaimers, &tid);
	if (!known || !known->begun)
		return 0;
	now = bpf_ktime_get_ns();
	known->ns += now - known->begun;
	known->count++;
	known->begun = 0;
	if (now - known->reported >= SECOND)
		report_reclaim(known, now, tid, self >> 32);
	return 0;
}

/* Reports the remaining reclaim of a task that exits. */
static __always_inline void end_reclaim(__u32 tid, __u32 tgid)
{
	struct reclaimer *known;

	if (!any_reclaimed)
		return;
	known = bpf_map_lookup_elem(&reclaimers, &tid);
	if (!known)
		return;
	if (known->count)
		report_reclaim(known, bpf_ktime_get_ns(), tid, tgid);
	bpf_map_delete_elem(&reclaimers, &tid);
}

PROGRAM(reclaim, mm_vmscan_direct_reclaim_begin, on_reclaim_begin())
PROGRAM(reclaimed, mm_vmscan_direct_reclaim_end, on_reclaim_end())
/* The reclaim of a cgroup that has reached its limit. */
PROGRAM(memcg, mm_vmscan_memcg_reclaim_begin, on_reclaim_begin())
PROGRAM(memcg_done, mm_vmscan_memcg_reclaim_end, on_reclaim_end())

/* The resident pages of a process. Since 6.2 the counters are split by CPU, and this function reads
 * their common parts. Each of the three differs from its true value by at most B pages for each
 * CPU, where B is twice the number of CPUs, at least 32. */
static __always_inline __u64 resident_pages(struct mm_struct *mm)
{
	struct mm_struct___v6_1 *old = (struct mm_struct___v6_1 *)mm;
	__s64 pages = 0;

#define ADD(which)                                                                                 \
	{                                                                                          \
		__s64 count;                                                                       \
		if (bpf_core_field_exists(mm->rss_stat[which].count))                              \
			count = BPF_CORE_READ(mm, rss_stat[which].count);                          \
		else                                                                               \
			count = BPF_CORE_READ(old, rss_stat.count[which].counter);                 \
		pages += count > 0 ? count : 0;                                                    \
	}
	ADD(MM_FILEPAGES);
	ADD(MM_ANONPAGES);
	ADD(MM_SHMEMPAGES);
#undef ADD
	return pages;
}

/* Adds the resident pages of a followed process to `resident`, for the iterator. */
static __always_inline void add_resident(struct task_struct *task)
{
	__u32 tid = BPF_CORE_READ(task, pid);
	struct mm_struct *mm;

	if (!is_followed(tid) || tid != BPF_CORE_READ(task, tgid))
		return;
	mm = BPF_CORE_READ(task, mm);
	if (!mm)
		return;
	/* A child of vfork uses its parent's memory until it calls exec. */
	if (mm != BPF_CORE_READ(task, real_parent, mm))
		resident += resident_pages(mm);
}

static __always_inline int put_victim(__u32 tid, __u32 tgid, __u64 pages)
{
	struct wire_oom_kill *record;

	if (!is_followed(tid))
		return 0;
	count_life();
	record = reserve_life(bpf_ktime_get_ns(), LIFE_OOM_KILL, sizeof(*record), true);
	if (!record)
		return 0;
	record->tid = tid;
	record->tgid = tgid;
	record->pages = pages;
	submit_life(record);
	return 0;
}

/* Handles both arguments of mark_victim: before 6.9 it was a tid. */
static __always_inline int on_victim(__u64 *ctx)
{
	struct task_struct *task;
	struct mm_struct *mm;

	if (!victim_is_task)
		return put_victim((__u32)ARG(ctx, 0), (__u32)ARG(ctx, 0), 0);
	task = (struct task_struct *)ARG(ctx, 0);
	mm = BPF_CORE_READ(task, mm);
	return put_victim(BPF_CORE_READ(task, pid), BPF_CORE_READ(task, tgid),
			  mm ? resident_pages(mm) : 0);
}

PROGRAM(victim, mark_victim, on_victim(ctx))

#endif
