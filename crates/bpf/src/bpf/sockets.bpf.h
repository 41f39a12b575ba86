/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The ports and the peers of sockets.
 */
#ifndef TR_SOCKETS_BPF_H
#define TR_SOCKETS_BPF_H

#include "core.bpf.h"

/* The local port. The kernel clears skc_num before the state CLOSE. */
static __always_inline __u16 local_port(struct sock *sk)
{
	return __builtin_bswap16(BPF_CORE_READ((struct inet_sock *)sk, inet_sport));
}

static __always_inline __u16 remote_port(struct sock *sk)
{
	return __builtin_bswap16(BPF_CORE_READ(sk, __sk_common.skc_dport));
}

/* A Unix socket that its process has accepted: it has the listener's name, and the one that has
 * connected has none. */
static __always_inline bool is_accepted(struct sock *sk)
{
	struct unix_sock *own = (struct unix_sock *)sk, *peer;

	if (!bpf_core_field_exists(own->addr) || !BPF_CORE_READ(own, addr))
		return false;
	peer = (struct unix_sock *)BPF_CORE_READ(own, peer);
	return peer && !BPF_CORE_READ(peer, addr);
}

/* The port that a TCP socket's process has; 0: it is another socket. */
static __always_inline __u16 tcp_port(struct sock *sk)
{
	return BPF_CORE_READ(sk, sk_protocol) == IPPROTO_TCP ? local_port(sk) : 0;
}

#endif
