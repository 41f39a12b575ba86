/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The slots of scheduling events. Each CPU writes its own; the recorder maps and empties them.
 */
#ifndef TR_SLOTS_BPF_H
#define TR_SLOTS_BPF_H

#include "core.bpf.h"

/*
 * The slots of all CPUs, one region after the other; the reader maps them. They need no
 * lock: only the CPU writes its head, only the reader its tail.
 */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1); /* set by the loader */
	__type(key, __u32);
	__type(value, struct wire_slot);
} slots SEC(".maps");

/* The slot of a CPU for its event number `head`. User space writes `first`: the look-up refuses a
 * key beyond the map, and a wrong place spoils only the trace of the reader that wrote it. */
static __always_inline struct wire_slot *slot_at(__u32 cpu, __u64 head)
{
	__u32 key = sched_progress[cpu].first - 1 + (head & (slot_count - 1));

	return bpf_map_lookup_elem(&slots, &key);
}

static __always_inline void write_loss(__u32 cpu, __u64 head, __u64 time, __u64 what)
{
	struct wire_slot *slot = slot_at(cpu, head);

	if (slot) {
		slot->what = what;
		slot->when = time << SLOT_TIME_SHIFT | SCHED_LOST;
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

/* The number of a CPU's events between two checks of the fill level of its slots. */
#define LOOK_EVERY 128

/* Wakes the recorder when the slots become half full. */
static __always_inline void look(__u64 head, __u64 waiting)
{
	if (head % LOOK_EVERY == 0 && waiting - slot_count / 2 < LOOK_EVERY)
		wake_reader();
}

/* Counts an event of a CPU that came online during the recording: its events are lost until the
 * reader has given it slots. Out of line, so that the usual way is short. Functions that are not
 * static are verified once, and not at each way to them. */
__noinline int await_slots(__u32 cpu)
{
	struct account *account = &sched_account[cpu & (MAX_CPUS - 1)];

	if (chosen_cpus)
		return 0;
	if (count_emitted)
		account->emitted++;
	if (!account->lost_total)
		wake_reader();
	note_lost(account, bpf_ktime_get_ns());
	return 0;
}

/* This CPU's events are recorded. */
static __always_inline bool is_recorded(__u32 cpu)
{
	if (sched_progress[cpu].first)
		return true;
	await_slots(cpu);
	return false;
}

/* Reports the lost events of a CPU before its next event. True if the slots have room for both. */
__noinline int report_loss(__u32 cpu)
{
	struct account *account;
	__u64 head;

	cpu &= MAX_CPUS - 1;
	account = &sched_account[cpu];
	head = account->head;
	if (head + 3 - sched_progress[cpu].tail > slot_count)
		return false;
	write_loss(cpu, head, account->lost_since, account->lost);
	write_loss(cpu, head + 1, account->lost_until, 1);
	account->head = head + 2;
	account->lost = 0;
	/* These two slots can be those at which the fill level is due to be checked. */
	look(head, head - sched_progress[cpu].tail);
	look(head + 1, head + 1 - sched_progress[cpu].tail);
	return true;
}

/* Packs the second word of a slot (struct wire_slot). */
static __always_inline __u64 pack(__u32 from, __u32 to, __u64 state, __u64 flags)
{
	return (__u64)from << SLOT_FROM_SHIFT | (__u64)to << SLOT_TO_SHIFT |
	       (state & 0xffff) << SLOT_STATE_SHIFT | flags;
}

/* The task `to` in the second word of a slot. */
static __always_inline __u32 to_of(__u64 what)
{
	return what >> SLOT_TO_SHIFT & ((1 << (SLOT_FROM_SHIFT - SLOT_TO_SHIFT)) - 1);
}

/*
 * Writes an event into the next slot of this CPU, or counts it as lost. Returns its time.
 * `kind` has the reason and the time-out, too.
 *
 * The time is read last: the read waits for all earlier loads, so that the slow ones
 * overlap.
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
	slot = slot_at(cpu, head);
	if (!slot)
		return 0; /* beyond the last slot: user space gave a wrong place */
	account->head = head + 1;
	look(head, waiting);
	slot->what = what;
	time = bpf_ktime_get_ns();
	slot->when = time << SLOT_TIME_SHIFT | kind;
	return time;
}

#endif
