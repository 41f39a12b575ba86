/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Servers.
 *
 * If a followed task sends a request over a socket to a process of this machine and waits for the
 * answer, that process is followed from the first answer on, with all its threads and its later
 * children. The answer is a send by a task that is not followed, which wakes a followed task that
 * waits in a receive. The connection says which process has sent the request. The wakings do not: a
 * server's other clients wake it in the same way. docs/containers.md has the rules.
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
	__u32 port;   /* on which it has answered; 0: a Unix socket */
	__u32 shared; /* a process that is not followed has been answered, too */
};

/* The followed servers, by their process ids. */
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

/* The number of entries in `served`. */
__u32 server_count;

/* Notes that a followed task's TCP connection is established. */
static __always_inline void note_begun(struct sock *sk)
{
	__u32 key = (__u32)local_port(sk) << 16 | remote_port(sk), one = 1;

	if (servers)
		bpf_map_update_elem(&begun, &key, &one, 0);
}

/* The address of the socket that the running task is sending to in a system call; 0: it is not
 * sending. Not static: the verifier looks at it once. */
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

/* Whether a task that is not followed can belong to a server. A kernel thread cannot, and a task of
 * another user only if root records. */
static __always_inline bool may_serve(struct task_struct *task)
{
	if (BPF_CORE_READ(task, flags) & PF_KTHREAD)
		return false;
	return servers_uid == ANY_USER || (BPF_CORE_READ(task, cred, uid.val) == servers_uid &&
					   BPF_CORE_READ(task, cred, euid.val) == servers_uid);
}

/* The levels of ancestors that are searched in all, and in one call of `ancestor_in`. */
#define ANCESTORS 32
#define ANCESTORS_ONCE 8

/* A search among the ancestors of a task. */
struct ancestry {
	__u64 task; /* the last one that was searched; 0: there are no more */
	__u32 tgid;
};

static __always_inline long ancestor_once(__u32 number, void *context)
{
	struct ancestry *ancestry = context;
	struct task_struct *task = (struct task_struct *)ancestry->task;

	task = BPF_CORE_READ(task, real_parent);
	ancestry->task = (__u64)task;
	if (BPF_CORE_READ(task, tgid) == ancestry->tgid)
		return 1;
	if (BPF_CORE_READ(task, pid) > 1)
		return 0;
	ancestry->task = 0;
	return 1;
}

/* Searches ANCESTORS_ONCE levels of ancestors for the process `tgid`. Returns its task, or the last
 * one that was searched; 0: there are no more. Not static: the verifier looks at it once. */
__noinline __u64 ancestor_in(__u32 tgid, __u64 of)
{
	struct ancestry ancestry = { .task = of, .tgid = tgid };

	REPEAT(ANCESTORS_ONCE, ancestor_once, &ancestry);
	return ancestry.task;
}

/* Whether the process `tgid` is an ancestor of a task: COMMAND's shell, terminal and CI agent are
 * no servers. */
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

/* The running task can belong to a server and wakes a followed task: follows the server if this is
 * its answer. Not static: the verifier looks at it once. */
__noinline int serve(__u64 wakee, __u64 context)
{
	struct task_struct *waker = (struct task_struct *)bpf_get_current_task();
	struct task_struct *client = (struct task_struct *)wakee;
	struct sock *sk = (struct sock *)sent_to();
	__u32 tgid = BPF_CORE_READ(waker, tgid), key;
	struct server new = {};

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
		change_bits(BPF_CORE_READ(waker, pid), 0, SERVES);
		return 0;
	}
	__sync_fetch_and_add(&server_count, 1);
	put_server(waker, BPF_CORE_READ(client, tgid), 0);
	return join_threads((__u64)BPF_CORE_READ(waker, signal), true);
}

/* The running task is followed and wakes a task that is not. If this is a server's answer, the
 * server is shared. Returns true for the first such answer. Not static: the verifier looks at it
 * once. */
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
	if (server->port ? tcp_port(sk) != server->port
			 : context != CONTEXT_TASK || !is_accepted(sk))
		return false;
	server->shared = 1;
	put_server(waker, 0, BPF_CORE_READ(other, tgid));
	return true;
}

/* Forgets a followed process that ends. */
static __always_inline void end_server(__u32 tgid)
{
	if (server_count && !bpf_map_delete_elem(&served, &tgid))
		__sync_fetch_and_add(&server_count, -1);
}

/* Whether a process is a followed server. Not static: the verifier looks at it once. */
__noinline __u32 is_server(__u32 tgid)
{
	return server_count && bpf_map_lookup_elem(&served, &tgid);
}

#endif
