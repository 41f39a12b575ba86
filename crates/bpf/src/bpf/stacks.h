/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Stacks of the followed tasks (--stacks): samples at a fixed interval of each CPU's clock, in a
 * ring of their own, so that none takes the room of a fork or an exec. Part of tracer.bpf.c.
 *
 * A perf event calls the program in the interrupt of its timer: no other program of this CPU
 * runs in between. A record has room for the deepest stack; the reader copies the used part.
 */
#ifndef TR_STACKS_H
#define TR_STACKS_H

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 4096); /* set by the loader */
} sample_ring SEC(".maps");

static __always_inline void submit_sample(void *record)
{
	bpf_ringbuf_submit(record, BPF_RB_NO_WAKEUP);
	if (bpf_ringbuf_query(&sample_ring, BPF_RB_AVAIL_DATA) > sample_half)
		wake_reader();
}

/* The stack of the running task; `ctx` is the program's. */
static __always_inline void put_stack(void *ctx, struct wire_sample *record)
{
	/* An error is negative: a kernel thread has no user stack. */
	record->kernel_len = bpf_get_stack(ctx, record->kernel, sizeof(record->kernel), 0);
	record->user_len = bpf_get_stack(ctx, record->user, SAMPLE_DEPTH * sizeof(record->user[0]),
					 BPF_F_USER_STACK | BPF_F_USER_BUILD_ID);
}

SEC("perf_event") int sample(void *ctx)
{
	struct task_struct *task = (struct task_struct *)bpf_get_current_task();
	__u64 id = bpf_get_current_pid_tgid();
	struct wire_sample *record;

	if (!(__u32)id || !is_followed(id))
		return 0;
	record = bpf_ringbuf_reserve(
		&sample_ring, sizeof(*record) + SAMPLE_DEPTH * sizeof(record->user[0]), 0);
	if (!record) {
		__sync_fetch_and_add(&sample_overflow, 1);
		return 0;
	}
	record->head.time = bpf_ktime_get_ns();
	record->head.kind = LIFE_SAMPLE;
	record->head.cpu = bpf_get_smp_processor_id();
	record->tid = id;
	record->tgid = id >> 32;
	record->seen_tgid = ns_tid(BPF_CORE_READ(task, group_leader), recorder_level);
	record->off_cpu = 0;
	record->ns = sample_period;
	put_stack(ctx, record);
	submit_sample(record);
	return 0;
}

#endif
