/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The working directory of a process that executes a program: the names on the way from the directory
 * up to the root of the process. The recorder puts them together.
 */
#ifndef TR_DIRECTORY_BPF_H
#define TR_DIRECTORY_BPF_H

#include "core.bpf.h"

/* The mount that contains the kernel's public part of it. */
static __always_inline struct mount *mount_of(struct vfsmount *mnt)
{
	return (void *)mnt - bpf_core_field_offset(struct mount, mnt);
}

/* The id of the mount whose root is the root of a process; -1 if the root is another directory. */
static __always_inline __s32 root_mount(struct fs_struct *fs)
{
	struct mount *mount = mount_of(BPF_CORE_READ(fs, root.mnt));

	if (BPF_CORE_READ(mount, mnt.mnt_root) != BPF_CORE_READ(fs, root.dentry))
		return -1;
	return BPF_CORE_READ(mount, mnt_id);
}

/* A walk from a directory up to the root of a process. */
struct climb {
	struct dentry *top;
	struct mount *top_mount;
	struct dentry *dentry;
	struct mount *mount;
	struct dentry *root; /* of the mount */
	struct wire_directory *record;
};

/* Goes up by one directory and writes its name. Returns 1 at the end of the walk. The expressions in
 * BPF_CORE_READ have no field of `climb`: libbpf would look for it in the kernel. */
static __always_inline long climb_once(__u32 number, void *context)
{
	struct climb *climb = context;
	/* The end of the names, minus DIRECTORY_LONGEST. It is in memory, because the verifier would follow
	 * the loop again for each range of values. */
	volatile __s32 *end = &climb->record->length;
	__u32 at = *end + DIRECTORY_LONGEST;
	struct dentry *dentry = climb->dentry;
	struct mount *mount = climb->mount, *parent;
	long length;

	if (dentry == climb->top && mount == climb->top_mount) {
		*end = at;
		return 1;
	}
	/* The root of a mount has its name in the directory that it is mounted on. */
	if (dentry == climb->root) {
		parent = BPF_CORE_READ(mount, mnt_parent);
		if (parent == mount) {
			*end = at;
			return 1;
		}
		climb->dentry = BPF_CORE_READ(mount, mnt_mountpoint);
		climb->mount = parent;
		climb->root = BPF_CORE_READ(parent, mnt.mnt_root);
		return 0;
	}
	if (at >= DIRECTORY_AREA)
		return 1;
	length = bpf_probe_read_kernel_str(climb->record->names + at, NAME_AREA,
					   BPF_CORE_READ(dentry, d_name.name));
	if (length <= 1)
		return 1;
	*end += length;
	climb->dentry = BPF_CORE_READ(dentry, d_parent);
	return 0;
}

/* Writes the names on the way from the running task's working directory up to its root, and their
 * length. The length stays negative if the directory is too deep, or if its names are too long. */
static __always_inline void put_names(struct wire_directory *record, struct fs_struct *fs)
{
	struct mount *mount = mount_of(BPF_CORE_READ(fs, pwd.mnt));
	struct climb climb = {
		.top = BPF_CORE_READ(fs, root.dentry),
		.top_mount = mount_of(BPF_CORE_READ(fs, root.mnt)),
		.dentry = BPF_CORE_READ(fs, pwd.dentry),
		.mount = mount,
		.root = BPF_CORE_READ(mount, mnt.mnt_root),
		.record = record,
	};

	*(volatile __s32 *)&record->length = -DIRECTORY_LONGEST;
	REPEAT(DIRECTORY_DEPTH, climb_once, &climb);
}

/* Records the working directory of the running task, before its exec. Not static: the verifier looks
 * at it once, and not again for each way here. */
__noinline int put_directory(__u64 time)
{
	struct task_struct *task = (struct task_struct *)bpf_get_current_task();
	struct wire_directory *record;

	count_life();
	record = reserve_life(time, LIFE_DIRECTORY, sizeof(*record), true);
	if (!record)
		return 0;
	record->tid = BPF_CORE_READ(task, pid);
	put_names(record, BPF_CORE_READ(task, fs));
	submit_life(record);
	return 0;
}

#endif
