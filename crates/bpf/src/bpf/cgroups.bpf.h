/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The followed cgroup, and the records of new cgroups and of tasks that move between cgroups.
 */
#ifndef TR_CGROUPS_BPF_H
#define TR_CGROUPS_BPF_H

#include "core.bpf.h"
#include "joins.bpf.h"

/* The levels of cgroups that are searched for the target in all, and in one call of
 * `cgroup_above`. */
#define CGROUP_DEPTH 1024
#define CGROUPS_ONCE 16

/* Searches CGROUPS_ONCE levels upwards from a cgroup for the target. Returns its address, or that
 * of the last one that was searched; 0: there are no more. `self` is the first member of struct
 * cgroup, so a css of the default hierarchy and its cgroup have the same address (cgroup_parent).
 * Not static: the verifier looks at it once. */
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

/* Whether a cgroup is the target or below it. Not static: the verifier looks at it once. */
__noinline __u32 is_in_target(__u64 address)
{
	for (int up = 0; up < CGROUP_DEPTH / CGROUPS_ONCE && address; up++) {
		address = cgroup_above(address);
		if (address && cgroup_id((struct cgroup *)address) == target_cgroup)
			return true;
	}
	/* The target may be above the levels that were searched. */
	if (address)
		__sync_fetch_and_add(&follow_overflow, 1);
	return false;
}

static __always_inline bool in_target_cgroup(struct cgroup *cgroup)
{
	return target_cgroup && is_in_target((__u64)cgroup);
}

/* Whether a cgroup belongs to cgroup v2. Ids are unique only in their hierarchy, and a trace has
 * ids of v2. */
static __always_inline bool in_v2(struct cgroup *cgroup)
{
	return !BPF_CORE_READ(cgroup, root, hierarchy_id);
}

static __always_inline int on_cgroup(__u32 kind, struct cgroup *cgroup, const char *path, __u32 tid,
				     __u32 tgid)
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

/* Follows a task that was moved into the followed cgroup. The move of a whole process comes once,
 * with its leader. A move inside the followed cgroup brings nobody. */
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

/* Records the path of a new cgroup, which cannot be found after the removal of the cgroup. */
static __always_inline int on_mkdir(struct cgroup *cgroup, const char *path)
{
	return in_v2(cgroup) ? on_cgroup(LIFE_CGROUP_MKDIR, cgroup, path, 0, 0) : 0;
}

PROGRAM(mkdir, cgroup_mkdir, on_mkdir((struct cgroup *)ctx[0], (const char *)ctx[1]))

#endif
