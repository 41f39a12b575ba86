/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The names of programs that start containers, run them, or serve the machine.
 */
#ifndef TR_NAMES_BPF_H
#define TR_NAMES_BPF_H

#include "core.bpf.h"

/* The part of a program in running containers, by its name. */
enum part {
	PART_NONE = 0,
	PART_DAEMON = 1,  /* starts containers for clients */
	PART_RUNTIME = 2, /* is executed for each container */
	PART_CLIENT = 3,  /* asks a daemon */
	PART_SYSTEM = 4,  /* serves the machine or a session, not a build */
};

/* The part that each known name stands for. The loader fills this map (src/names.rs): a search in a
 * table would cost the verifier a thousand instructions in each program. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 128);
	__type(key, char[TASK_COMM_LEN]);
	__type(value, __u32);
} names SEC(".maps");

/* The part that a task's name stands for (enum part). */
static __always_inline __u32 part_of(struct task_struct *task)
{
	char name[TASK_COMM_LEN] = {};
	__u32 *part;

	bpf_probe_read_kernel_str(name, sizeof(name),
				  (void *)task + bpf_core_field_offset(task->comm));
	part = bpf_map_lookup_elem(&names, name);
	return part ? *part : PART_NONE;
}

#endif
