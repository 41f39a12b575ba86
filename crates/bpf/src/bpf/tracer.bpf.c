// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The tracer: scheduler and process events, stamped where they happen and put
 * into the slots of their CPU or the lifecycle ring. Nothing is aggregated here.
 *
 * Every program exists twice: as tp_btf, where the verifier knows the types of
 * the arguments and fields are plain loads, and as raw_tp, where each field is
 * a bpf_probe_read_kernel. The loader picks one. `btf` is a constant in each,
 * so the other half of every branch is gone after compilation.
 *
 * Where a program runs with interrupts off (switch, waking, wakeup_new: the
 * run queue lock or pi_lock is held) nothing on this CPU can come between its
 * time stamp and its record. (But for a task that wakes itself: see `busy`.)
 * Records are built in the ring's own memory, never
 * in per-CPU scratch: programs can be preempted on PREEMPT_LAZY kernels.
 */
#include "kernel.h"
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_core_read.h>
#include "events.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

/* ---- Settings, fixed before loading ---- */

/* Position of sched_switch's arguments; the loader reads it from BTF because
 * 5.18 moved it (fa2c3254d7cf) and a later fix moved it again (9c2136be0878). */
const volatile __u32 switch_prev_arg = 1;
/* Position of prev_state; 0: not an argument, read the task's own field. */
const volatile __u32 switch_state_arg = 3;
/* sched_process_exit has group_dead as its second argument (since 6.16). */
const volatile bool exit_has_group_dead = false;
/* Record every task, not only the followed ones. */
const volatile bool follow_all = false;
/* Slots of each CPU, a power of two. */
const volatile __u64 slot_count = 256;
/* A lifecycle ring with more bytes than this waiting wakes the recorder. */
const volatile __u64 life_half = 0;
const volatile __u32 argv_limit = 16384;
/* The cgroup whose tasks are to be followed, or 0. */
const volatile __u64 target_cgroup = 0;
/* From this CPU's run queue to its preemption count, in bytes; 0: not known. */
const volatile __s64 preempt_count_distance = 0;
/* Count every attempt to emit, for checking that recorded + lost = emitted. */
const volatile bool count_emitted = false;

/* ---- Shared with user space ---- */

struct account sched_account[MAX_CPUS] __attribute__((aligned(64)));
struct account life_account[MAX_CPUS];
struct progress sched_progress[MAX_CPUS] __attribute__((aligned(64)));
/* Runs of a program that came while another on the same CPU wrote a slot. */
__u64 nested_runs;
/* COMMAND's process and the recorder's, as the host numbers them; 0: none. And
 * the signals that they were sent, in this order. */
__u32 command_tgid, recorder_tgid;
struct sent sent[2][SIGNALS];
/* Tasks that the last snapshot pass has newly followed. */
__u64 newly_followed;
/* Tasks whose id did not fit into `followed`. */
__u64 follow_overflow;

/* Brings the wire structs into the object's BTF, where a test looks them up. */
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
} *wire_types;

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 4096); /* set by the loader */
} life_ring SEC(".maps");

/*
 * The slots of all CPUs, one region after the other. The reader maps them.
 * Nothing here needs a lock: a CPU's head is its own, its tail is the reader's.
 */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1); /* set by the loader */
	__type(key, __u32);
	__type(value, struct wire_slot);
} slots SEC(".maps");

/*
 * The followed tasks: one byte for every possible tid. It is never full, and
 * global data is reached without a look-up; the byte is cleared when the task is
 * switched out for the last time, before its tid can be given anew.
 */
__u8 followed[4096] SEC(".data.followed"); /* resized by the loader */
const volatile __u32 followed_count = 4096;

/* Processes to follow from the start, as the recorder's pid namespace names
 * them. */
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

/* A task's id in the pid namespace at `level`; the innermost when it is not
 * that deep. */
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

/* Takes any address for a pointer to a kernel type; loads through it are checked. */
extern void *bpf_rdonly_cast(const void *address, __u32 btf_id) __ksym __weak;

/* include/linux/preempt.h: bits of the preemption count. Bit 8 says that a
 * softirq is being served; the other softirq bits only that they are disabled. */
#define IN_INTERRUPT 0x00ff0100

/*
 * Whether an interrupt is being served on this CPU. x86 keeps the preemption
 * count in a per-CPU variable; its address is not always exported. But the
 * running task points to this CPU's run queue, which is a per-CPU variable too,
 * and BTF tells how far apart the two are.
 */
static __always_inline bool in_interrupt(struct account *account)
{
	int count = 0;

	if (!preempt_count_distance)
		return false;
	if (!account->preempt_count) {
		struct task_struct *task = (struct task_struct *)bpf_get_current_task();
		__u64 rq = (__u64)BPF_CORE_READ(task, se.cfs_rq, rq);

		if (!rq)
			return false;
		account->preempt_count = rq + preempt_count_distance;
	}
	/* A plain load where the kernel can check it (6.2): it costs next to nothing. */
	if (bpf_ksym_exists(bpf_rdonly_cast)) {
		struct upid *as_int = bpf_rdonly_cast((void *)account->preempt_count,
						      bpf_core_type_id_kernel(struct upid));

		count = as_int->nr;
	} else {
		bpf_probe_read_kernel(&count, sizeof(count), (void *)account->preempt_count);
	}
	return count & IN_INTERRUPT;
}

/* ---- The set of followed tasks ---- */

static __always_inline __u8 *follow_slot(__u32 tid)
{
	__u8 *all = followed;
	__u64 at = tid;

	/* The compiler must not know how long the array seems to be, and is to add
	 * to it the very register that it compares: the verifier follows that one. */
	barrier_var(all);
	barrier_var(at);
	return at < followed_count ? all + at : NULL;
}

static __always_inline bool is_followed(__u32 tid)
{
	__u8 *slot;

	if (follow_all)
		return true;
	slot = follow_slot(tid);
	return slot && *slot;
}

static __always_inline void follow(__u32 tid)
{
	__u8 *slot;

	if (follow_all)
		return;
	slot = follow_slot(tid);
	if (slot)
		*slot = 1;
	else
		__sync_fetch_and_add(&follow_overflow, 1);
}

static __always_inline void unfollow(__u32 tid)
{
	__u8 *slot;

	if (follow_all)
		return;
	slot = follow_slot(tid);
	if (slot)
		*slot = 0;
}

/* ---- Slots of scheduling events ---- */

static __always_inline __u32 this_cpu(void)
{
	return bpf_get_smp_processor_id() & (MAX_CPUS - 1);
}

static __always_inline struct wire_slot *slot_at(struct account *account, __u64 head)
{
	__u32 key = account->first - 1 + (head & (slot_count - 1));

	return bpf_map_lookup_elem(&slots, &key);
}

static __always_inline void write_loss(struct account *account, __u64 head, __u64 time, __u64 what)
{
	struct wire_slot *slot = slot_at(account, head);

	if (slot) {
		slot->what = what;
		slot->when = time << SLOT_KIND_BITS | SCHED_LOST;
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

/* How many events of a CPU pass between two looks at how full its slots are. */
#define LOOK_EVERY 128

/* Wakes the recorder, once each time that the slots become half full: by an
 * empty record in the lifecycle ring, which no reader ever sees. */
static __always_inline void look(__u64 head, __u64 waiting)
{
	void *bell;

	if (head % LOOK_EVERY || waiting - slot_count / 2 >= LOOK_EVERY)
		return;
	bell = bpf_ringbuf_reserve(&life_ring, 8, 0);
	if (bell)
		bpf_ringbuf_discard(bell, BPF_RB_FORCE_WAKEUP);
}

/* What was lost goes before what comes next. True: there is room for one more
 * behind it. */
static __noinline bool report_loss(__u32 cpu)
{
	struct account *account = &sched_account[cpu & (MAX_CPUS - 1)];
	__u64 head = account->head;

	if (head + 3 - sched_progress[cpu & (MAX_CPUS - 1)].tail > slot_count)
		return false;
	write_loss(account, head, account->lost_since, account->lost);
	write_loss(account, head + 1, account->lost_until, 1);
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
 * Writes an event into the next slot of this CPU, or counts it as lost. Returns
 * its time.
 *
 * The time is read last: reading it waits for all loads before it, and so the
 * few that are slow are waited for together.
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
	slot = slot_at(account, head);
	if (!slot)
		return 0; /* there is none beyond the last */
	account->head = head + 1;
	look(head, waiting);
	slot->what = what;
	time = bpf_ktime_get_ns();
	slot->when = time << SLOT_KIND_BITS | kind;
	return time;
}

/*
 * The account of the lifecycle events that happen on this CPU. Unlike the
 * scheduling events they can be preempted, by one of their own kind too (a
 * task's last switch-out). So the total is changed by atomic additions only,
 * `lost` is the total at the last report, and what is reported is the total:
 * whoever reports the same twice harms nobody.
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

/* Reserves a record of `size` (a constant) in the lifecycle ring and fills its
 * head; NULL and counted when there is no room. */
static __always_inline void *reserve_life(__u64 time, __u32 kind, __u64 size, bool count)
{
	__u32 cpu = bpf_get_smp_processor_id();
	struct account *account = life_losses(cpu);
	__u64 total = account->lost_total;
	struct wire_head *head;

	if (total != account->lost) {
		struct wire_life_lost *lost = bpf_ringbuf_reserve(&life_ring, sizeof(*lost), 0);

		if (lost) {
			lost->head.time = account->lost_since;
			lost->head.kind = LIFE_LOST;
			lost->head.cpu = cpu;
			lost->until = account->lost_until;
			lost->count = total;
			account->lost = total;
			bpf_ringbuf_submit(lost, BPF_RB_NO_WAKEUP);
		}
	}
	head = bpf_ringbuf_reserve(&life_ring, size, 0);
	if (!head) {
		if (count)
			note_lost_life(account, time);
		return NULL;
	}
	head->time = time;
	head->kind = kind;
	head->cpu = cpu;
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

/* The last switch-out of a dead task. The scheduler has already closed its
 * accounts (dequeue and switch count come before the tracepoint), so these are
 * the kernel's final figures. */
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
		submit_life(final);
	}
}

static __always_inline void forget(struct task_struct *task)
{
	__u32 tid = BPF_CORE_READ(task, pid);
	__u32 tgid = BPF_CORE_READ(task, tgid);
	bool group_dead = BPF_CORE_READ(task, signal, live.counter) == 0;
	struct task_struct *leader;

	/* While other threads live, one of them may take over the leader's tid by
	 * an exec (de_thread); it must be followed from its first moment. */
	if (tid != tgid || group_dead)
		unfollow(tid);
	if (tid == tgid || !group_dead)
		return;
	/* The last thread clears what the leader had to leave, unless the leader
	 * has its own last switch-out still before it. */
	leader = BPF_CORE_READ(task, group_leader);
	if (task_state(false, leader) & TASK_DEAD)
		unfollow(tgid);
}

/* Out of line: the way of all other switches is shorter for it. */
static __noinline int last_switch(__u32 cpu, struct task_struct *prev, __u64 what)
{
	__u64 time;

	cpu &= MAX_CPUS - 1;
	time = sched_account[cpu].first ? emit_sched(cpu, SCHED_SWITCH, what) :
					  bpf_ktime_get_ns();
	on_final(prev, time);
	forget(prev);
	return 0;
}

static __always_inline int on_switch(bool btf, bool preempt, struct task_struct *prev,
				     struct task_struct *next, __u32 state)
{
	__u32 cpu = this_cpu();
	__u32 from = FIELD(btf, prev, pid);
	__u32 to = FIELD(btf, next, pid);
	__u64 what = pack(from, to, state, preempt ? SCHED_PREEMPT : 0);
	bool mine;

	sched_account[cpu].task = (__u64)next;
	mine = is_followed(from);
	if (!mine && !is_followed(to))
		return 0;
	if (state & TASK_UNINTERRUPTIBLE) {
		if (btf ? BPF_CORE_READ_BITFIELD(prev, in_iowait) :
			  BPF_CORE_READ_BITFIELD_PROBED(prev, in_iowait))
			what |= SCHED_IOWAIT;
	}
	if ((state & TASK_DEAD) && mine && from)
		return last_switch(cpu, prev, what);
	if (sched_account[cpu].first)
		emit_sched(cpu, SCHED_SWITCH, what);
	return 0;
}

/* Argument n of the tracepoint. In assembly, because the verifier wants constant
 * offsets into ctx and clang would otherwise merge branches into a variable one. */
#define ARG(ctx, n)                                                                             \
	({                                                                                      \
		__u64 value;                                                                    \
		asm volatile("%0 = *(u64 *)(%1 + %2)" : "=r"(value) : "r"(ctx), "i"((n) * 8));  \
		value;                                                                          \
	})

/* `preempt` stays the first argument in all layouts. */
#define SWITCH(btf, ctx)                                                                        \
	({                                                                                      \
		struct task_struct *prev, *next;                                                \
		__u32 state;                                                                    \
		if (switch_prev_arg == 2) {                                                     \
			prev = (struct task_struct *)ARG(ctx, 2);                                  \
			next = (struct task_struct *)ARG(ctx, 3);                                  \
		} else {                                                                        \
			prev = (struct task_struct *)ARG(ctx, 1);                                  \
			next = (struct task_struct *)ARG(ctx, 2);                                  \
		}                                                                               \
		if (switch_state_arg == 3)                                                      \
			state = ARG(ctx, 3);                                                       \
		else if (switch_state_arg == 1)                                                 \
			state = ARG(ctx, 1);                                                       \
		else                                                                            \
			state = task_state(btf, prev);                                          \
		on_switch(btf, ARG(ctx, 0), prev, next, state);                                    \
	})

SEC("tp_btf/sched_switch")
int switch_btf(__u64 *ctx)
{
	return SWITCH(true, ctx);
}

SEC("raw_tp/sched_switch")
int switch_raw(__u64 *ctx)
{
	return SWITCH(false, ctx);
}

/*
 * The tid of the running task. Of its own helper's 10 ns (a call that returns
 * through the kernel's return thunk) the way by the last switch takes one. The
 * tid is read now, because an exec by a thread changes it.
 */
static __always_inline __u32 current_tid(struct account *account)
{
	if (bpf_ksym_exists(bpf_rdonly_cast) && account->task) {
		struct task_struct *task = bpf_rdonly_cast(
			(void *)account->task, bpf_core_type_id_kernel(struct task_struct));

		return task->pid;
	}
	return (__u32)bpf_get_current_pid_tgid();
}

/*
 * Writes the event of a waking. Interrupts may be on, when a task wakes itself,
 * and before 5.19 the kernel ran a program inside itself: an interrupt that
 * finds this CPU busy counts its event as missed, as later kernels do.
 */
static __always_inline void emit_waking(__u32 cpu, __u64 kind, __u64 what)
{
	struct account *account = &sched_account[cpu];

	if (!account->first)
		return;
	if (account->busy) {
		__sync_fetch_and_add(&nested_runs, 1);
		return;
	}
	account->busy = 1;
	barrier();
	emit_sched(cpu, kind, what);
	barrier();
	account->busy = 0;
}

static __always_inline int on_waking(bool btf, struct task_struct *wakee)
{
	__u32 cpu = this_cpu();
	__u32 from = current_tid(&sched_account[cpu]);
	__u32 to = FIELD(btf, wakee, pid);
	__u64 flags;

	if (!is_followed(from) && !is_followed(to))
		return 0;
	flags = in_interrupt(&sched_account[cpu]) ? SCHED_IRQ : 0;
	emit_waking(cpu, SCHED_WAKING, pack(from, to, 0, flags));
	return 0;
}

SEC("tp_btf/sched_waking")
int waking_btf(__u64 *ctx)
{
	return on_waking(true, (struct task_struct *)ctx[0]);
}

SEC("raw_tp/sched_waking")
int waking_raw(__u64 *ctx)
{
	return on_waking(false, (struct task_struct *)ctx[0]);
}

/* By now kernel_clone has set vfork_done: a parent that will wait for this
 * child can be told from one that sleeps in the kernel for another reason. */
static __always_inline int on_wakeup_new(bool btf, struct task_struct *wakee)
{
	__u32 from = (__u32)bpf_get_current_pid_tgid();
	__u32 to = FIELD(btf, wakee, pid);
	__u64 flags = 0;

	if (!is_followed(from) && !is_followed(to))
		return 0;
	if (FIELD(btf, wakee, vfork_done))
		flags = SCHED_VFORK;
	emit_waking(this_cpu(), SCHED_WAKEUP_NEW, pack(from, to, 0, flags));
	return 0;
}

SEC("tp_btf/sched_wakeup_new")
int wakeup_new_btf(__u64 *ctx)
{
	return on_wakeup_new(true, (struct task_struct *)ctx[0]);
}

SEC("raw_tp/sched_wakeup_new")
int wakeup_new_raw(__u64 *ctx)
{
	return on_wakeup_new(false, (struct task_struct *)ctx[0]);
}

/* ---- Processes ---- */

static __always_inline int on_fork(struct task_struct *parent, struct task_struct *child)
{
	__u32 parent_tid = BPF_CORE_READ(parent, pid);
	__u32 tid = BPF_CORE_READ(child, pid);
	struct wire_fork *fork;
	__u64 time;

	if (!is_followed(parent_tid))
		return 0;
	time = bpf_ktime_get_ns();
	follow(tid);
	count_life();
	fork = reserve_life(time, LIFE_FORK, sizeof(*fork), true);
	if (!fork)
		return 0;
	fork->parent_tid = parent_tid;
	fork->parent_tgid = BPF_CORE_READ(parent, tgid);
	fork->tid = tid;
	fork->tgid = BPF_CORE_READ(child, tgid);
	fork->start_time = BPF_CORE_READ(child, start_time);
	fork->cgroup = task_cgroup(child);
	fork->ns_tid = ns_tid(child, ~0U);
	fork->pad = 0;
	BPF_CORE_READ_INTO(&fork->comm, child, comm);
	submit_life(fork);
	return 0;
}

SEC("tp_btf/sched_process_fork")
int fork_btf(__u64 *ctx)
{
	return on_fork((struct task_struct *)ctx[0], (struct task_struct *)ctx[1]);
}

SEC("raw_tp/sched_process_fork")
int fork_raw(__u64 *ctx)
{
	return on_fork((struct task_struct *)ctx[0], (struct task_struct *)ctx[1]);
}

/*
 * A record with room for `filename_area` + `argv_area` bytes at its tail.
 * The areas are constants (the ring only gives constant sizes), so there is
 * one call for each size. False: no room, a smaller one may be tried.
 *
 * argv is one copy from mm->arg_start..arg_end: the kernel has just written
 * these pages, so they are resident.
 */
static __always_inline bool put_exec(__u64 time, struct task_struct *task, __u32 old_tid,
				     const char *filename, unsigned long arg_start,
				     __u64 full_len, const __u32 filename_area,
				     const __u32 argv_area, bool last)
{
	struct wire_exec *exec = reserve_life(time, LIFE_EXEC,
					      sizeof(*exec) + filename_area + argv_area, last);
	__u64 len;
	long name_len;

	/* First of all: the compiler joins this with the check in reserve_life. The
	 * verifiers before 6.2 would take the path of a second one, on which a
	 * record that was reserved is NULL and so never submitted. */
	if (!exec)
		return false;
	len = full_len < argv_limit ? full_len : argv_limit;
	name_len = bpf_probe_read_kernel_str(exec->tail, filename_area, filename);
	exec->filename_len = name_len > 0 ? name_len : 0;
	exec->filename_area = filename_area;
	exec->tid = BPF_CORE_READ(task, pid);
	exec->tgid = BPF_CORE_READ(task, tgid);
	exec->old_tid = old_tid;
	exec->argv_full_len = full_len;
	exec->cgroup = task_cgroup(task);
	exec->pad = 0;
	BPF_CORE_READ_INTO(&exec->comm, task, comm);
	if (len > argv_area)
		len = argv_area;
	exec->argv_len = len;
	exec->argv_unknown = 0;
	if (len && bpf_probe_read_user(exec->tail + filename_area, len, (void *)arg_start)) {
		exec->argv_len = 0;
		exec->argv_unknown = 1;
	}
	submit_life(exec);
	return true;
}

static __always_inline int on_exec(struct task_struct *task, __u32 old_tid,
				   struct linux_binprm *bprm)
{
	__u32 tid = BPF_CORE_READ(task, pid);
	const char *filename = BPF_CORE_READ(bprm, filename);
	struct mm_struct *mm = BPF_CORE_READ(task, mm);
	unsigned long start = BPF_CORE_READ(mm, arg_start);
	unsigned long end = BPF_CORE_READ(mm, arg_end);
	__u64 len = end > start ? end - start : 0;
	__u64 want = len < argv_limit ? len : argv_limit;
	__u64 time;

	if (!is_followed(tid) && !is_followed(old_tid))
		return 0;
	time = bpf_ktime_get_ns();
	follow(tid);
	if (old_tid != tid)
		unfollow(old_tid);
	count_life();
#define TRY(filename_area, argv_area, last)                                                     \
	if (want <= (argv_area) || (last)) {                                                    \
		if (put_exec(time, task, old_tid, filename, start, len, filename_area,          \
			     argv_area, last))                                                  \
			return 0;                                                               \
	}
	/* Is there room for the name in the short area? */
	{
		char name[FILENAME_SHORT];

		if (bpf_probe_read_kernel_str(name, sizeof(name), filename) == sizeof(name)) {
			TRY(FILENAME_LONG, 16384, false);
			TRY(FILENAME_LONG, 2097152, false);
		}
	}
	TRY(FILENAME_SHORT, 256, false);
	TRY(FILENAME_SHORT, 1024, false);
	TRY(FILENAME_SHORT, 4096, false);
	TRY(FILENAME_SHORT, 16384, false);
	TRY(FILENAME_SHORT, 131072, false);
	TRY(FILENAME_SHORT, 2097152, false);
	/* No room for the whole: a cut argv is better than a lost exec. */
	TRY(FILENAME_SHORT, 256, true);
#undef TRY
	return 0;
}

SEC("tp_btf/sched_process_exec")
int exec_btf(__u64 *ctx)
{
	return on_exec((struct task_struct *)ctx[0], ctx[1], (struct linux_binprm *)ctx[2]);
}

SEC("raw_tp/sched_process_exec")
int exec_raw(__u64 *ctx)
{
	return on_exec((struct task_struct *)ctx[0], ctx[1], (struct linux_binprm *)ctx[2]);
}

static __always_inline int on_exit(struct task_struct *task, bool group_dead)
{
	__u32 tid = BPF_CORE_READ(task, pid);
	struct signal_struct *signal = BPF_CORE_READ(task, signal);
	struct wire_exit *exit;
	__u64 time;

	if (!is_followed(tid))
		return 0;
	time = bpf_ktime_get_ns();
	count_life();
	exit = reserve_life(time, LIFE_EXIT, sizeof(*exit), true);
	if (!exit)
		return 0;
	exit->tid = tid;
	exit->tgid = BPF_CORE_READ(task, tgid);
	exit->status = BPF_CORE_READ(task, exit_code);
	exit->group_dead = group_dead;
	/* As wait_task_zombie: the group's code, else the leader's. */
	if (BPF_CORE_READ(signal, flags) & SIGNAL_GROUP_EXIT)
		exit->group_status = BPF_CORE_READ(signal, group_exit_code);
	else
		exit->group_status = BPF_CORE_READ(task, group_leader, exit_code);
	exit->utime = BPF_CORE_READ(task, utime);
	exit->stime = BPF_CORE_READ(task, stime);
	exit->sum_exec_runtime = BPF_CORE_READ(task, se.sum_exec_runtime);
	exit->nvcsw = BPF_CORE_READ(task, nvcsw);
	exit->nivcsw = BPF_CORE_READ(task, nivcsw);
	exit->min_flt = BPF_CORE_READ(task, min_flt);
	exit->maj_flt = BPF_CORE_READ(task, maj_flt);
	/* do_exit has brought it up to date when the last thread exits. */
	exit->max_rss_pages = group_dead ? BPF_CORE_READ(signal, maxrss) : 0;
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

/* Without the argument: signal->live has been counted down already. Two
 * threads that exit at the same time can then both look like the last. */
#define EXIT(ctx)                                                                               \
	({                                                                                      \
		struct task_struct *task = (struct task_struct *)ARG(ctx, 0);                      \
		on_exit(task, exit_has_group_dead ?                                             \
				      ARG(ctx, 1) & 1 :                                            \
				      BPF_CORE_READ(task, signal, live.counter) == 0);          \
	})

SEC("tp_btf/sched_process_exit")
int exit_btf(__u64 *ctx)
{
	return EXIT(ctx);
}

SEC("raw_tp/sched_process_exit")
int exit_raw(__u64 *ctx)
{
	return EXIT(ctx);
}

static __always_inline int on_rename(struct task_struct *task, const char *comm)
{
	__u32 tid = BPF_CORE_READ(task, pid);
	struct wire_rename *rename;

	if (!is_followed(tid))
		return 0;
	/* An exec's own renaming comes with the exec. */
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

SEC("tp_btf/task_rename")
int rename_btf(__u64 *ctx)
{
	return on_rename((struct task_struct *)ctx[0], (const char *)ctx[1]);
}

SEC("raw_tp/task_rename")
int rename_raw(__u64 *ctx)
{
	return on_rename((struct task_struct *)ctx[0], (const char *)ctx[1]);
}

/* ---- cgroups ---- */

/* Levels of cgroups that are searched for the target. */
#define CGROUP_DEPTH 16

/* `self` is the first member of struct cgroup, so a css of the default
 * hierarchy and its cgroup have the same address (cgroup_parent). */
static __always_inline bool in_target_cgroup(struct cgroup *cgroup)
{
	if (!target_cgroup)
		return false;
	for (int level = 0; level < CGROUP_DEPTH && cgroup; level++) {
		if (cgroup_id(cgroup) == target_cgroup)
			return true;
		cgroup = (struct cgroup *)BPF_CORE_READ(cgroup, self.parent);
	}
	return false;
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

static __always_inline int on_attach(struct cgroup *cgroup, const char *path,
				     struct task_struct *task)
{
	__u32 tid = BPF_CORE_READ(task, pid);

	if (in_target_cgroup(cgroup))
		follow(tid);
	if (!is_followed(tid))
		return 0;
	return on_cgroup(LIFE_CGROUP_MOVE, cgroup, path, tid, BPF_CORE_READ(task, tgid));
}

SEC("tp_btf/cgroup_attach_task")
int attach_btf(__u64 *ctx)
{
	return on_attach((struct cgroup *)ctx[0], (const char *)ctx[1],
			 (struct task_struct *)ctx[2]);
}

SEC("raw_tp/cgroup_attach_task")
int attach_raw(__u64 *ctx)
{
	return on_attach((struct cgroup *)ctx[0], (const char *)ctx[1],
			 (struct task_struct *)ctx[2]);
}

/* A new cgroup's path, which nothing can tell once the cgroup is gone. */
SEC("tp_btf/cgroup_mkdir")
int mkdir_btf(__u64 *ctx)
{
	return on_cgroup(LIFE_CGROUP_MKDIR, (struct cgroup *)ctx[0], (const char *)ctx[1], 0, 0);
}

SEC("raw_tp/cgroup_mkdir")
int mkdir_raw(__u64 *ctx)
{
	return on_cgroup(LIFE_CGROUP_MKDIR, (struct cgroup *)ctx[0], (const char *)ctx[1], 0, 0);
}

/* ---- Signals ---- */

/* A signal that the recorder gets is COMMAND's too, unless whoever sent it has
 * sent it to COMMAND as well: to their process group. Only here can the two be
 * told apart. */
static __always_inline int on_signal(__u32 signal, struct task_struct *task)
{
	__u32 tgid = BPF_CORE_READ(task, tgid);
	struct sent *last;

	if (signal >= SIGNALS || !tgid)
		return 0;
	/* For verifiers that have lost track of the comparison. */
	barrier_var(signal);
	signal &= SIGNALS - 1;
	if (tgid == command_tgid)
		last = &sent[0][signal];
	else if (tgid == recorder_tgid)
		last = &sent[1][signal];
	else
		return 0;
	last->time = bpf_ktime_get_ns();
	last->sender = bpf_get_current_task();
	return 0;
}

SEC("tp_btf/signal_generate")
int signal_btf(__u64 *ctx)
{
	return on_signal(ctx[0], (struct task_struct *)ctx[2]);
}

SEC("raw_tp/signal_generate")
int signal_raw(__u64 *ctx)
{
	return on_signal(ctx[0], (struct task_struct *)ctx[2]);
}

/* ---- Tasks that are alive already ---- */

/*
 * Writes a record for every living task and follows the targets and their
 * descendants. A descendant can come before its ancestor, so user space reads
 * again until newly_followed stays 0; forks are followed by on_fork meanwhile.
 */
SEC("iter/task")
int snapshot(struct bpf_iter__task *ctx)
{
	struct task_struct *task = ctx->task;
	struct wire_snapshot record = {};
	struct task_struct *self, *parent;
	__u32 seen_tgid;

	if (!task)
		return 0;
	self = (struct task_struct *)bpf_get_current_task();
	record.seen_tid = ns_tid(task, BPF_CORE_READ(self, thread_pid, level));
	record.tid = task->pid;
	record.tgid = task->tgid;
	parent = BPF_CORE_READ(task, real_parent);
	record.parent_tgid = BPF_CORE_READ(parent, tgid);
	/* The reader of the iterator is the recorder: no part of what it records. */
	if (!is_followed(record.tid) && record.tgid != (__u32)(bpf_get_current_pid_tgid() >> 32)) {
		struct task_struct *leader = BPF_CORE_READ(task, group_leader);

		seen_tgid = ns_tid(leader, BPF_CORE_READ(self, thread_pid, level));
		if (bpf_map_lookup_elem(&targets, &seen_tgid) || is_followed(record.tgid) ||
		    is_followed(record.parent_tgid) ||
		    (target_cgroup && in_target_cgroup(BPF_CORE_READ(task, cgroups, dfl_cgrp)))) {
			follow(record.tid);
			/* One that does not fit is not new again and again. */
			if (is_followed(record.tid))
				newly_followed++;
		}
	}
	record.followed = is_followed(record.tid);
	record.start_time = task->start_time;
	record.cgroup = task_cgroup(task);
	record.ns_tid = ns_tid(task, ~0U);
	record.sum_exec_runtime = BPF_CORE_READ(task, se.sum_exec_runtime);
	record.kthread = !!(task->flags & PF_KTHREAD);
	BPF_CORE_READ_INTO(&record.comm, task, comm);
	record.time = bpf_ktime_get_ns();
	record.on_cpu = BPF_CORE_READ(task, on_cpu) != 0;
	/* Preempted on its way to sleep: it is still in the run queue. */
	record.state = !record.on_cpu && BPF_CORE_READ(task, on_rq) ? 0 : task_state(true, task);
	bpf_seq_write(ctx->meta->seq, &record, sizeof(record));
	return 0;
}
