/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The totals of a task that the kernel keeps: its CPU time and its times off CPU.
 */
#ifndef TR_TOTALS_BPF_H
#define TR_TOTALS_BPF_H

#include "core.bpf.h"

static __always_inline void put_delays(struct wire_delays *out, struct task_struct *task)
{
	struct task_delay_info *delays = NULL;

	out->run = out->block = out->swap = out->known = 0;
	if (bpf_core_field_exists(task->sched_info.run_delay)) {
		out->run = BPF_CORE_READ(task, sched_info.run_delay);
		out->known = DELAY_RUN;
	}
	/* NULL if the kernel does not count them (kernel.task_delayacct). */
	if (bpf_core_field_exists(task->delays))
		delays = BPF_CORE_READ(task, delays);
	if (delays) {
		out->block = BPF_CORE_READ(delays, blkio_delay);
		out->swap = BPF_CORE_READ(delays, swapin_delay);
		out->known |= DELAY_BLOCK | DELAY_SWAP;
	}
}

static __always_inline void fill_total(bool btf, struct wire_total *total, struct task_struct *task)
{
	total->tid = TASK(btf, task, pid);
	total->tgid = TASK(btf, task, tgid);
	total->sum_exec_runtime = TASK(btf, task, se.sum_exec_runtime);
	total->run_delay = total->run_delay_known = total->pad = 0;
	if (bpf_core_field_exists(task->sched_info.run_delay)) {
		total->run_delay_known = 1;
		total->run_delay = TASK(btf, task, sched_info.run_delay);
	}
}

#endif
