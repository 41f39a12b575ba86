/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The tasks that have a CPU while followed tasks wait for it.
 *
 * The switches among such tasks are not recorded, because their number grows with the load of the
 * machine. Instead each CPU adds up the time of each thread group and name. A record has the sums
 * when a wait of a followed task ends or begins there, and once a second during a long wait. So a
 * wait and the records of its CPU cover the same time.
 *
 * A task waits from its waking, or from a switch-out as a runnable task, to its switch-in. It waits
 * on the CPU to whose run queue the kernel has moved it last.
 */
#ifndef TR_OTHERS_BPF_H
#define TR_OTHERS_BPF_H

#include "core.bpf.h"
#include "outsiders.bpf.h"
#include "slots.bpf.h"

/* The longest time that one record covers, in ns. */
#define OTHERS_LONGEST 1000000000ULL

/* The waits of followed tasks for each CPU. Other CPUs write it. */
struct {
	__s32 tasks; /* the followed tasks in the run queue; after a missed event it can be wrong until the CPU is idle */
	__u32 summing; /* `others` of this CPU has begun; only this CPU writes it */
	__u64 begun;   /* the time at which the last wait began */
	__u64 pad[6];  /* a cache line for each CPU */
} awaited[MAX_CPUS] __attribute__((aligned(64)));

/* The sums of each CPU since `since`. Only the CPU itself uses them, in programs on sched_switch. */
struct {
	__u64 since;
	__u64 last; /* the time of the last switch that is part of the sums, or at which a followed task has left the CPU */
	__u64 rest;
	__u64 switches;
	struct wire_share shares[OTHERS_SHARES];
} others[MAX_CPUS] __attribute__((aligned(64)));

/* A followed task begins to wait in the run queue of a CPU. */
static __always_inline void begin_queueing(__u32 cpu, __u64 time)
{
	cpu &= MAX_CPUS - 1;
	awaited[cpu].begun = time;
	__sync_fetch_and_add(&awaited[cpu].tasks, 1);
}

/* A followed task does not wait in the run queue of a CPU any more. */
static __always_inline void end_queueing(__u32 cpu)
{
	cpu &= MAX_CPUS - 1;
	if (awaited[cpu].tasks > 0)
		__sync_fetch_and_add(&awaited[cpu].tasks, -1);
}

/* Whether a task that is woken comes into a run queue. Until it leaves its CPU, a task that goes to
 * sleep stays in the queue, and so does one whose place there is kept although it sleeps. */
static __always_inline bool will_wait(bool btf, struct task_struct *wakee)
{
	if (!FIELD(btf, wakee, on_rq))
		return true;
	return bpf_core_field_exists(wakee->se.sched_delayed) &&
	       FIELD(btf, wakee, se.sched_delayed);
}

/* Copies the name of a task as two numbers. */
static __always_inline void peek_name(__u64 task, __u64 *name)
{
	const __u64 offset = bpf_core_field_offset(struct task_struct, comm);

	if (has_rdonly_cast) {
		void *at = rdonly_cast((void *)task,
				       bpf_core_enum_value(enum kernel_type_id, ID_task_struct));

		name[0] = *(__u64 *)(at + offset);
		name[1] = *(__u64 *)(at + offset + sizeof(__u64));
	} else {
		bpf_probe_read_kernel(name, TASK_COMM_LEN, (void *)task + offset);
	}
}

static __always_inline bool has_name(const struct wire_share *share, const __u64 *name)
{
	const __u64 *known = (const __u64 *)share->comm;

	return known[0] == name[0] && known[1] == name[1];
}

static __always_inline void set_share(struct wire_share *share, const __u64 *name, __u32 tgid,
				      __u64 ns)
{
	__u64 *known = (__u64 *)share->comm;

	known[0] = name[0];
	known[1] = name[1];
	share->tgid = tgid;
	share->ns = ns;
}

/* Adds a time to the share of a thread group and name whose sums have no place: to a share with the
 * same name, which is then the share of several thread groups; or instead of the smallest share, if
 * that is smaller; or to the rest. Out of line, because it is rare. */
__noinline int add_to_full(__u32 cpu, __u64 task, __u64 ns)
{
	__u64 name[2], least = ~0ULL;
	struct wire_share *share;
	__u32 at;

	cpu &= MAX_CPUS - 1;
	peek_name(task, name);
	for (at = 0; at < OTHERS_SHARES; at++) {
		share = &others[cpu].shares[at];
		if (has_name(share, name)) {
			share->tgid = 0;
			share->ns += ns;
			return 0;
		}
	}
	/* The place of a share is in the low bits of its time, so that the least number has both. */
	for (at = 0; at < OTHERS_SHARES; at++) {
		__u64 this = others[cpu].shares[at].ns * OTHERS_SHARES + at;

		least = this < least ? this : least;
	}
	if (ns <= least / OTHERS_SHARES) {
		others[cpu].rest += ns;
		return 0;
	}
	share = &others[cpu].shares[least % OTHERS_SHARES];
	others[cpu].rest += share->ns;
	set_share(share, name, PEEK(task_struct, task, tgid), ns);
	return 0;
}

/* Adds the time until `until` to the share of the task that has had the CPU since `last`. Inline where
 * each switch of others comes: a call of a function takes 7 to 13 ns (benches/runs/2026-11-30.md). */
static __always_inline int add_to_share(__u32 cpu, __u64 task, __u64 until)
{
	__u32 tgid = PEEK(task_struct, task, tgid), at;
	__u64 name[2], ns;

	cpu &= MAX_CPUS - 1;
	if (until <= others[cpu].last)
		return 0;
	ns = until - others[cpu].last;
	others[cpu].last = until;
	peek_name(task, name);
	for (at = 0; at < OTHERS_SHARES; at++) {
		struct wire_share *share = &others[cpu].shares[at];

		if (!share->ns) {
			set_share(share, name, tgid, ns);
			return 0;
		}
		if (has_name(share, name) && share->tgid == tgid) {
			share->ns += ns;
			return 0;
		}
	}
	return add_to_full(cpu, task, ns);
}

/* Does what add_to_share does, out of line for the rare ways to it. */
__noinline int add_share(__u32 cpu, __u64 task, __u64 until)
{
	return add_to_share(cpu, task, until);
}

/* Begins new sums of this CPU. Not static, like the functions above: the verifier looks at it once. */
__noinline int begin_sums(__u32 cpu, __u64 since)
{
	cpu &= MAX_CPUS - 1;
	others[cpu].since = others[cpu].last = since;
	others[cpu].rest = others[cpu].switches = 0;
	for (__u32 at = 0; at < OTHERS_SHARES; at++)
		others[cpu].shares[at].ns = 0;
	awaited[cpu].summing = 1;
	return 0;
}

/* Records the sums of this CPU, which end at `until`, and forgets them. A time without a switch needs
 * no record: the switches around it show whose it is. */
__noinline int hand_over(__u32 cpu, __u64 until)
{
	struct wire_others *record;

	cpu &= MAX_CPUS - 1;
	awaited[cpu].summing = 0;
	if (!others[cpu].switches)
		return 0;
	count_life();
	record = reserve_life(until, LIFE_OTHERS, sizeof(*record), true);
	if (!record)
		return 0;
	record->since = others[cpu].since;
	record->rest = others[cpu].rest;
	record->switches = others[cpu].switches;
	__builtin_memcpy(record->shares, others[cpu].shares, sizeof(record->shares));
	submit_life(record);
	return 0;
}

/* A switch between tasks that are not followed, while followed tasks wait for the CPU, or have waited
 * until now. `what`: the event. `next` is the address for the test alone. */
static __always_inline int others_switch(__u32 cpu, __u64 prev, __u64 next, __u64 what)
{
	__u32 from = what >> SLOT_FROM_SHIFT;
	__u32 to = to_of(what);
	__u64 now, begun;

	/* No task waits for an idle CPU. A wait that went on in the run queue of another CPU needs no
	 * sums of this one. */
	if (!to)
		awaited[cpu].tasks = 0;
	if (awaited[cpu].tasks <= 0 || !sched_progress[cpu].first) {
		awaited[cpu].summing = 0;
		return 0;
	}
	if (keep_others) {
		meet((struct task_struct *)prev, from);
		meet((struct task_struct *)next, to);
		now = emit_sched(cpu, SCHED_SWITCH, what);
	} else {
		now = bpf_ktime_get_ns();
	}
	if (!from) {
		awaited[cpu].summing = 0;
		others[cpu].last = now;
		return 0;
	}
	begun = awaited[cpu].begun < now ? awaited[cpu].begun : now;
	if (!awaited[cpu].summing) {
		begin_sums(cpu, begun > others[cpu].last ? begun : others[cpu].last);
	} else if (begun > others[cpu].last) {
		if (others[cpu].switches)
			add_share(cpu, prev, begun);
		hand_over(cpu, begun);
		begin_sums(cpu, begun);
	}
	add_to_share(cpu, prev, now);
	others[cpu].switches++;
	if (now - others[cpu].since > OTHERS_LONGEST) {
		hand_over(cpu, now);
		begin_sums(cpu, now);
	}
	return 0;
}

/* What a recorded switch does to the queue of followed tasks. */
enum queue_change {
	PREV_FOLLOWED = 1, /* the task that leaves the CPU is followed */
	PREV_WAITS = 2,	   /* and goes on to wait */
	NEXT_FOLLOWED = 4, /* the task that gets the CPU is followed */
};

/* Notes a recorded switch of this CPU. */
static __always_inline int note_queue(__u32 cpu, __u64 prev, __u64 time, __u32 change)
{
	cpu &= MAX_CPUS - 1;
	/* Of two followed tasks, one begins to wait while the other one ends its wait. */
	if ((change & (PREV_WAITS | NEXT_FOLLOWED)) == NEXT_FOLLOWED)
		end_queueing(cpu);
	if ((change & (PREV_WAITS | NEXT_FOLLOWED)) == PREV_WAITS)
		begin_queueing(cpu, time);
	if (!(change & PREV_FOLLOWED) && awaited[cpu].summing) {
		if (others[cpu].switches)
			add_share(cpu, prev, time);
		hand_over(cpu, time);
	}
	if (!(change & NEXT_FOLLOWED))
		others[cpu].last = time;
	return 0;
}

/* The kernel moves a task to another CPU: at its waking, or in the run queues. */
static __always_inline int on_migrate(struct task_struct *task, __u32 to)
{
	if (follow_all || !is_followed(PEEK(task_struct, task, pid)))
		return 0;
	/* A sleeping task can be in a run queue. */
	if (PEEK(task_struct, task, on_rq) && will_wait(false, task))
		return 0;
	end_queueing(PEEK(task_struct, task, wake_cpu));
	begin_queueing(to, bpf_ktime_get_ns());
	return 0;
}

PROGRAM(migrate, sched_migrate_task, on_migrate((struct task_struct *)ctx[0], ctx[1]))

#endif
