/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The variables that the programs share with the loader and the recorder, and those that the programs
 * share with each other.
 */
#ifndef TR_SETTINGS_BPF_H
#define TR_SETTINGS_BPF_H

#include "kernel.h"
#include "events.h"
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_core_read.h>

/* ---- Settings, fixed before loading ---- */

/*
 * The programs are compiled twice. An OPTION is a setting with one value in most recordings on
 * present kernels. In the usual object the compiler knows that value and removes the code for the
 * others, which the kernel would otherwise load, follow and then remove itself. The variables keep
 * their places, so that one skeleton serves both objects (src/skel.rs; programs.rs picks one).
 */
#ifdef USUAL
#define OPTION const
#define OPTION_IS(usual, other) usual
#else
#define OPTION const volatile
#define OPTION_IS(usual, other) other
#endif

#define ANY_USER (~0U)
/* The number of a helper function that no kernel has: the loader replaces the calls. */
#define RDONLY_CAST 0x7472

/* Position of `prev` in sched_switch's arguments. The loader reads it from BTF: 5.18 moved
 * it (fa2c3254d7cf) and a later fix moved it again (9c2136be0878). */
OPTION __u32 switch_prev_arg = 1;
/* The position of prev_state; 0: it is no argument, and the task's own field is read. */
OPTION __u32 switch_state_arg = 3;
/* sched_process_exit has group_dead as its second argument (since 6.16). */
const volatile bool exit_has_group_dead = false;
/* Record every task, not only the followed ones. */
OPTION bool follow_all = false;
/* Slots of each CPU, a power of two. */
const volatile __u64 slot_count = 256;
/* The number of waiting bytes in the lifecycle ring that wakes the recorder. */
const volatile __u64 life_half = 0;
const volatile __u32 argv_limit = 16384;
/* The cgroup whose tasks are followed, or 0. */
OPTION __u64 target_cgroup = 0;
/* The containers that are followed (enum containers). */
OPTION __u32 containers = OPTION_IS(CONTAINERS_MINE, CONTAINERS_NONE);
/* Servers that answer followed tasks are followed: those of the user `servers_uid`, or of any
 * user. */
OPTION bool servers = OPTION_IS(true, false);
const volatile __u32 servers_uid = ANY_USER;
/* From a CPU's run queue to its preemption count and to its pointer to the running task, in
 * bytes; 0: unknown. */
const volatile __s64 preempt_count_distance = 0;
const volatile __s64 current_distance = 0;
/* The reason of each system call (enum reason), by its number. */
const volatile __u8 syscall_reasons[SYSCALLS];
/* Where each system call has its time-out (enum timeout_form), by its number. */
const volatile __u8 syscall_timeouts[SYSCALLS];
/* Count every attempt to emit, for the test recorded + lost = emitted. */
OPTION bool count_emitted = false;
/* CPUs without slots are left out (--cpu). Otherwise they came online later. */
OPTION bool chosen_cpus = false;
/* block_rq_issue has the request queue as its first argument (before 5.11). */
OPTION bool issue_has_queue = false;
/* block_bio_queue has it, too (before 5.11). */
OPTION bool bio_has_queue = false;
/* mark_victim has the task as its argument (since 6.9). */
const volatile bool victim_is_task = false;
/* The period of the samples of stacks, in ns. */
const volatile __u64 sample_period = 0;
/* The number of waiting bytes in the ring of samples that wakes the recorder. */
const volatile __u64 sample_half = 0;
/* User space may know the kernel's addresses in stacks. */
const volatile bool show_kernel = false;
/* The shortest wait whose stack is recorded, in ns; 0: none is. */
OPTION __u64 wait_least = 0;
/* A light recording: only forks, execs and ends are recorded, without their CPUs. */
OPTION bool light = false;
/* Ignore the switches of this task, as some guests' kernels do, for the test of wakers. */
OPTION __u32 hidden_tid = 0;
/* Record also the switches of which there are sums (others.bpf.h), for the test of the sums. */
OPTION bool keep_others = false;
/* The kernel has bpf_rdonly_cast (6.2). */
OPTION bool has_rdonly_cast = OPTION_IS(true, false);

/*
 * The reader of the maps can be an ordinary user's process, and hostile (--sudo): it can write at
 * any time to whatever it has mapped for writing. So user space reaches only the variables in the
 * sections OUTPUT and INPUT. Neither these sections nor any record contains a kernel address.
 */

/* ---- Variables of the programs alone ---- */

struct {
	__u64 rq;      /* address of the run queue; 0: not looked up yet */
	__u32 busy;    /* a slot is being written */
	__u32 runs;    /* since the last run that was measured */
	__u64 address; /* scratch memory of `address_of` */
	__u64 begun;   /* the begin of a run that is measured, or 0 */
	__u64 pads[4]; /* a cache line for each CPU */
} cpus[MAX_CPUS] __attribute__((aligned(64)));
/* From a task's stack to the user's registers on it, in bytes; 0: unknown. */
__u64 regs_offset, own_regs;
/* The depth of the recorder's pid namespace. */
__u32 recorder_level;
/* The recorder's time namespace. */
__u64 recorder_clock;
/* A followed task has reclaimed memory, has sent a request to a disk, has sent a DNS query, has begun
 * a TCP connection. */
bool any_reclaimed, any_submitted, any_query, any_asker;
/* A tid was given to a new task before its last holder's last switch-out. */
bool any_reused;

/* ---- Variables that user space reads and cannot write: the loader freezes their map ---- */

#define OUTPUT SEC(".bss.output")

struct account sched_account[MAX_CPUS] OUTPUT __attribute__((aligned(64)));
struct account life_account[MAX_CPUS] OUTPUT;
/* The time in the programs in one run of SAMPLED on each CPU, in ns. */
__u64 sampled_time OUTPUT;
/* Runs of a program while another one on the same CPU wrote a slot. */
__u64 nested_runs OUTPUT;
/* The last signals sent to COMMAND's process and to the recorder's, in this order. */
struct sent sent[2][SIGNALS] OUTPUT;
/* `regs_offset` is known. */
__u32 regs_known OUTPUT;
/* The optional facts that this kernel provides, as bits (src/kernel.rs). */
__u32 extras OUTPUT;
/* Tasks newly followed by all snapshot passes. */
__u64 newly_followed OUTPUT;
/* The resident pages that all passes with `sum_resident` have added up. */
__u64 resident OUTPUT;
/* Tasks whose id did not fit into `followed`, and threads beyond JOINING. */
__u64 follow_overflow OUTPUT;
/* System calls without a place in their table. */
__u64 call_overflow OUTPUT;
/* Samples of stacks that found no room in their ring. */
__u64 sample_overflow OUTPUT;
/* Waits of tasks that have no room for their stacks. */
__u64 wait_overflow OUTPUT;
/* Connections that found no room in `connections`, and ports in `listeners`. */
__u64 connection_overflow OUTPUT;
/* The numbers of the block devices, in the order of their first requests; 0: none yet. */
__u32 block_numbers[BLOCK_DEVICES] OUTPUT;
struct block_device block_devices[BLOCK_DEVICES] OUTPUT __attribute__((aligned(64)));
/* Requests that found no room. */
__u64 block_overflow OUTPUT;
/* Answers of servers beyond MAX_SERVERS. */
__u64 server_overflow OUTPUT;
/* Tasks that found no room in `reclaimers` and in `submitters`. */
__u64 reclaim_overflow OUTPUT, submitter_overflow OUTPUT;

/* ---- Variables that user space writes. No value does harm: none is an address, and each index is
 * bounded by the size of its map ---- */

#define INPUT SEC(".bss.input")

struct progress sched_progress[MAX_CPUS] INPUT __attribute__((aligned(64)));
/* COMMAND's process and the recorder's, by the host's ids; 0: none. */
__u32 command_tgid INPUT, recorder_tgid INPUT;
/* The table of `call_sums` that the programs fill: 0 or 1. */
__u32 call_table INPUT;
/* The iterator adds up the resident pages of the followed processes instead of listing tasks. */
__u32 sum_resident INPUT;
/* The iterator writes the totals of the followed tasks instead of listing tasks. */
__u32 write_totals INPUT;
/* The number of the interval of which `block_sums.longest` is the longest request. */
__u64 block_interval INPUT;

#endif
