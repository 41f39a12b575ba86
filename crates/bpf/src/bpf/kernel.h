/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The kernel's types, with the fields that the tracer reads; not a generated vmlinux.h.
 *
 * CO-RE relocates each field against the running kernel's BTF: names and integer types in
 * this file matter, offsets and sizes do not. A suffix ___x marks another kernel version's
 * form of a type.
 */
#ifndef TR_KERNEL_H
#define TR_KERNEL_H

typedef unsigned char __u8;
typedef signed short __s16;
typedef unsigned short __u16;
typedef signed int __s32;
typedef unsigned int __u32;
typedef signed long long __s64;
typedef unsigned long long __u64;
typedef __u16 __be16;
typedef __u32 __be32;
typedef __u32 __wsum;
typedef _Bool bool;
#define true 1
#define false 0
#define NULL ((void *)0)

/* include/uapi/linux/bpf.h: numbers of the user-space ABI. */
enum {
	BPF_MAP_TYPE_HASH = 1,
	BPF_MAP_TYPE_ARRAY = 2,
	BPF_MAP_TYPE_LRU_HASH = 9,
	BPF_MAP_TYPE_RINGBUF = 27,
	BPF_MAP_TYPE_TASK_STORAGE = 29,
};
enum {
	BPF_F_NO_PREALLOC = 1 << 0,
	BPF_F_MMAPABLE = 1 << 10,
};
enum {
	BPF_NOEXIST = 1,
	BPF_EXIST = 2,
};
enum {
	BPF_RB_NO_WAKEUP = 1,
	BPF_RB_FORCE_WAKEUP = 2,
};
enum {
	BPF_LOCAL_STORAGE_GET_F_CREATE = 1,
};
enum {
	BPF_RB_AVAIL_DATA = 0,
};
enum {
	BPF_F_USER_STACK = 1 << 8,
	BPF_F_USER_BUILD_ID = 1 << 11,
};

/* include/linux/sched.h */
#define TASK_UNINTERRUPTIBLE 0x0002
#define TASK_DEAD 0x0080
/* A wait for a spin lock that sleeps (PREEMPT_RT, 5.15): no system call asked for it. */
#define TASK_RTLOCK_WAIT 0x1000
#define PF_KTHREAD 0x00200000
/* The flag of io_uring's workers, which are threads of the process that uses io_uring (5.12). */
#define PF_IO_WORKER 0x00000010
/* The flag of user workers, which vhost's workers have, too (6.4). */
#define PF_USER_WORKER 0x00004000
/* arch/x86/include/asm/segment.h: the code segment of 64-bit user mode. */
#define USER_CS 0x33
/* arch/arm64/include/uapi/asm/ptrace.h: these bits are 0 in 64-bit user mode. */
#define PSR_MODE 0x1f
/* This bit is 1 in 32-bit user mode. */
#define PSR_MODE32 0x10
/* arch/x86/include/asm/thread_info.h: the task is in a 32-bit system call. */
#define TS_COMPAT 0x0002
#define SIGNAL_GROUP_EXIT 0x00000004

#define TASK_COMM_LEN 16

/* include/net/tcp_states.h */
enum {
	TCP_ESTABLISHED = 1,
	TCP_SYN_SENT = 2,
	TCP_SYN_RECV = 3,
	TCP_FIN_WAIT1 = 4,
	TCP_FIN_WAIT2 = 5,
	TCP_CLOSE = 7,
	TCP_CLOSE_WAIT = 8,
	TCP_LAST_ACK = 9,
	TCP_LISTEN = 10,
	TCP_CLOSING = 11,
};
#define AF_UNIX 1
#define AF_INET 2
#define AF_INET6 10
#define IPPROTO_TCP 6
/* include/net/sock.h: both directions are shut down. */
#define SHUTDOWN_MASK 3
/* enum sock_flags: the peer's FIN has arrived. */
#define SOCK_DONE 1

/* include/linux/blk_types.h: enum req_op, and its bits in cmd_flags. An odd operation writes. */
#define REQ_OP_MASK 0xff
#define REQ_OP_FLUSH 2
#define REQ_OP_DISCARD 3
#define REQ_OP_DRV_IN 34

/* include/uapi/linux/stat.h */
#define S_IFMT 0170000
#define S_IFIFO 0010000
#define S_IFCHR 0020000
#define S_IFBLK 0060000
#define S_IFREG 0100000
#define S_IFSOCK 0140000
/* include/linux/kdev_t.h, include/uapi/linux/major.h */
#define MINORBITS 20
#define TTY_MAJOR 4
#define TTYAUX_MAJOR 5
#define UNIX98_PTY_MASTER_MAJOR 128
#define UNIX98_PTY_SLAVE_LAST 143

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

typedef struct {
	int counter;
} atomic_t;

struct pid_namespace;

struct upid {
	int nr;
};

struct hlist_node {
	struct hlist_node *next;
};

struct hlist_head {
	struct hlist_node *first;
};

/* include/linux/pid.h */
enum {
	PIDTYPE_TGID = 1,
	PIDTYPE_MAX = 4,
};

struct pid {
	unsigned int level;
	struct hlist_head tasks[PIDTYPE_MAX];
	struct upid numbers[1];
};

struct kernfs_node {
	__u64 id;
};

struct cgroup_subsys_state {
	struct cgroup_subsys_state *parent;
};

struct cgroup_root {
	int hierarchy_id; /* 0: cgroup v2 */
};

struct cgroup {
	struct cgroup_subsys_state self;
	struct kernfs_node *kn;
	struct cgroup_root *root;
};

struct css_set {
	struct cgroup *dfl_cgrp;
};

struct percpu_counter {
	__s64 count;
};

/* include/linux/mm_types_task.h */
enum {
	MM_FILEPAGES = 0,
	MM_ANONPAGES = 1,
	MM_SHMEMPAGES = 3,
	NR_MM_COUNTERS = 4,
};

struct mm_struct {
	unsigned long arg_start;
	unsigned long arg_end;
	unsigned long hiwater_rss;
	/* Since 6.2. */
	struct percpu_counter rss_stat[NR_MM_COUNTERS];
};

typedef struct {
	long counter;
} atomic_long_t;

struct mm_rss_stat {
	atomic_long_t count[NR_MM_COUNTERS];
};

/* Before 6.2 (f1a7941243c1 "mm: convert mm's rss stats into percpu_counter"). */
struct mm_struct___v6_1 {
	struct mm_rss_stat rss_stat;
};

struct list_head {
	struct list_head *next;
};

struct signal_struct {
	struct list_head thread_head;
	int nr_threads;
	atomic_t live;
	unsigned int flags;
	int group_exit_code;
	unsigned long maxrss;
};

struct task_io_accounting {
	__u64 read_bytes;
	__u64 write_bytes;
};

/* CONFIG_SCHED_INFO */
struct sched_info {
	unsigned long long run_delay;
};

/* CONFIG_TASK_DELAY_ACCT */
struct task_delay_info {
	__u64 blkio_delay;
	__u64 swapin_delay;
};

/* x86. */
struct pt_regs {
	unsigned long r10;
	unsigned long r9;
	unsigned long r8;
	unsigned long dx;
	unsigned long si;
	unsigned long di;
	unsigned long orig_ax;
	unsigned long cs;
};

struct pt_regs___arm64 {
	__u64 regs[31];
	__u64 pstate;
	__u64 orig_x0;
	int syscallno;
};

struct inode {
	__u16 i_mode;
	__u32 i_rdev;
};

struct qstr {
	const unsigned char *name;
};

struct dentry {
	struct dentry *d_parent;
	struct qstr d_name;
};

struct vfsmount {
	struct dentry *mnt_root;
};

/* fs/mount.h */
struct mount {
	struct mount *mnt_parent;
	struct dentry *mnt_mountpoint;
	struct vfsmount mnt;
	int mnt_id;
};

struct path {
	struct vfsmount *mnt;
	struct dentry *dentry;
};

struct fs_struct {
	struct path root;
	struct path pwd;
};

struct file {
	struct inode *f_inode;
	struct path f_path;
	void *private_data;
};

struct fdtable {
	unsigned int max_fds;
	struct file **fd;
};

struct files_struct {
	struct fdtable *fdt;
};

/* The id of the helper function bpf_task_pt_regs, which 5.15 and later have. */
enum bpf_func_id {
	BPF_FUNC_check_mtu = 163, /* since 5.12, as atomic operations other than additions */
	BPF_FUNC_task_pt_regs = 175,
};

struct rq;

/* Both fields need CONFIG_FAIR_GROUP_SCHED. */
struct cfs_rq {
	struct rq *rq;
};

struct sched_entity {
	struct cfs_rq *cfs_rq;
	unsigned char sched_delayed; /* since 6.12 */
	__u64 sum_exec_runtime;
};

struct linux_binprm {
	const char *filename;
};

struct thread_info {
	__u32 status; /* x86 */
};

struct thread_info___arm64 {
	struct {
		__u32 count;
	} preempt;
};

/* Only the presence of this type matters: kernels with vhost's workers have it. */
struct vhost_task {
	char unused;
};

struct cpumask {
	unsigned long bits[1]; /* of the kernel's CONFIG_NR_CPUS */
};

struct timespec64 {
	__s64 tv_sec;
	long tv_nsec;
};

struct timens_offsets {
	struct timespec64 monotonic;
};

struct time_namespace {
	struct timens_offsets offsets;
};

struct nsproxy {
	struct time_namespace *time_ns; /* CONFIG_TIME_NS */
};

typedef struct {
	__u32 val;
} kuid_t;

typedef struct {
	unsigned int val;
} kgid_t;

struct cred {
	kuid_t uid;
	kuid_t euid;
	kuid_t fsuid;
	kgid_t fsgid;
};

struct task_struct {
	struct thread_info thread_info;
	unsigned int __state;
	void *stack;
	struct fs_struct *fs;
	struct files_struct *files;
	struct nsproxy *nsproxy;
	struct sched_info sched_info;
	struct task_delay_info *delays;
	unsigned int flags;
	int on_cpu;
	int wake_cpu;
	int on_rq;
	struct sched_entity se;
	int nr_cpus_allowed;
	struct cpumask cpus_mask;
	struct mm_struct *mm;
	int exit_state;
	int exit_code;
	int softirq_disable_cnt; /* CONFIG_PREEMPT_RT */
	unsigned int in_execve : 1;
	unsigned int in_iowait : 1;
	int pid;
	int tgid;
	struct task_struct *real_parent;
	struct task_struct *group_leader;
	struct pid *thread_pid;
	struct hlist_node pid_links[PIDTYPE_MAX];
	struct list_head thread_node;
	const struct cred *cred;
	void *vfork_done;
	__u64 utime;
	__u64 stime;
	unsigned long nvcsw;
	unsigned long nivcsw;
	__u64 start_time;
	unsigned long min_flt;
	unsigned long maj_flt;
	char comm[TASK_COMM_LEN];
	struct signal_struct *signal;
	struct css_set *cgroups;
	struct task_io_accounting ioac;
};

/* Before 5.14 (2f064a59a11f "sched: Change task_struct::state"). */
struct task_struct___v5_13 {
	long state;
};

/* include/net/net_namespace.h */
struct ns_common {
	unsigned int inum;
};

struct net {
	struct ns_common ns;
};

typedef struct {
	struct net *net;
} possible_net_t;

struct in6_addr {
	__u8 bytes[16];
};

struct sock_common {
	__be32 skc_daddr;
	__be32 skc_rcv_saddr;
	__be16 skc_dport;
	unsigned short skc_family;
	unsigned char skc_state;
	possible_net_t skc_net;
	unsigned long skc_flags;
	struct in6_addr skc_v6_daddr;
	struct in6_addr skc_v6_rcv_saddr;
};

typedef struct {
	int owned;
} socket_lock_t;

struct sock {
	struct sock_common __sk_common;
	socket_lock_t sk_lock;
	__u8 sk_shutdown;
	__u16 sk_protocol;
	int sk_err;
	long sk_rcvtimeo; /* in ticks */
	struct pid *sk_peer_pid;
};

struct inet_sock {
	__be16 inet_sport;
};

/* include/linux/net.h */
struct socket {
	struct sock *sk;
};

/* include/net/af_unix.h */
struct unix_sock {
	void *addr;
	struct sock *peer;
};

struct inet_connection_sock {
	struct {
		__u32 lrcvtime;
	} icsk_ack;
};

struct tcp_sock {
	__u32 lsndtime;
	__u32 snd_wl1;
	__u32 rcv_nxt;
	__u64 bytes_received;
	__u64 bytes_acked;
	__u32 snd_una;
	__u32 write_seq;
};

/* The header fields are members of an anonymous struct since 5.18. */
struct sk_buff {
	struct sock *sk;
	unsigned int len;
	unsigned int data_len;
	__be16 protocol;
	__u16 network_header;
	unsigned char *head;
	unsigned char *data;
};

struct gendisk {
	int major;
	int first_minor;
};

/* The kernel's struct block_device. The wire structs have another one of that name. */
struct block_device___kernel {
	struct gendisk *bd_disk;
};

struct bio {
	/* Since 5.12. */
	struct block_device___kernel *bi_bdev;
};

struct bio___v5_11 {
	struct gendisk *bi_disk;
};

struct request_queue {
	/* Since 5.15. */
	struct gendisk *disk;
};

struct request {
	struct request_queue *q;
	unsigned int cmd_flags;
	unsigned int __data_len;
	/* Until 5.16. */
	struct gendisk *rq_disk;
};

struct seq_file;

struct bpf_iter_meta {
	struct seq_file *seq;
};

struct bpf_iter__task {
	struct bpf_iter_meta *meta;
	struct task_struct *task;
};

#pragma clang attribute pop

#endif
