/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The reason of a sleep, by the system call that the task is in, and the context of a waking.
 */
#ifndef TR_REASONS_BPF_H
#define TR_REASONS_BPF_H

#include "core.bpf.h"

/* include/linux/preempt.h: the preemption count's bits of NMI and hardirq, and the bit of the
 * softirq count that means that one is being served. The others disable softirqs. */
#define IN_HARDIRQ 0x00ff0000
#define SERVING_SOFTIRQ 0x00000100

/* The user's registers of a task, which the kernel saved at its entry; 0: unknown. The saved
 * mode is another one for kernel threads, which have no such registers, and for 32-bit tasks,
 * whose system calls have other numbers. */
static __always_inline __u64 user_regs(bool btf, struct task_struct *task)
{
	__u64 regs = regs_offset;
	bool known;

	if (!regs)
		return 0;
	regs += (__u64)TASK(btf, task, stack);
	if (bpf_core_field_exists(struct pt_regs, cs))
		known = (__u16)PEEK(pt_regs, regs, cs) == USER_CS;
	else
		known = !(PEEK(pt_regs___arm64, regs, pstate) & PSR_MODE);
	return known ? regs : 0;
}

/* The number of a system call; negative: none, an exception. */
static __always_inline int syscall_number(__u64 regs)
{
	if (bpf_core_field_exists(struct pt_regs, orig_ax))
		return PEEK(pt_regs, regs, orig_ax);
	return PEEK(pt_regs___arm64, regs, syscallno);
}

/* The entry of a system call in the table of reasons. */
static __always_inline __u32 syscall_entry(int number)
{
	return (__u32)number < SYSCALLS ? syscall_reasons[number & (SYSCALLS - 1)] : REASON_OTHER;
}

/* The file of the descriptor that is a system call's first argument; 0: there is none. */
static __always_inline __u64 descriptor_file(__u64 files, __u64 regs)
{
	__u64 table = (__u64)PEEK(files_struct, files, fdt), file;
	__u32 number;

	if (bpf_core_field_exists(struct pt_regs, di))
		number = PEEK(pt_regs, regs, di);
	else
		number = PEEK(pt_regs___arm64, regs, orig_x0);
	if (number >= PEEK(fdtable, table, max_fds))
		return 0;
	file = (__u64)PEEK(fdtable, table, fd) + number * sizeof(void *);
	return (__u64)PEEK(list_head, file, next);
}

/* The reason of a read from the descriptor that is a system call's first argument. */
static __always_inline __u32 descriptor_reason(__u64 files, __u64 regs)
{
	__u64 file = descriptor_file(files, regs), inode;
	__u32 mode, major;

	if (!file)
		return REASON_OTHER_DESCRIPTOR;
	inode = (__u64)PEEK(file, file, f_inode);
	mode = PEEK(inode, inode, i_mode) & S_IFMT;
	if (mode == S_IFIFO)
		return REASON_PIPE_READ;
	if (mode == S_IFSOCK)
		return REASON_SOCKET_READ;
	if (mode == S_IFREG || mode == S_IFBLK)
		return REASON_FILE_READ;
	if (mode != S_IFCHR)
		return REASON_OTHER_DESCRIPTOR;
	major = PEEK(inode, inode, i_rdev) >> MINORBITS;
	if (major == TTY_MAJOR || major == TTYAUX_MAJOR ||
	    (major >= UNIX98_PTY_MASTER_MAJOR && major <= UNIX98_PTY_SLAVE_LAST))
		return REASON_TERMINAL;
	return REASON_OTHER_DESCRIPTOR;
}

/* The reason of a sleep in a system call with this table entry. The descriptor's kind is looked up
 * if it decides. */
static __always_inline __u32 reason_of(bool btf, struct task_struct *task, __u32 entry, __u64 regs)
{
	__u32 reason;

	if (!(entry & REASON_BY_DESCRIPTOR))
		return entry & REASON_MASK;
	reason = descriptor_reason((__u64)PEEK(task_struct, task, files), regs);
	if (!(entry & REASON_WRITE) || reason == REASON_TERMINAL ||
	    reason == REASON_OTHER_DESCRIPTOR)
		return reason;
	return reason + 1;
}

/* The reason of a task that goes to sleep. */
static __always_inline __u64 sleep_reason(bool btf, struct task_struct *task)
{
	__u64 regs = user_regs(btf, task);
	int number;

	if (!regs)
		return REASON_UNKNOWN;
	number = syscall_number(regs);
	if (number < 0)
		return REASON_PAGE_FAULT;
	return reason_of(btf, task, syscall_entry(number), regs);
}

/* Whether the running task is in a system call that sends to a socket. Not static, like `receives`:
 * the verifier follows each of their ways once. */
__noinline __u32 sends(void)
{
	struct task_struct *task = (struct task_struct *)bpf_get_current_task();
	__u64 regs = user_regs(false, task);
	__u32 entry;

	if (!regs)
		return false;
	entry = syscall_entry(syscall_number(regs));
	if (!(entry & REASON_SENDS))
		return false;
	return !(entry & REASON_BY_DESCRIPTOR) ||
	       reason_of(false, task, entry, regs) == REASON_SOCKET_WRITE;
}

/* Whether a task can wait for a socket. The softirq that a send raises is not the only one
 * that can run in it: others complete block I/O. */
__noinline __u32 receives(__u64 task)
{
	__u32 reason = sleep_reason(false, (struct task_struct *)task);

	return reason == REASON_SOCKET_READ || reason == REASON_SOCKET_WRITE ||
	       reason == REASON_POLL || reason == REASON_IO_URING;
}

/* The context in which this CPU wakes a task (enum waking_context). x86 keeps the preemption count
 * in a per-CPU variable. The address of this variable is not always exported, but BTF has its
 * distance to the run queue. arm64 keeps the count in the running task. PREEMPT_RT counts softirqs
 * in the task that serves them. */
static __always_inline __u64 waking_context(__u32 cpu, struct task_struct *waker,
					    struct task_struct *wakee)
{
	__u32 count;

	if (bpf_core_field_exists(struct thread_info___arm64, preempt.count))
		count = PEEK(thread_info___arm64,
			     (__u64)waker + bpf_core_field_offset(waker->thread_info),
			     preempt.count);
	else if (preempt_count_distance)
		count = PEEK(upid, run_queue(cpu) + preempt_count_distance, nr);
	else
		return CONTEXT_TASK;
	if (bpf_core_field_exists(waker->softirq_disable_cnt))
		count |= PEEK(task_struct, waker, softirq_disable_cnt) & SERVING_SOFTIRQ;
	if (count & IN_HARDIRQ)
		return CONTEXT_HARDIRQ;
	if (count & SERVING_SOFTIRQ)
		return sends() && receives(address_of(cpu, wakee)) ? CONTEXT_SEND : CONTEXT_SOFTIRQ;
	return CONTEXT_TASK;
}

#endif
