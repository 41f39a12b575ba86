/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * TCP connections of the followed tasks, by inet_sock_set_state.
 *
 * The running task is the socket's user only where the transition comes from a system call:
 * connect (SYN_SENT), listen (LISTEN) and close hold the socket's lock (`sk_lock.owned`).
 * A softirq that ends a handshake or takes a reset runs in any task. So an accepted
 * connection belongs to the task that listens on its port until a task closes it.
 */
#ifndef TR_NETWORK_BPF_H
#define TR_NETWORK_BPF_H

#include "core.bpf.h"
#include "servers.bpf.h"
#include "sockets.bpf.h"

/* The most open connections, and the most listening ports, at a time. */
#define MAX_CONNECTIONS 8192
#define MAX_LISTENERS 1024

enum role {
	ROLE_CONNECTS = 1,
	ROLE_ACCEPTED = 2,
};

struct connection {
	__u64 number;
	__u64 role; /* enum role */
};

/* The connections that are not closed yet. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, MAX_CONNECTIONS);
	__type(key, __u64); /* the socket's address */
	__type(value, struct connection);
} connections SEC(".maps");

/* The task that listens on a port, and the number of its listening sockets (several with
 * SO_REUSEPORT). */
struct listener {
	__u32 tid;
	__u32 tgid;
	__u64 sockets;
};

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, MAX_LISTENERS);
	__type(key, __u64); /* network namespace << 16 | port */
	__type(value, struct listener);
} listeners SEC(".maps");

/* The most processes with connections of which the last ones are known. */
#define MAX_ASKERS 1024

/* The last connections that a process has begun, for `is_asking`. */
#define ASKER_SOCKETS 4

struct asker {
	struct {
		__u64 socket; /* the socket's address; 0: none */
		__u64 number; /* the connection's */
	} last[ASKER_SOCKETS];
	__u64 begun;
};

struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, MAX_ASKERS);
	__type(key, __u32); /* process */
	__type(value, struct asker);
} askers SEC(".maps");

static __always_inline void note_asker(__u64 socket, __u64 number)
{
	__u32 tgid = bpf_get_current_pid_tgid() >> 32, at;
	struct asker new = {}, *known = bpf_map_lookup_elem(&askers, &tgid);

	if (!known) {
		if (bpf_map_update_elem(&askers, &tgid, &new, 0))
			return;
		known = bpf_map_lookup_elem(&askers, &tgid);
		if (!known)
			return;
	}
	at = known->begun++ % ASKER_SOCKETS;
	known->last[at].socket = socket;
	known->last[at].number = number;
	any_asker = true;
}

/* Whether the other end of a connection has not answered the last bytes that were sent: data was
 * sent after the last data came. In the same tick, the other end has acknowledged bytes since, or
 * has still to do it. Not static, like `is_asking`: the verifier follows its ways once. */
__noinline __u32 is_unanswered(__u64 sk)
{
	struct inet_connection_sock *connection = (struct inet_connection_sock *)sk;
	struct tcp_sock *tcp = (struct tcp_sock *)sk;
	__u32 sent = BPF_CORE_READ(tcp, lsndtime);
	__u32 received = BPF_CORE_READ(connection, icsk_ack.lrcvtime);

	if (BPF_CORE_READ(tcp, write_seq) != BPF_CORE_READ(tcp, snd_una))
		return true;
	if (sent != received)
		return (__s32)(sent - received) > 0;
	return BPF_CORE_READ(tcp, snd_wl1) == BPF_CORE_READ(tcp, rcv_nxt);
}

/* Whether one of the last connections that the running process has begun has sent bytes that are
 * not answered. */
__noinline __u32 is_asking(void)
{
	__u32 tgid = bpf_get_current_pid_tgid() >> 32, at;
	struct connection *known;
	struct asker *asker;
	__u64 socket;

	if (!any_asker)
		return false;
	asker = bpf_map_lookup_elem(&askers, &tgid);
	if (!asker)
		return false;
	for (at = 0; at < ASKER_SOCKETS; at++) {
		socket = asker->last[at].socket;
		if (!socket)
			continue;
		known = bpf_map_lookup_elem(&connections, &socket);
		if (known && known->number == asker->last[at].number && is_unanswered(socket))
			return true;
	}
	return false;
}

static __always_inline __u64 listener_key(struct sock *sk)
{
	__u64 namespace = 0;

	if (bpf_core_field_exists(sk->__sk_common.skc_net.net))
	namespace = BPF_CORE_READ(sk, __sk_common.skc_net.net, ns.inum);
	return namespace << 16 | local_port(sk);
}

/* Reserves a record of a connection and fills it, except for the task and the fields of
 * LIFE_CLOSED. */
static __always_inline struct wire_connection *reserve_connection(struct sock *sk, __u64 number,
								  __u32 kind)
{
	struct wire_connection *record;

	count_life();
	record = reserve_life(bpf_ktime_get_ns(), kind, sizeof(*record), true);
	if (!record)
		return NULL;
	__builtin_memset(&record->socket, 0, sizeof(*record) - sizeof(record->head));
	record->socket = number;
	record->family = BPF_CORE_READ(sk, __sk_common.skc_family);
	record->local_port = local_port(sk);
	record->remote_port = remote_port(sk);
	if (record->family == AF_INET) {
		*(__be32 *)record->local = BPF_CORE_READ(sk, __sk_common.skc_rcv_saddr);
		*(__be32 *)record->remote = BPF_CORE_READ(sk, __sk_common.skc_daddr);
	} else if (bpf_core_field_exists(sk->__sk_common.skc_v6_daddr)) {
		BPF_CORE_READ_INTO(&record->local, sk, __sk_common.skc_v6_rcv_saddr);
		BPF_CORE_READ_INTO(&record->remote, sk, __sk_common.skc_v6_daddr);
	}
	return record;
}

static __always_inline void put_self(struct wire_connection *record)
{
	__u64 self = bpf_get_current_pid_tgid();

	record->tid = self;
	record->tgid = self >> 32;
}

/*
 * The number of a new connection; 0: there is no room for it. A CPU adds no two connections within
 * a ns, so the time and the CPU make a unique number. Programs for Linux 5.8 have no atomic counter
 * that returns its value.
 */
static __always_inline __u64 add_connection(struct sock *sk, __u64 role)
{
	__u64 key = (__u64)sk;
	struct connection new = { .number = bpf_ktime_get_ns() * MAX_CPUS | this_cpu(),
				  .role = role };

	if (!bpf_map_update_elem(&connections, &key, &new, 0))
		return new.number;
	__sync_fetch_and_add(&connection_overflow, 1);
	return 0;
}

static __always_inline int on_connect(struct sock *sk)
{
	struct wire_connection *record;
	__u64 number;

	if (!is_followed((__u32)bpf_get_current_pid_tgid()))
		return 0;
	number = add_connection(sk, ROLE_CONNECTS);
	if (!number)
		return 0;
	note_asker((__u64)sk, number);
	record = reserve_connection(sk, number, LIFE_CONNECT);
	if (record) {
		put_self(record);
		submit_life(record);
	}
	return 0;
}

static __always_inline int on_listen(struct sock *sk)
{
	__u64 key = listener_key(sk), self = bpf_get_current_pid_tgid();
	struct listener new = { .tid = self, .tgid = self >> 32, .sockets = 1 };
	struct listener *known = bpf_map_lookup_elem(&listeners, &key);

	if (!is_followed((__u32)self))
		return 0;
	if (known)
		new.sockets += known->sockets;
	if (bpf_map_update_elem(&listeners, &key, &new, 0))
		__sync_fetch_and_add(&connection_overflow, 1);
	return 0;
}

static __always_inline int on_listener_closed(struct sock *sk)
{
	__u64 key = listener_key(sk);
	struct listener *known = bpf_map_lookup_elem(&listeners, &key);

	if (known && known->sockets > 1)
		known->sockets--;
	else if (known)
		bpf_map_delete_elem(&listeners, &key);
	return 0;
}

static __always_inline int on_established(struct sock *sk, int old)
{
	__u64 key, number;
	struct wire_connection *record;
	struct connection *known;
	struct listener *listener;

	if (old == TCP_SYN_SENT) {
		key = (__u64)sk;
		known = bpf_map_lookup_elem(&connections, &key);
		if (!known)
			return 0;
		note_begun(sk);
		record = reserve_connection(sk, known->number, LIFE_CONNECTED);
		if (record)
			submit_life(record);
		return 0;
	}
	if (old != TCP_SYN_RECV)
		return 0;
	key = listener_key(sk);
	listener = bpf_map_lookup_elem(&listeners, &key);
	if (!listener && !follow_all)
		return 0;
	number = add_connection(sk, ROLE_ACCEPTED);
	if (!number)
		return 0;
	record = reserve_connection(sk, number, LIFE_ACCEPTED);
	if (!record)
		return 0;
	if (listener) {
		record->tid = listener->tid;
		record->tgid = listener->tgid;
	}
	submit_life(record);
	return 0;
}

/* Fills in the bytes that the process has written and the bytes that have arrived for it. The
 * kernel counts SYN and FIN as a byte each, which are subtracted. bytes_acked contains the SYN of
 * the side that connects, but not the SYN of the other side. The process's own FIN is in the queue
 * from FIN_WAIT1 or LAST_ACK on. */
static __always_inline void put_bytes(struct wire_connection *record, struct sock *sk, int old,
				      __u32 role)
{
	struct tcp_sock *tcp = (struct tcp_sock *)sk;
	__u32 queued = BPF_CORE_READ(tcp, write_seq) - BPF_CORE_READ(tcp, snd_una);
	__u64 sent = BPF_CORE_READ(tcp, bytes_acked) + queued;
	__u64 received = BPF_CORE_READ(tcp, bytes_received);
	bool fin = old == TCP_FIN_WAIT1 || old == TCP_FIN_WAIT2 || old == TCP_CLOSING ||
		   old == TCP_LAST_ACK;

	if (role == ROLE_CONNECTS && sent)
		sent--;
	if (fin && sent)
		sent--;
	if ((BPF_CORE_READ(sk, __sk_common.skc_flags) & (1UL << SOCK_DONE)) && received)
		received--;
	record->sent = sent;
	record->received = received;
}

/* A connection is over for its process when both directions are shut down, by close(2) or
 * shutdown(2), or when the kernel gives it up. */
static __always_inline int on_closed(struct sock *sk, int old, int state)
{
	__u64 key = (__u64)sk;
	struct wire_connection *record;
	struct connection *known, connection;

	if (state != TCP_CLOSE && BPF_CORE_READ(sk, sk_shutdown) != SHUTDOWN_MASK)
		return 0;
	known = bpf_map_lookup_elem(&connections, &key);
	if (!known)
		return 0;
	connection = *known;
	bpf_map_delete_elem(&connections, &key);
	record = reserve_connection(sk, connection.number, LIFE_CLOSED);
	if (!record)
		return 0;
	record->error = BPF_CORE_READ(sk, sk_err);
	record->state = old;
	record->reset = state == TCP_CLOSE;
	if (BPF_CORE_READ(sk, sk_lock.owned))
		put_self(record);
	put_bytes(record, sk, old, connection.role);
	submit_life(record);
	return 0;
}

static __always_inline int on_socket_state(struct sock *sk, int old, int state)
{
	if (BPF_CORE_READ(sk, sk_protocol) != IPPROTO_TCP)
		return 0;
	switch (state) {
	case TCP_SYN_SENT:
		return on_connect(sk);
	case TCP_LISTEN:
		return on_listen(sk);
	case TCP_ESTABLISHED:
		return on_established(sk, old);
	case TCP_CLOSE:
		if (old == TCP_LISTEN)
			return on_listener_closed(sk);
		return on_closed(sk, old, state);
	case TCP_FIN_WAIT1:
	case TCP_FIN_WAIT2:
	case TCP_LAST_ACK:
	case TCP_CLOSING:
		return on_closed(sk, old, state);
	}
	return 0;
}

PROGRAM(socket_state, inet_sock_set_state, on_socket_state((struct sock *)ctx[0], ctx[1], ctx[2]))

#endif
