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

/* Writes the names on the way from the running task's working directory up to its root, and their
 * length. The length stays negative if the directory is too deep, or if its names are too long. */
static __always_inline void put_names(struct wire_directory *record, struct fs_struct *fs)
{
	struct dentry *top = BPF_CORE_READ(fs, root.dentry);
	struct mount *top_mount = mount_of(BPF_CORE_READ(fs, root.mnt));
	struct dentry *dentry = BPF_CORE_READ(fs, pwd.dentry);
	struct mount *mount = mount_of(BPF_CORE_READ(fs, pwd.mnt));
	struct dentry *root = BPF_CORE_READ(mount, mnt.mnt_root);
	/* The end of the names, minus DIRECTORY_LONGEST. It is in memory, because the verifier would follow
	 * the loop again for each range of values. */
	volatile __s32 *end = &record->length;

	*end = -DIRECTORY_LONGEST;
	for (int i = 0; i < DIRECTORY_DEPTH; i++) {
		__u32 at = *end + DIRECTORY_LONGEST;
		long length;

		if (dentry == top && mount == top_mount) {
			*end = at;
			return;
		}
		/* The root of a mount has its name in the directory that it is mounted on. */
		if (dentry == root) {
			struct mount *parent = BPF_CORE_READ(mount, mnt_parent);

			if (parent == mount) {
				*end = at;
				return;
			}
			dentry = BPF_CORE_READ(mount, mnt_mountpoint);
			mount = parent;
			root = BPF_CORE_READ(mount, mnt.mnt_root);
			continue;
		}
		if (at >= DIRECTORY_AREA)
			return;
		length = bpf_probe_read_kernel_str(record->names + at, NAME_AREA,
						   BPF_CORE_READ(dentry, d_name.name));
		if (length <= 1)
			return;
		*end += length;
		dentry = BPF_CORE_READ(dentry, d_parent);
	}
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
