/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The clients of a daemon in one word: the address of the first task of one client, with flags in
 * the lowest bits. CLIENTS_SEVERAL: there are several clients, or there may be. CLIENTS_OURS: one
 * of them is followed. */
#ifndef TR_CLIENTS_BPF_H
#define TR_CLIENTS_BPF_H

#include "core.bpf.h"
#include "names.bpf.h"
#include "sockets.bpf.h"

#define CLIENTS_SEVERAL 1ULL
#define CLIENTS_OURS 2ULL
#define CLIENT_FLAGS 7ULL
/*
 * ---- Clients of a daemon ----
 *
 * A container whose id was not sent to a followed client can still be attributed to that client: if
 * no other process has a connection to the daemon when the container begins. Each Unix socket that
 * the daemon has accepted names the process that connected. docs/containers.md has the rule.
 */

/* The most descriptors of a daemon that are examined: in all, and by one call of the functions
 * *_many and *_some. The verifier follows one loop in each function, and not one loop inside the
 * other. In the usual object the kernel repeats a step, see REPEAT. */
#define DESCRIPTORS 4096
#define DESCRIPTORS_MANY 128
#define DESCRIPTORS_ONCE OPTION_IS(DESCRIPTORS, 8)

/* The socket of the descriptor whose entry in the table of descriptors is at `place`; 0: it is no
 * socket. */
static __always_inline struct sock *socket_at(__u64 place)
{
	__u64 file = (__u64)PEEK(list_head, place, next), inode;
	struct socket *socket;

	if (!file)
		return NULL;
	inode = (__u64)PEEK(file, file, f_inode);
	if ((PEEK(inode, inode, i_mode) & S_IFMT) != S_IFSOCK)
		return NULL;
	socket = BPF_CORE_READ((struct file *)file, private_data);
	return BPF_CORE_READ(socket, sk);
}

static __always_inline bool is_tcp(struct sock *sk, __u8 state)
{
	return BPF_CORE_READ(sk, sk_protocol) == IPPROTO_TCP &&
	       BPF_CORE_READ(sk, __sk_common.skc_family) != AF_UNIX &&
	       BPF_CORE_READ(sk, __sk_common.skc_state) == state;
}

/* Descriptors that are examined one after the other. */
struct descriptors {
	__u64 place; /* of the first one's entry in the table */
	__u32 count;
	__u64 ports; /* on which the process listens, see `listening_some` */
	__u64 known; /* the clients so far */
};

static __always_inline long listening_once(__u32 number, void *context)
{
	struct descriptors *all = context;
	struct sock *sk;

	if (number >= all->count)
		return 1;
	sk = socket_at(all->place + number * sizeof(void *));
	if (!sk || !is_tcp(sk, TCP_LISTEN))
		return 0;
	if (all->ports >> 48) {
		all->ports = ~0ULL;
		return 1;
	}
	all->ports = all->ports << 16 | local_port(sk);
	return 0;
}

/* Adds the TCP ports on which a process listens to `ports`, which holds four of 16 bits each. All
 * bits are set if there are more. Not static, like all functions here without `static`: the
 * verifier looks at each of them once. */
__noinline __u64 listening_some(__u64 place, __u32 count, __u64 ports)
{
	struct descriptors all = { .place = place, .count = count, .ports = ports };

	REPEAT(DESCRIPTORS_ONCE, listening_once, &all);
	return all.ports;
}

__noinline __u64 listening_many(__u64 place, __u32 count, __u64 ports)
{
	for (__u32 at = 0; at < DESCRIPTORS_MANY && at < count; at += DESCRIPTORS_ONCE)
		ports = listening_some(place + at * sizeof(void *), count - at, ports);
	return ports;
}

/* The first task of the process that has connected to an accepted Unix socket; 0: the process has
 * ended. */
static __always_inline struct task_struct *connected_by(struct sock *sk)
{
	struct pid *pid = BPF_CORE_READ(sk, sk_peer_pid);
	__u64 link = (__u64)BPF_CORE_READ(pid, tasks[PIDTYPE_TGID].first);

	if (!link)
		return NULL;
	return (struct task_struct *)(link - bpf_core_field_offset(struct task_struct, pid_links) -
				      PIDTYPE_TGID * bpf_core_type_size(struct hlist_node));
}

/* Adds a client to `known`. A plugin (docker-buildx) asks in the name of the client that has
 * started it. */
__noinline __u64 add_client(__u64 known, __u64 address)
{
	struct task_struct *one = (struct task_struct *)(known & ~CLIENT_FLAGS);
	struct task_struct *other = (struct task_struct *)address;
	__u64 flags = known & CLIENT_FLAGS;

	if (!other)
		return known | CLIENTS_SEVERAL;
	if (is_followed(BPF_CORE_READ(other, tgid)))
		flags |= CLIENTS_OURS;
	if (!one || one == other)
		return address | flags;
	if (BPF_CORE_READ(one, real_parent, tgid) == BPF_CORE_READ(other, tgid))
		return (known & ~CLIENT_FLAGS) | flags;
	if (BPF_CORE_READ(other, real_parent, tgid) == BPF_CORE_READ(one, tgid))
		return address | flags;
	return address | flags | CLIENTS_SEVERAL;
}

/* Adds the client of a socket to `known`, if the socket connects a client. */
static __always_inline __u64 add_client_of(struct sock *sk, __u64 known, __u64 ports)
{
	__u16 port;

	if (BPF_CORE_READ(sk, __sk_common.skc_family) == AF_UNIX) {
		/* The client has closed its end. */
		if (!is_accepted(sk) || BPF_CORE_READ(sk, sk_shutdown) == SHUTDOWN_MASK)
			return known;
		return add_client(known, (__u64)connected_by(sk));
	}
	if (!ports || !is_tcp(sk, TCP_ESTABLISHED))
		return known;
	/* The process that has connected over TCP is unknown. */
	port = local_port(sk);
	if (ports != ~0ULL && port != (__u16)ports && port != (__u16)(ports >> 16) &&
	    port != (__u16)(ports >> 32) && port != (__u16)(ports >> 48))
		return known;
	return known | CLIENTS_SEVERAL;
}

static __always_inline long client_once(__u32 number, void *context)
{
	struct descriptors *all = context;
	struct sock *sk;

	if (number >= all->count)
		return 1;
	sk = socket_at(all->place + number * sizeof(void *));
	if (sk)
		all->known = add_client_of(sk, all->known, all->ports);
	return 0;
}

__noinline __u64 clients_some(__u64 place, __u32 count, __u64 known, __u64 ports)
{
	struct descriptors all = {
		.place = place,
		.count = count,
		.ports = ports,
		.known = known,
	};

	REPEAT(DESCRIPTORS_ONCE, client_once, &all);
	return all.known;
}

__noinline __u64 clients_many(__u64 place, __u32 count, __u64 known, __u64 ports)
{
	for (__u32 at = 0; at < DESCRIPTORS_MANY && at < count; at += DESCRIPTORS_ONCE)
		known = clients_some(place + at * sizeof(void *), count - at, known, ports);
	return known;
}

/* The clients of a process that have connections to it. */
__noinline __u64 clients_in(__u64 daemon)
{
	struct fdtable *table = BPF_CORE_READ((struct task_struct *)daemon, files, fdt);
	__u64 place = (__u64)BPF_CORE_READ(table, fd), ports = 0, known = 0;
	__u32 count = BPF_CORE_READ(table, max_fds);

	if (!bpf_core_field_exists(struct sock, sk_peer_pid) || count > DESCRIPTORS)
		return CLIENTS_SEVERAL;
	if (DESCRIPTORS_ONCE == DESCRIPTORS) {
		ports = listening_some(place, count, 0);
		return clients_some(place, count, 0, ports);
	}
	for (__u32 at = 0; at < DESCRIPTORS && at < count; at += DESCRIPTORS_MANY)
		ports = listening_many(place + at * sizeof(void *), count - at, ports);
	for (__u32 at = 0; at < DESCRIPTORS && at < count; at += DESCRIPTORS_MANY)
		known = clients_many(place + at * sizeof(void *), count - at, known, ports);
	return known;
}

/* The clients of the daemon that has started a container's runtime. The parent of the runtime's
 * task is the daemon, or a second daemon that the first has started. A parent that is a shim does
 * not count: it executes programs for a container that already runs (a health check, `docker
 * exec`). */
__noinline __u64 clients_of(__u64 runtime)
{
	struct task_struct *parent = (struct task_struct *)runtime, *daemon = NULL;
	__u64 found;

	for (int up = 0; up < 3; up++) {
		parent = BPF_CORE_READ(parent, real_parent, group_leader);
		if (part_of(parent) != PART_DAEMON)
			break;
		daemon = parent;
	}
	if (!daemon)
		return 0;
	found = clients_in((__u64)daemon);
	/* containerd's client is dockerd, which has clients. */
	for (int asks = 0; asks < 2; asks++) {
		struct task_struct *only = (struct task_struct *)(found & ~CLIENT_FLAGS);

		if (!only || found & CLIENTS_SEVERAL || part_of(only) != PART_DAEMON)
			break;
		found = clients_in((__u64)only);
	}
	return found;
}

#endif
