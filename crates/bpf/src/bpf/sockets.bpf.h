/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The ports and the peers of sockets.
 */
#ifndef TR_SOCKETS_BPF_H
#define TR_SOCKETS_BPF_H

#include "core.bpf.h"

/* The local port of a TCP socket. It is read from inet_sport: the kernel clears skc_num before the
 * state CLOSE. */
static __always_inline __u16 local_port(struct sock *sk)
{
	return __builtin_bswap16(BPF_CORE_READ((struct inet_sock *)sk, inet_sport));
}

static __always_inline __u16 remote_port(struct sock *sk)
{
	return __builtin_bswap16(BPF_CORE_READ(sk, __sk_common.skc_dport));
}

/* Whether a Unix socket was returned by accept(2): it has the listener's name, and its peer has no
 * name. */
static __always_inline bool is_accepted(struct sock *sk)
{
	struct unix_sock *own = (struct unix_sock *)sk, *peer;

	if (!bpf_core_field_exists(own->addr) || !BPF_CORE_READ(own, addr))
		return false;
	peer = (struct unix_sock *)BPF_CORE_READ(own, peer);
	return peer && !BPF_CORE_READ(peer, addr);
}

/* The local port of a TCP socket; 0: it is no TCP socket. */
static __always_inline __u16 tcp_port(struct sock *sk)
{
	return BPF_CORE_READ(sk, sk_protocol) == IPPROTO_TCP ? local_port(sk) : 0;
}

#endif
