/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * DNS queries by UDP of the followed tasks, and their answers.
 *
 * A query passes net_dev_queue in its sender's system call. Its answer passes netif_receive_skb in
 * a softirq, which runs in any task: it is taken if a followed task has asked that server from the
 * port that it goes to. A driver can leave the packet in a page, which the programs cannot read: such
 * an answer has no port and no message.
 */
#ifndef TR_DNS_BPF_H
#define TR_DNS_BPF_H

#include "core.bpf.h"

#define DNS_PORT 53
/* The most pairs of server and port. Beyond that the pairs that were asked longest ago are
 * forgotten. */
#define MAX_ASKED 4096
#define ETH_P_IP 0x0800
#define ETH_P_IPV6 0x86dd
#define IPPROTO_UDP 17
#define IPV4_HEADER 20
#define IPV6_HEADER 40
#define UDP_HEADER 8

/* An IP address. An IPv4 address takes the first 4 bytes. */
struct ip_address {
	__u8 bytes[16];
};

/* A server, and the port from which a followed task has asked it. Each server is also noted with
 * port 0, for answers whose port is not readable. */
struct asked {
	struct ip_address server;
	__u32 port;
};

struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, MAX_ASKED);
	__type(key, struct asked);
	__type(value, __u32);
} asked SEC(".maps");

/* The headers of a packet, as far as the programs read them. */
struct packet {
	struct ip_address source, target;
	__u64 udp;			/* address of the UDP header */
	__u16 source_port, target_port; /* 0: not readable */
	__u16 family;
	__u32 payload; /* readable bytes after the UDP header */
};

/* Reads the headers of a UDP packet. Its IP header is at `ip`, and `readable` bytes can be read
 * from there on. False: it is another packet, or its IP header has options. */
static __always_inline bool read_packet(struct packet *packet, struct sk_buff *skb, __u64 ip,
					__u32 readable)
{
	__u8 header[IPV6_HEADER];
	__be16 ports[2];
	__u16 protocol = __builtin_bswap16(BPF_CORE_READ(skb, protocol));
	__u32 length = protocol == ETH_P_IP ? IPV4_HEADER : IPV6_HEADER;

	if (protocol != ETH_P_IP && protocol != ETH_P_IPV6)
		return false;
	__builtin_memset(packet, 0, sizeof(*packet));
	if (readable < length)
		return false;
	if (protocol == ETH_P_IP) {
		/* Version 4, no options; not the later part of a fragmented packet. */
		if (bpf_probe_read_kernel(header, IPV4_HEADER, (void *)ip) || header[0] != 0x45 ||
		    header[9] != IPPROTO_UDP || (header[6] & 0x1f) || header[7])
			return false;
		__builtin_memcpy(&packet->source, header + 12, 4);
		__builtin_memcpy(&packet->target, header + 16, 4);
		packet->family = AF_INET;
	} else {
		if (bpf_probe_read_kernel(header, IPV6_HEADER, (void *)ip) ||
		    header[6] != IPPROTO_UDP)
			return false;
		__builtin_memcpy(&packet->source, header + 8, 16);
		__builtin_memcpy(&packet->target, header + 24, 16);
		packet->family = AF_INET6;
	}
	readable -= length;
	packet->udp = ip + length;
	if (readable < UDP_HEADER ||
	    bpf_probe_read_kernel(ports, sizeof(ports), (void *)packet->udp))
		return true;
	packet->source_port = __builtin_bswap16(ports[0]);
	packet->target_port = __builtin_bswap16(ports[1]);
	packet->payload = readable - UDP_HEADER;
	return true;
}

static __always_inline struct wire_dns *reserve_dns(struct packet *packet, __u32 kind)
{
	struct wire_dns *record;
	__u32 length = packet->payload;

	count_life();
	record = reserve_life(bpf_ktime_get_ns(), kind, sizeof(*record), true);
	if (!record)
		return NULL;
	record->tid = 0;
	record->tgid = 0;
	record->family = packet->family;
	record->length = 0;
	if (length > sizeof(record->message))
		length = sizeof(record->message);
	/* Hides the bound from clang, which would leave the verifier's out. */
	asm volatile("" : "+r"(length));
	if (length && length <= sizeof(record->message) &&
	    !bpf_probe_read_kernel(record->message, length, (void *)packet->udp + UDP_HEADER))
		record->length = length;
	return record;
}

static __always_inline int on_packet_sent(struct sk_buff *skb)
{
	__u64 socket = (__u64)PEEK(sk_buff, skb, sk), self, data, ip;
	struct packet packet;
	struct asked key;
	struct wire_dns *record;
	__u32 readable, one = 1;

	/* A packet that is forwarded has no socket. Most packets are TCP's. */
	if (!socket || PEEK(sock, socket, sk_protocol) != IPPROTO_UDP)
		return 0;
	self = bpf_get_current_pid_tgid();
	if (!is_followed((__u32)self))
		return 0;
	/* `data` is the header of the link layer. */
	data = (__u64)BPF_CORE_READ(skb, data);
	readable = BPF_CORE_READ(skb, len) - BPF_CORE_READ(skb, data_len);
	ip = (__u64)BPF_CORE_READ(skb, head) + BPF_CORE_READ(skb, network_header);
	if (ip < data || ip - data > readable)
		return 0;
	if (!read_packet(&packet, skb, ip, readable - (__u32)(ip - data)) ||
	    packet.target_port != DNS_PORT)
		return 0;
	key.server = packet.target;
	key.port = packet.source_port;
	bpf_map_update_elem(&asked, &key, &one, 0);
	key.port = 0;
	bpf_map_update_elem(&asked, &key, &one, 0);
	any_query = true;
	record = reserve_dns(&packet, LIFE_DNS_QUERY);
	if (!record)
		return 0;
	record->tid = self;
	record->tgid = self >> 32;
	record->port = packet.source_port;
	__builtin_memcpy(record->server, &packet.target, sizeof(record->server));
	submit_life(record);
	return 0;
}

static __always_inline int on_packet_received(struct sk_buff *skb)
{
	struct packet packet;
	struct asked key;
	struct wire_dns *record;

	if (!any_query)
		return 0;
	if (!read_packet(&packet, skb, (__u64)BPF_CORE_READ(skb, data),
			 BPF_CORE_READ(skb, len) - BPF_CORE_READ(skb, data_len)))
		return 0;
	if (packet.source_port && packet.source_port != DNS_PORT)
		return 0;
	key.server = packet.source;
	key.port = packet.target_port;
	if (!bpf_map_lookup_elem(&asked, &key))
		return 0;
	record = reserve_dns(&packet, LIFE_DNS_ANSWER);
	if (!record)
		return 0;
	record->port = packet.target_port;
	__builtin_memcpy(record->server, &packet.source, sizeof(record->server));
	submit_life(record);
	return 0;
}

PROGRAM(packet_sent, net_dev_queue, on_packet_sent((struct sk_buff *)ctx[0]))
PROGRAM(packet_received, netif_receive_skb, on_packet_received((struct sk_buff *)ctx[0]))

#endif
