// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The tracer: stamps scheduler and process events and writes them into the slots of their
 * CPU or into the lifecycle ring. It sums nothing of the followed tasks.
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
#include "core.bpf.h"
#include "block.bpf.h"
#include "cgroups.bpf.h"
#include "containers.bpf.h"
#include "directory.bpf.h"
#include "dns.bpf.h"
#include "joins.bpf.h"
#include "memory.bpf.h"
#include "network.bpf.h"
#include "others.bpf.h"
#include "outsiders.bpf.h"
#include "processes.bpf.h"
#include "reasons.bpf.h"
#include "servers.bpf.h"
#include "slots.bpf.h"
#include "stacks.bpf.h"
#include "syscalls.bpf.h"
#include "timeouts.bpf.h"
#include "totals.bpf.h"
#include "waits.bpf.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

/* Brings the wire structs into the BTF of the object, for a test, and the enums
 * that Rust uses. */
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
	struct wire_others others;
	struct wire_directory directory;
	struct wire_container container;
	struct wire_server server;
	struct wire_clock clock;
	struct wire_dns dns;
	struct wire_frame frame;
	struct wire_sample sample;
	struct block_sums block_sums;
	struct block_device block_device;
	struct call_sum call_sum;
	enum sched_kind sched_kind;
	enum sched_flag sched_flag;
	enum waking_context waking_context;
	enum delay_bit delay_bit;
	enum slot_shift slot_shift;
	enum life_kind life_kind;
	enum reason reason;
	enum timeout timeout;
	enum timeout_form timeout_form;
} *wire_types;

/* ---- Scheduling ---- */

/* The tid of a task that is switched; 0 if the task is dead and a new task has the tid. */
static __always_inline __u32 own_tid(bool btf, struct task_struct *task)
{
	__u32 tid = FIELD(btf, task, pid);

	return FIELD(btf, task, exit_state) && standing(tid) == FOLLOWED ? 0 : tid;
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

/* Stops following a task after its last switch-out. A new task that has the same tid stays
 * followed. */
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

/* The last switch-out of a dead task. Out of line, so that all other switches run less code. */
__noinline int last_switch(__u32 cpu, __u64 task, __u64 what)
{
	struct task_struct *prev = (struct task_struct *)task;
	__u64 time;

	cpu &= MAX_CPUS - 1;
	time = is_recorded(cpu) ? emit_sched(cpu, SCHED_SWITCH, what) : bpf_ktime_get_ns();
	if (!follow_all)
		note_queue(cpu, task, time,
			   PREV_FOLLOWED | (is_followed(to_of(what)) ? NEXT_FOLLOWED : 0));
	on_final(prev, time);
	end_submitter(BPF_CORE_READ(prev, pid));
	forget(prev);
	return 0;
}

/* Whether a task may run on this CPU alone. While a task is on its way to its only CPU, its mask
 * has that other CPU. */
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

/* Records, with --cpu, whether a task that leaves one of the CPUs may run on that CPU alone: then
 * it runs nowhere else until it comes back. */
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
	/* The slot is looked up again, because the verifier has forgotten its bounds. */
	slot = follow_slot(tid);
	if (slot)
		*slot = (*slot & ~PINNED) | (pinned ? PINNED : 0);
	submit_life(record);
	return 0;
}

static __always_inline int on_switch(bool btf, bool preempt, struct task_struct *prev,
				     struct task_struct *next, __u32 state)
{
	__u32 cpu = this_cpu();
	__u32 from = FIELD(btf, prev, pid);
	__u32 to = FIELD(btf, next, pid);
	__u64 cause = REASON_UNKNOWN, what, time;
	bool mine = is_followed(from);
	__u32 change;

	if (hidden_tid && (from == hidden_tid || to == hidden_tid))
		return 0;
	if (!mine && !is_followed(to)) {
		if (awaited[cpu].tasks > 0 || awaited[cpu].summing)
			others_switch(cpu, address_of(cpu, prev),
				      keep_others ? address_of(cpu, next) : 0,
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
		if (btf ? BPF_CORE_READ_BITFIELD(prev, in_iowait)
			: BPF_CORE_READ_BITFIELD_PROBED(prev, in_iowait)) {
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
	change = mine ? PREV_FOLLOWED : 0;
	if (chosen_cpus && mine && from)
		note_pinned(cpu, address_of(cpu, prev));
	if (mine && state && !preempt)
		cause = state & TASK_RTLOCK_WAIT ? REASON_UNKNOWN : sleep_cause(btf, prev);
	else if (mine)
		change = PREV_FOLLOWED | PREV_WAITS;
	if (cause == REASON_SYNC << SLOT_REASON_SHIFT)
		sync_wait(address_of(cpu, prev));
	time = emit_sched(cpu, SCHED_SWITCH | cause, what);
	if (!follow_all)
		note_queue(cpu, address_of(cpu, prev), time,
			   change | (is_followed(to) ? NEXT_FOLLOWED : 0));
	return 0;
}

/* Reads the arguments of sched_switch. `preempt` is the first one in all layouts. */
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
 * Writes the event of a waking and returns its time; 0: it is not recorded. Interrupts are on if a
 * task wakes itself. Kernels before 5.19 nest programs: an interrupt's event on a busy CPU is counted
 * as missed, as later kernels do.
 */
static __always_inline __u64 emit_waking(__u32 cpu, __u64 kind, __u64 what)
{
	__u64 time = 0;

	if (cpus[cpu].busy) {
		__sync_fetch_and_add(&nested_runs, 1);
		return 0;
	}
	cpus[cpu].busy = 1;
	barrier();
	if (is_recorded(cpu))
		time = emit_sched(cpu, kind, what);
	barrier();
	cpus[cpu].busy = 0;
	return time;
}

static __always_inline int on_waking(bool btf, struct task_struct *wakee)
{
	__u32 cpu = this_cpu();
	struct task_struct *waker = current(cpu);
	__u32 from = PEEK(task_struct, waker, pid);
	__u32 to = FIELD(btf, wakee, pid);
	__u64 context, time;
	bool waits = false;
	__u32 on = 0, is;

	if (!is_followed(from) && !is_followed(to))
		return 0;
	context = waking_context(cpu, waker, wakee);
	if (is_followed(to)) {
		waits = !follow_all && will_wait(btf, wakee);
		on = FIELD(btf, wakee, wake_cpu);
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
	time = emit_waking(cpu, SCHED_WAKING, pack(from, to, context, 0));
	if (waits)
		begin_queueing(on, time ? time : bpf_ktime_get_ns());
	return 0;
}

TYPED_PROGRAM(waking, sched_waking, on_waking(btf, (struct task_struct *)ctx[0]))

/* Whether the fork of a new task was seen. Workers of io_uring and vhost begin without
 * sched_process_fork, and the kernel skips a program that would run inside itself. */
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

/* A new task becomes runnable. kernel_clone has already set vfork_done if the parent will wait for
 * this child; a parent that sleeps in the kernel for another reason has not. */
static __always_inline int on_wakeup_new(struct task_struct *wakee)
{
	__u32 from = (__u32)bpf_get_current_pid_tgid();
	__u32 to = PEEK(task_struct, wakee, pid);
	__u64 flags = 0, time;

	if (!is_followed(from) && !is_followed(to))
		return 0;
	if (is_followed(from) && !has_fork(wakee, to))
		put_fork((struct task_struct *)bpf_get_current_task(), wakee);
	if (PEEK(task_struct, wakee, vfork_done))
		flags = SCHED_VFORK;
	time = emit_waking(this_cpu(), SCHED_WAKEUP_NEW, pack(from, to, 0, flags));
	if (!follow_all && is_followed(to))
		begin_queueing(PEEK(task_struct, wakee, wake_cpu),
			       time ? time : bpf_ktime_get_ns());
	return 0;
}

PROGRAM(wakeup_new, sched_wakeup_new, on_wakeup_new((struct task_struct *)ctx[0]))

/* ---- Signals ---- */

/* The recorder passes its signals on to COMMAND, unless the sender has signalled their
 * whole process group. Only this program can tell the two apart. */
static __always_inline int on_signal(__u32 signal, struct task_struct *task)
{
	__u32 tgid = BPF_CORE_READ(task, tgid);
	struct sent *last;

	if (signal >= SIGNALS || !tgid)
		return 0;
	/* The mask is for verifiers that do not remember the comparison. */
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

/* ---- Living tasks ---- */

/* Processes to follow from the start, by their ids in the recorder's pid namespace. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 4096);
	__type(key, __u32);
	__type(value, __u32);
} targets SEC(".maps");

/* Finds where a task's stack has the user's registers: at the same offset for all tasks. */
static __always_inline void find_regs(struct task_struct *self)
{
	if (!bpf_core_enum_value_exists(enum bpf_func_id, BPF_FUNC_task_pt_regs))
		return;
	/* The verifier allows arithmetic with this pointer only after it has been in memory. */
	*(volatile __u64 *)&own_regs = bpf_task_pt_regs(bpf_get_current_task_btf());
	regs_offset = *(volatile __u64 *)&own_regs - (__u64)BPF_CORE_READ(self, stack);
	regs_known = regs_offset != 0;
}

static __always_inline void write_total(struct seq_file *seq, struct task_struct *task)
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
	/* Some tasks did not begin with a fork that was seen. */
	if (wait_least && is_followed(task->pid))
		give_room(task);
	if (sum_resident) {
		add_resident(task);
		return 0;
	}
	if (write_totals) {
		write_total(ctx->meta->seq, task);
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
