// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * What our programs are measured against, in the same run (kernel.rs beside
 * this): nothing at all, the time alone, a plain tracer with BPF ring buffers, a
 * plain tracer with a mapped array. None of them follows anybody, counts
 * losses or knows of interrupts. VARIANT says which one this object is.
 */
#include "kernel.h"
#include <bpf/bpf_helpers.h>

char LICENSE[] SEC("license") = "Dual BSD/GPL";

struct event {
	__u64 time;
	__u32 from, to;
	__u16 state;
	__u8 kind, flags;
	__u32 pad;
};

#define EMPTY 0
#define TIME 1
#define RING 2
#define SLOTS 3
#define CPUS 4 /* of more, several share one */

#if VARIANT == RING
struct ring {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 16 << 20); /* holds a round: nobody reads */
} ring0 SEC(".maps"), ring1 SEC(".maps"), ring2 SEC(".maps"), ring3 SEC(".maps");

struct {
	__uint(type, 12 /* BPF_MAP_TYPE_ARRAY_OF_MAPS */);
	__uint(max_entries, CPUS);
	__type(key, __u32);
	__array(values, struct ring);
} rings SEC(".maps") = { .values = { &ring0, &ring1, &ring2, &ring3 } };

static __always_inline void emit(__u32 from, __u32 to, __u16 state, __u8 kind)
{
	__u32 cpu = bpf_get_smp_processor_id() % CPUS;
	__u64 time = bpf_ktime_get_ns();
	void *ring = bpf_map_lookup_elem(&rings, &cpu);
	struct event *event = ring ? bpf_ringbuf_reserve(ring, sizeof(*event), 0) : NULL;

	if (!event)
		return;
	*event = (struct event){ time, from, to, state, kind, 0, 0 };
	bpf_ringbuf_submit(event, BPF_RB_NO_WAKEUP);
}
#elif VARIANT == SLOTS
#define COUNT (1 << 17)

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, CPUS * COUNT);
	__type(key, __u32);
	__type(value, struct event);
} slots SEC(".maps");
struct head {
	__u64 next;
	__u64 pad[7];
} heads[CPUS];

static __always_inline void emit(__u32 from, __u32 to, __u16 state, __u8 kind)
{
	__u32 cpu = bpf_get_smp_processor_id() % CPUS;
	__u32 at = __sync_fetch_and_add(&heads[cpu].next, 1) % COUNT + cpu * COUNT;
	struct event *event = bpf_map_lookup_elem(&slots, &at);

	if (!event)
		return;
	event->from = from;
	event->to = to;
	event->state = state;
	event->kind = kind;
	event->flags = 0;
	*(volatile __u64 *)&event->time = bpf_ktime_get_ns();
}
#else
__u64 sink;

static __always_inline void emit(__u32 from, __u32 to, __u16 state, __u8 kind)
{
	if (VARIANT == TIME)
		sink = bpf_ktime_get_ns();
}
#endif

SEC("tp_btf/sched_switch")
int plain_switch(__u64 *ctx)
{
#if VARIANT < RING
	emit(0, 0, 0, 1);
#else
	emit(((struct task_struct *)ctx[1])->pid, ((struct task_struct *)ctx[2])->pid, ctx[3], 1);
#endif
	return 0;
}

SEC("tp_btf/sched_waking")
int plain_waking(__u64 *ctx)
{
#if VARIANT < RING
	emit(0, 0, 0, 2);
#else
	emit(bpf_get_current_pid_tgid(), ((struct task_struct *)ctx[0])->pid, 0, 2);
#endif
	return 0;
}
