/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The lives of the followed processes and threads: their forks, execs, names, exits and clocks.
 */
#ifndef TR_PROCESSES_BPF_H
#define TR_PROCESSES_BPF_H

#include "core.bpf.h"
#include "cgroups.bpf.h"
#include "containers.bpf.h"
#include "directory.bpf.h"
#include "joins.bpf.h"
#include "memory.bpf.h"
#include "names.bpf.h"
#include "outsiders.bpf.h"
#include "servers.bpf.h"
#include "totals.bpf.h"
#include "waits.bpf.h"

static __always_inline __u64 time_namespace(struct task_struct *task)
{
	struct nsproxy *proxy = BPF_CORE_READ(task, nsproxy);

	if (!bpf_core_field_exists(proxy->time_ns))
		return 0;
	return (__u64)BPF_CORE_READ(proxy, time_ns);
}

/* Records the clock of a process in another time namespace, whose programs read other times. Not
 * static: the verifier looks at it once. */
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

/* Records the clock of a process that has begun or has executed a program, if it is in another time
 * namespace than the recorder. An exec can move a process into the namespace for its children.
 * While `recorder_clock` is unknown nothing is recorded: the snapshot of the living tasks covers
 * the processes from before. */
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

/* Whether a new process is no child of its creator, but of its creator's parent (CLONE_PARENT). A
 * record of a join then names the parent. */
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

/* The values for the record of an exec, and the addresses of its strings. */
struct program {
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
	__u32 fsuid;
	__u32 fsgid;
	__s32 root_mount;
	char comm[TASK_COMM_LEN];
};

/*
 * Writes a record with room for `filename_area` + `argv_area` bytes at its tail. A ring
 * record has a constant size, so there is one call for each, inlined. False: no room for it.
 *
 * argv is one copy of mm->arg_start..arg_end: the kernel has just written these pages, so
 * they are resident.
 */
static __always_inline bool put_exec(const struct program *program, const __u32 filename_area,
				     const __u32 argv_area, bool last)
{
	struct wire_exec *exec = reserve_life(program->time, LIFE_EXEC,
					      sizeof(*exec) + filename_area + argv_area, last);
	__u64 len;
	long name_len;

	/* This check comes first, so that the compiler merges it with the check in reserve_life.
	 * Verifiers before 6.2 would follow the branch of a second check, on which a reserved
	 * record is NULL and never submitted. */
	if (!exec)
		return false;
	len = program->argv_len < argv_limit ? program->argv_len : argv_limit;
	name_len = bpf_probe_read_kernel_str(exec->tail, filename_area, program->filename);
	exec->filename_len = name_len > 0 ? name_len : 0;
	exec->filename_area = filename_area;
	exec->tid = program->tid;
	exec->tgid = program->tgid;
	exec->old_tid = program->old_tid;
	exec->argv_full_len = program->argv_len;
	exec->cgroup = program->cgroup;
	exec->runtime = program->part == PART_RUNTIME;
	exec->max_rss_pages = program->max_rss_pages;
	exec->fsuid = program->fsuid;
	exec->fsgid = program->fsgid;
	exec->root_mount = program->root_mount;
	exec->pad = 0;
	__builtin_memcpy(exec->comm, program->comm, sizeof(exec->comm));
	if (len > argv_area)
		len = argv_area;
	exec->argv_len = len;
	exec->argv_unknown = 0;
	if (len &&
	    bpf_probe_read_user(exec->tail + filename_area, len, (void *)program->arg_start)) {
		exec->argv_len = 0;
		exec->argv_unknown = 1;
	}
	/* The recorder reads the container's name while the runtime has it. */
	if (program->part == PART_RUNTIME)
		bpf_ringbuf_submit(exec, BPF_RB_FORCE_WAKEUP);
	else
		submit_life(exec);
	return true;
}

/* Records that the running task, which is followed, has executed a program. Not static: the
 * verifier looks at it once, and not again for each way here. */
__noinline int record_exec(__u64 name_address, __u32 old_tid)
{
	struct task_struct *task = (struct task_struct *)bpf_get_current_task();
	struct mm_struct *mm = BPF_CORE_READ(task, mm);
	unsigned long end = BPF_CORE_READ(mm, arg_end);
	struct program program = {
		.time = bpf_ktime_get_ns(),
		.filename = (const char *)name_address,
		.arg_start = BPF_CORE_READ(mm, arg_start),
		.cgroup = task_cgroup(task),
		/* exec_mmap has added the memory of the program before. */
		.max_rss_pages = BPF_CORE_READ(task, signal, maxrss),
		.tid = BPF_CORE_READ(task, pid),
		.tgid = BPF_CORE_READ(task, tgid),
		.old_tid = old_tid,
		.fsuid = BPF_CORE_READ(task, cred, fsuid.val),
		.fsgid = BPF_CORE_READ(task, cred, fsgid.val),
		.part = containers ? part_of(task) : PART_NONE,
	};
	__u64 want;
	bool put;

	BPF_CORE_READ_INTO(&program.comm, task, comm);
	program.root_mount = root_mount(BPF_CORE_READ(task, fs));
	program.argv_len = end > program.arg_start ? end - program.arg_start : 0;
	want = program.argv_len < argv_limit ? program.argv_len : argv_limit;
	if (old_tid != program.tid) {
		/* The former leader has the caller's old tid until its last switch-out. */
		set_standing(old_tid, standing(program.tid) == ENDED ? ENDED : 0);
		end_submitter(old_tid);
		end_submitter(program.tid);
	}
	follow(program.tid);
	note_clock(task, program.time);
	put_directory(program.time);
	count_life();
	/* A file name that is too long for the short area gets the long one. */
	{
		char name[FILENAME_SHORT];

		if (bpf_probe_read_kernel_str(name, sizeof(name), program.filename) ==
		    sizeof(name)) {
			put = want <= 16384 ? put_exec(&program, FILENAME_LONG, 16384, false)
					    : put_exec(&program, FILENAME_LONG, 2097152, false);
			if (put)
				return 0;
		}
	}
#define PUT(argv_area) put_exec(&program, FILENAME_SHORT, argv_area, false)
	/* The verifier skips the areas that are longer than argv_limit. */
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
		put_exec(&program, FILENAME_SHORT, 256, true);
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

/* The exit status of a process as wait_task_zombie has it: the group's code if there is one, else
 * the leader's. */
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
	/* do_exit has updated maxrss if this is the last thread. */
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

/* A task exits in a light recording. */
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

/* Where group_dead is no argument, signal->live decides. It has been counted down already, so two
 * threads that exit at the same time can both look like the last one. */
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

#endif
