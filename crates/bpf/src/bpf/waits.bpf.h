/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The disk that a task waits for, by block_bio_queue, and the file that it waits for in fsync.
 *
 * A wait for block I/O is for the disk to which the task itself has sent a request since its
 * wait before, in a system call of the same number. Otherwise the disk is unknown: the task can
 * wait for a page that another task reads, or be held back because it writes too much.
 * Most tasks use one disk, so a record comes only when the disk is another one than at the
 * task's wait before.
 */
#ifndef TR_WAITS_BPF_H
#define TR_WAITS_BPF_H

#include "core.bpf.h"
#include "reasons.bpf.h"

/* The most living tasks that have sent requests to disks. */
#define MAX_SUBMITTERS 8192

struct submitter {
	__u32 device;	/* of the last request: major << MINORBITS | minor */
	__u32 recorded; /* the device in the task's last record; 0: unknown */
	__s32 call;	/* the number of the system call of the last request */
	__u32 fresh;	/* the request came after the last wait */
};

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, MAX_SUBMITTERS);
	__type(key, __u32); /* tid */
	__type(value, struct submitter);
} submitters SEC(".maps");

/* The number of the system call that a task is in; negative: none, because it is in a page
 * fault. */
static __always_inline __s32 call_of(struct task_struct *task)
{
	__u64 regs = user_regs(false, task);

	return regs ? syscall_number(regs) : 0;
}

static __always_inline int on_bio(struct bio *bio)
{
	__u32 tid = (__u32)bpf_get_current_pid_tgid();
	struct submitter new = { .fresh = 1 }, *known;
	struct gendisk *disk;

	if (!is_followed(tid))
		return 0;
	if (bpf_core_field_exists(bio->bi_bdev))
		disk = BPF_CORE_READ(bio, bi_bdev, bd_disk);
	else
		disk = BPF_CORE_READ((struct bio___v5_11 *)bio, bi_disk);
	new.device = (__u32)BPF_CORE_READ(disk, major) << MINORBITS |
		     (__u32)BPF_CORE_READ(disk, first_minor);
	new.call = call_of((struct task_struct *)bpf_get_current_task());
	known = bpf_map_lookup_elem(&submitters, &tid);
	if (known) {
		known->device = new.device;
		known->call = new.call;
		known->fresh = 1;
		return 0;
	}
	if (bpf_map_update_elem(&submitters, &tid, &new, 0))
		__sync_fetch_and_add(&submitter_overflow, 1);
	else
		any_submitted = true;
	return 0;
}

/* Handles both orders of arguments: before 5.11 the request queue was the first one. */
static __always_inline int bio_event(__u64 *ctx)
{
	if (bio_has_queue)
		return on_bio((struct bio *)ARG(ctx, 1));
	return on_bio((struct bio *)ARG(ctx, 0));
}

PROGRAM(bio, block_bio_queue, bio_event(ctx))

/* Records the disk of a followed task that begins to wait for block I/O. Out of line, so that all
 * other switches run less code. */
__noinline int io_wait(__u64 address)
{
	struct task_struct *task = (struct task_struct *)address;
	__u32 tid = BPF_CORE_READ(task, pid), device;
	struct submitter *known = bpf_map_lookup_elem(&submitters, &tid);
	struct wire_disk_wait *record;

	if (!known)
		return 0;
	device = known->fresh && known->call == call_of(task) ? known->device : 0;
	known->fresh = 0;
	if (device == known->recorded)
		return 0;
	count_life();
	record = reserve_life(bpf_ktime_get_ns(), LIFE_DISK_WAIT, sizeof(*record), true);
	if (!record)
		return 0;
	record->tid = tid;
	record->tgid = BPF_CORE_READ(task, tgid);
	record->device = device;
	record->pad = 0;
	known->recorded = device;
	submit_life(record);
	return 0;
}

/*
 * Records the file of a followed task that goes to sleep in fsync or a similar system call. The
 * recorder drops a name that equals the one before. The programs cannot do that: the address of a
 * file or of its name can belong to another file by now.
 */
__noinline int sync_wait(__u64 address)
{
	struct task_struct *task = (struct task_struct *)address;
	__u64 regs = user_regs(false, task), file = 0;
	struct wire_sync_file *record;
	long length = 0;

	count_life();
	record = reserve_life(bpf_ktime_get_ns(), LIFE_SYNC_FILE, sizeof(*record), true);
	if (!record)
		return 0;
	/* sync(2) and msync(2) have no descriptor. */
	if (regs && (syscall_entry(syscall_number(regs)) & REASON_WRITE))
		file = descriptor_file((__u64)BPF_CORE_READ(task, files), regs);
	if (file)
		length = bpf_probe_read_kernel_str(
			record->name, sizeof(record->name),
			BPF_CORE_READ((struct file *)file, f_path.dentry, d_name.name));
	record->tid = BPF_CORE_READ(task, pid);
	record->tgid = BPF_CORE_READ(task, tgid);
	record->length = length > 0 ? length : 0;
	record->pad = 0;
	submit_life(record);
	return 0;
}

/* Forgets the tid of a task that has ended, because another task can have it from now on. */
static __always_inline void end_submitter(__u32 tid)
{
	if (any_submitted)
		bpf_map_delete_elem(&submitters, &tid);
}

#endif
