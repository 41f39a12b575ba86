/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The time-out of the system call in which a task goes to sleep, by the call's arguments.
 */
#ifndef TR_TIMEOUTS_BPF_H
#define TR_TIMEOUTS_BPF_H

#include "core.bpf.h"
#include "network.bpf.h"
#include "reasons.bpf.h"

/* include/uapi/linux/futex.h, include/uapi/linux/time.h */
#define FUTEX_WAIT 0
#define FUTEX_WAIT_BITSET 9
#define FUTEX_LOCK_PI 6
#define FUTEX_WAIT_REQUEUE_PI 11
#define FUTEX_LOCK_PI2 13
#define FUTEX_CLOCK_REALTIME 256
#define FUTEX_FLAGS (128 | FUTEX_CLOCK_REALTIME)
#define CLOCK_MONOTONIC 1
#define TIMER_ABSTIME 1
#define MAX_SCHEDULE_TIMEOUT ((long)(~0UL >> 1))

#define NS_PER_SECOND 1000000000ULL
/* The number of seconds from which on all time-outs are in the last class. */
#define LONG_SECONDS 4096

/* An argument of a system call. */
static __always_inline __u64 argument(__u64 regs, __u32 number)
{
	__u64 value = 0;

	if (!bpf_core_field_exists(struct pt_regs, di)) {
		if (number)
			regs += bpf_core_field_offset(struct pt_regs___arm64, regs) +
				number * sizeof(__u64);
		else
			regs += bpf_core_field_offset(struct pt_regs___arm64, orig_x0);
		/* A number, and no pointer, which the verifier lets nobody add or combine. The compiler must
		 * not read it by the load of another case: the verifier refuses a load of the stack and of
		 * the kernel's memory in one place. */
		bpf_probe_read_kernel(&value, sizeof(value), (void *)regs);
		barrier_var(value);
		return value;
	}
	switch (number) {
	case 0:
		return PEEK(pt_regs, regs, di);
	case 1:
		return PEEK(pt_regs, regs, si);
	case 2:
		return PEEK(pt_regs, regs, dx);
	case 3:
		return PEEK(pt_regs, regs, r10);
	case 4:
		return PEEK(pt_regs, regs, r8);
	default:
		return PEEK(pt_regs, regs, r9);
	}
}

/* An argument of a system call whose number is no constant. Not static, like the next functions: the
 * verifier follows each of their ways once. */
__noinline __u64 argument_at(__u64 regs, __u32 number)
{
	return argument(regs, number);
}

/* The class of a time-out (tr_format's Timeout): four an octave, from 1,024 ns on. */
__noinline __u32 timeout_class(__u64 ns)
{
	__u32 bits = 0, class;
	__u64 rest = ns;

	if (ns < 1024)
		return TIMEOUT_SHORT;
	if (rest >> 32) {
		bits += 32;
		rest >>= 32;
	}
	if (rest >> 16) {
		bits += 16;
		rest >>= 16;
	}
	if (rest >> 8) {
		bits += 8;
		rest >>= 8;
	}
	if (rest >> 4) {
		bits += 4;
		rest >>= 4;
	}
	if (rest >> 2) {
		bits += 2;
		rest >>= 2;
	}
	bits += rest >> 1;
	class = TIMEOUT_SHORT + 1 + 4 * (bits - 10) + (ns >> (bits - 2) & 3);
	return class < TIMEOUT_LAST ? class : TIMEOUT_LAST;
}

/* The time in ns at a pointer of user space to seconds and parts of a second. False if it cannot
 * be read. */
static __always_inline bool user_time(__u64 address, __u64 part, __u64 *ns)
{
	__s64 both[2];

	if (bpf_probe_read_user(both, sizeof(both), (void *)address))
		return false;
	if (both[0] < 0)
		both[0] = 0;
	*ns = (__u64)both[0] * NS_PER_SECOND + (__u64)both[1] * part;
	return true;
}

/* The class of a time-out at a pointer of user space, which can be 0. `absolute`: the time is one of
 * CLOCK_MONOTONIC. */
__noinline __u32 pointed(__u64 address, __u64 part, __u32 absolute)
{
	__u64 ns, now;

	if (!address)
		return TIMEOUT_NONE;
	if (!user_time(address, part, &ns))
		return TIMEOUT_SOME;
	if (absolute) {
		now = bpf_ktime_get_ns();
		if (ns <= now)
			return TIMEOUT_SOME;
		ns -= now;
	}
	return timeout_class(ns);
}

static __always_inline __u32 futex_timeout(__u64 regs)
{
	__u32 operation = argument(regs, 1);
	__u64 address = argument(regs, 3);

	switch (operation & ~FUTEX_FLAGS) {
	case FUTEX_WAIT:
		return pointed(address, 1, false);
	case FUTEX_WAIT_BITSET:
	case FUTEX_WAIT_REQUEUE_PI:
	case FUTEX_LOCK_PI2:
		if (operation & FUTEX_CLOCK_REALTIME)
			break;
		return pointed(address, 1, true);
	case FUTEX_LOCK_PI:
		break;
	default:
		return TIMEOUT_UNKNOWN;
	}
	return address ? TIMEOUT_SOME : TIMEOUT_NONE;
}

static __always_inline __u32 clock_timeout(__u64 regs)
{
	__u32 clock = argument(regs, 0);

	if (!(argument(regs, 1) & TIMER_ABSTIME))
		return pointed(argument(regs, 2), 1, false);
	return clock == CLOCK_MONOTONIC ? pointed(argument(regs, 2), 1, true) : TIMEOUT_SOME;
}

/* The time-out of a socket is in ticks, whose length the programs do not know. */
static __always_inline __u32 socket_timeout(__u64 regs)
{
	struct task_struct *task = (struct task_struct *)bpf_get_current_task();
	__u64 file = descriptor_file((__u64)PEEK(task_struct, task, files), regs);
	__u64 socket = file ? (__u64)PEEK(file, file, private_data) : 0;
	__u64 sk = socket ? (__u64)PEEK(socket, socket, sk) : 0;

	if (!sk)
		return TIMEOUT_UNKNOWN;
	return PEEK(sock, sk, sk_rcvtimeo) == MAX_SCHEDULE_TIMEOUT ? TIMEOUT_NONE : TIMEOUT_SOME;
}

static __always_inline __u32 timeout_of(__u64 regs, __u32 form)
{
	__u32 number = form >> TIMEOUT_ARGUMENT_SHIFT & 7;

	switch (form & TIMEOUT_FORM) {
	case TIMEOUT_TIMESPEC:
		return pointed(argument_at(regs, number), 1, false);
	case TIMEOUT_TIMEVAL:
		return pointed(argument_at(regs, number), 1000, false);
	case TIMEOUT_MILLISECONDS: {
		__s32 ms = argument_at(regs, number);

		return ms < 0 ? TIMEOUT_NONE : timeout_class((__u64)ms * 1000000);
	}
	case TIMEOUT_FUTEX:
		return futex_timeout(regs);
	case TIMEOUT_CLOCK:
		return clock_timeout(regs);
	case TIMEOUT_DEADLINE:
		return argument_at(regs, number) ? TIMEOUT_SOME : TIMEOUT_NONE;
	case TIMEOUT_SOCKET:
		return socket_timeout(regs);
	}
	return TIMEOUT_UNKNOWN;
}

/* Whether a call that waits for descriptors has none: poll with a count of 0, select with a count
 * of 0 or without sets. */
static __always_inline bool lacks_descriptors(__u64 regs, __u32 form)
{
	if (form & TIMEOUT_POLLS)
		return !(__u32)argument(regs, 1);
	if (form & TIMEOUT_SELECTS)
		return !(__u32)argument(regs, 0) ||
		       !(argument(regs, 1) | argument(regs, 2) | argument(regs, 3));
	return false;
}

/*
 * The reason and the time-out of a sleep, in their places in a slot's first word, for a system call
 * whose time-out has a form (enum timeout_form). A call without descriptors waits for a timer, or
 * for a signal.
 */
__noinline __u32 timed_sleep(__u64 regs, __u32 form, __u32 reason)
{
	__u32 timeout;

	timeout = timeout_of(regs, form);
	if (lacks_descriptors(regs, form))
		reason = timeout == TIMEOUT_NONE ? REASON_SIGNAL : REASON_TIMER;
	else if (reason == REASON_POLL && timeout >= TIMEOUT_SHORT && is_asking())
		timeout |= TIMEOUT_ASKED;
	return reason << SLOT_REASON_SHIFT | timeout << SLOT_TIMEOUT_SHIFT;
}

/* The reasons of system calls that can have a time-out. */
#define TIMED_REASONS                                                                              \
	(1U << REASON_LOCK | 1U << REASON_TIMER | 1U << REASON_SIGNAL | 1U << REASON_POLL |        \
	 1U << REASON_SOCKET_READ | 1U << REASON_IPC)

/* The reason and the time-out of a task that goes to sleep, in their places in a slot's first
 * word. */
static __always_inline __u64 sleep_cause(bool btf, struct task_struct *task)
{
	__u64 regs = user_regs(btf, task);
	__u32 reason, form;
	int number;

	if (!regs)
		return REASON_UNKNOWN << SLOT_REASON_SHIFT;
	number = syscall_number(regs);
	if (number < 0)
		return REASON_PAGE_FAULT << SLOT_REASON_SHIFT;
	reason = reason_of(btf, task, syscall_entry(number), regs);
	/* Most sleeps are for pipes and children. */
	if (!(TIMED_REASONS >> reason & 1))
		return reason << SLOT_REASON_SHIFT;
	form = (__u32)number < SYSCALLS ? syscall_timeouts[number & (SYSCALLS - 1)] : 0;
	return form ? timed_sleep(regs, form, reason) : reason << SLOT_REASON_SHIFT;
}

#endif
