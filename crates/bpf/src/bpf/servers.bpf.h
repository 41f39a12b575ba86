/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Servers.
 *
 * A process of this machine that a followed task asks over a socket, and whose answer it waits for, is
 * followed from the first answer on: all its threads, and the children that come later. The answer is a
 * send of a task that is not followed, which wakes a followed one that waits in a receive.
 * Who has asked is a fact of the connection, not of the wakings: a server's own clients wake it in the
 * same way. docs/containers.md has the rules.
 */
#ifndef TR_SERVERS_BPF_H
#define TR_SERVERS_BPF_H

#include "core.bpf.h"
#include "joins.bpf.h"
#include "reasons.bpf.h"
#include "sockets.bpf.h"

/* The most servers at a time. */
#define MAX_SERVERS 64

struct server {
	__u32 port; /* on which it has answered; 0: a Unix socket */
	__u32 shared; /* a process that is not followed has been answered, too */
};

/* By their processes. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, MAX_SERVERS);
	__type(key, __u32);
	__type(value, struct server);
} served SEC(".maps");

/* TCP connections that followed tasks have begun: local port << 16 | remote port. */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 8192);
	__type(key, __u32);
	__type(value, __u32);
} begun SEC(".maps");

/* The number of `served`. */
__u32 server_count;

/* A followed task's connection is established. */
static __always_inline void note_begun(struct sock *sk)
{
	__u32 key = (__u32)local_port(sk) << 16 | remote_port(sk), one = 1;

	if (servers)
		bpf_map_update_elem(&begun, &key, &one, 0);
}

/* The address of the socket that the running task sends to, in a system call; 0: it does not. Not
 * static: the verifier looks at it once. */
__noinline __u64 sent_to(void)
{
	struct task_struct *task = (struct task_struct *)bpf_get_current_task();
	__u64 regs = user_regs(false, task), file, inode;
	struct socket *socket;

	if (!sends())
		return 0;
	file = regs ? descriptor_file((__u64)BPF_CORE_READ(task, files), regs) : 0;
	if (!file)
		return 0;
	inode = (__u64)PEEK(file, file, f_inode);
	if ((PEEK(inode, inode, i_mode) & S_IFMT) != S_IFSOCK)
		return 0;
	socket = BPF_CORE_READ((struct file *)file, private_data);
	return (__u64)BPF_CORE_READ(socket, sk);
}

/* A task that is not followed can be a server's: no kernel thread, nor one of another user, unless
 * root records. */
static __always_inline bool may_serve(struct task_struct *task)
{
	if (BPF_CORE_READ(task, flags) & PF_KTHREAD)
		return false;
	return servers_uid == ANY_USER || (BPF_CORE_READ(task, cred, uid.val) == servers_uid &&
					   BPF_CORE_READ(task, cred, euid.val) == servers_uid);
}

/* The levels of ancestors that are searched, and those that are at once. */
#define ANCESTORS 32
#define ANCESTORS_ONCE 8

/* An ancestor of the process, or the last one searched; 0: there are no more. Not static, as above. */
__noinline __u64 ancestor_in(__u32 tgid, __u64 of)
{
	struct task_struct *task = (struct task_struct *)of;

	for (int up = 0; up < ANCESTORS_ONCE; up++) {
		task = BPF_CORE_READ(task, real_parent);
		if (BPF_CORE_READ(task, tgid) == tgid)
			break;
		if (BPF_CORE_READ(task, pid) <= 1)
			return 0;
	}
	return (__u64)task;
}

/* COMMAND's shell, terminal and CI agent are no servers. */
static __always_inline bool is_ancestor(__u32 tgid, __u64 of)
{
	for (int up = 0; up < ANCESTORS / ANCESTORS_ONCE && of; up++) {
		of = ancestor_in(tgid, of);
		if (of && BPF_CORE_READ((struct task_struct *)of, tgid) == tgid)
			return true;
	}
	return false;
}

static __always_inline void put_server(struct task_struct *task, __u32 client, __u32 other)
{
	struct wire_server *record;

	count_life();
	record = reserve_life(bpf_ktime_get_ns(), LIFE_SERVER, sizeof(*record), true);
	if (!record)
		return;
	record->tid = BPF_CORE_READ(task, pid);
	record->tgid = BPF_CORE_READ(task, tgid);
	record->client = client;
	record->other = other;
	submit_life(record);
}

/* A task that can be a server's, which runs here, wakes a followed one. Not static: the verifier
 * looks at it once. */
__noinline int serve(__u64 wakee, __u64 context)
{
	struct task_struct *waker = (struct task_struct *)bpf_get_current_task();
	struct task_struct *client = (struct task_struct *)wakee;
	struct sock *sk = (struct sock *)sent_to();
	__u32 tgid = BPF_CORE_READ(waker, tgid), key;
	struct server new = {};
	__u8 *slot;

	if (!sk || !receives(wakee))
		return 0;
	new.port = tcp_port(sk);
	if (new.port) {
		key = (__u32)remote_port(sk) << 16 | new.port;
		if (!bpf_map_lookup_elem(&begun, &key))
			return 0;
	} else if (context != CONTEXT_TASK || !is_accepted(sk)) {
		return 0;
	}
	if (is_ancestor(tgid, wakee) || bpf_map_update_elem(&served, &tgid, &new, BPF_NOEXIST)) {
		if (server_count >= MAX_SERVERS)
			__sync_fetch_and_add(&server_overflow, 1);
		slot = follow_slot(BPF_CORE_READ(waker, pid));
		if (slot)
			*slot &= ~SERVES;
		return 0;
	}
	__sync_fetch_and_add(&server_count, 1);
	put_server(waker, BPF_CORE_READ(client, tgid), 0);
	return join_threads((__u64)BPF_CORE_READ(waker, signal), true);
}

/* A followed task, which runs here, wakes one that is not. If that is a server's answer, the server
 * is shared. True: it is the first such one. Not static, as above. */
__noinline int share(__u64 wakee, __u64 context)
{
	struct task_struct *waker = (struct task_struct *)bpf_get_current_task();
	struct task_struct *other = (struct task_struct *)wakee;
	__u32 tgid = BPF_CORE_READ(waker, tgid);
	struct server *server = bpf_map_lookup_elem(&served, &tgid);
	struct sock *sk;

	if (!server || server->shared)
		return false;
	sk = (struct sock *)sent_to();
	if (!sk || !receives(wakee))
		return false;
	if (server->port ? tcp_port(sk) != server->port :
			   context != CONTEXT_TASK || !is_accepted(sk))
		return false;
	server->shared = 1;
	put_server(waker, 0, BPF_CORE_READ(other, tgid));
	return true;
}

/* A followed process ends. */
static __always_inline void end_server(__u32 tgid)
{
	if (server_count && !bpf_map_delete_elem(&served, &tgid))
		__sync_fetch_and_add(&server_count, -1);
}

/* 1: the process is a server. Not static, as above. */
__noinline __u32 is_server(__u32 tgid)
{
	return server_count && bpf_map_lookup_elem(&served, &tgid);
}

#endif
