/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Containers.
 *
 * A daemon starts a container for its client, so the container's processes are no descendants of
 * the client. If a followed client has asked for the container, the runtime that the daemon executes
 * (a shim, runc, conmon) is followed from that exec on, with its descendants. docs/containers.md has
 * the rules.
 */
#ifndef TR_CONTAINERS_BPF_H
#define TR_CONTAINERS_BPF_H

#include "core.bpf.h"
#include "clients.bpf.h"
#include "joins.bpf.h"
#include "names.bpf.h"
#include "reasons.bpf.h"

/* The most bytes of an answer, or of a runtime's arguments, that are searched for ids. */
#define SEARCHED 512
/* The bytes that are read at once. The stack of the exec program has 512 bytes, with all functions
 * that it calls. */
#define PIECE 32
/* The most ids that one search finds. */
#define MOST_IDS 8

/* The clients: living followed processes that a daemon has answered. */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 1024);
	__type(key, __u32);
	__type(value, __u32);
} clients SEC(".maps");

/* The ids of containers in the answers of daemons, and the process that got the answer. An id is
 * its first 12 digits in text: Docker's classic builder sends no more. */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 4096);
	__type(key, __u64[2]);
	__type(value, __u32);
} noted_ids SEC(".maps");

/* The number of entries in `clients`. */
__u32 client_count;

/*
 * The verifier follows both ways of a branch, and both of the next one from each: half a million
 * instructions for a loop over bytes, 0.3 s of each recording's start. So the search has no
 * branch that depends on what it reads, and is not static: it looks at it once.
 */

/* The position of the only bit that is set in a word. */
static __always_inline __u32 bit_number(__u64 bit)
{
	static const __u64 odd[] = {
		0xaaaaaaaaaaaaaaaa, 0xcccccccccccccccc, 0xf0f0f0f0f0f0f0f0,
		0xff00ff00ff00ff00, 0xffff0000ffff0000, 0xffffffff00000000,
	};
	__u64 number = 0;

	for (int i = 0; i < 6; i++)
		number |= (1 - is_zero(bit & odd[i])) << i;
	return number;
}

/* A word in which each of the 8 bytes is `byte`. */
#define EIGHT(byte) ((byte) * 0x0101010101010101ULL)

/* A word with 0x80 in each byte whose character is no lower-case hexadecimal digit. */
static __always_inline __u64 no_digits(__u64 word)
{
	__u64 low = word & EIGHT(0x7f);
	__u64 digits = (low + EIGHT(0x80 - '0')) & ~(low + EIGHT(0x7f - '9'));
	__u64 letters = (low + EIGHT(0x80 - 'a')) & ~(low + EIGHT(0x7f - 'f'));

	return (~(digits | letters) | word) & EIGHT(0x80);
}

/* The first 4 characters of a word, on machines whose first byte is the lowest. */
#define FIRST_FOUR 0xffffffffULL

/* Takes the id that contains the digits at `at`. Its first digit is up to 7 characters earlier, but
 * not before `from`. If the id has at least 12 digits, it is noted for the client `receiver`; if
 * `receiver` is 0, the client for which it was noted is returned. */
__noinline __u32 take_id(__u64 at, __u64 from, __u32 receiver)
{
	__u64 id[2], before = 0;
	__u32 *client;

	if (at > from)
		bpf_probe_read_user(&before, sizeof(before), (void *)(at - sizeof(before)));
	before = no_digits(before);
	for (int i = 0; i < 7 && !(before >> 63); i++) {
		before <<= 8;
		at--;
	}
	if (bpf_probe_read_user(id, sizeof(id), (void *)at))
		return 0;
	id[1] &= FIRST_FOUR;
	if (no_digits(id[0]) | (no_digits(id[1]) & FIRST_FOUR))
		return 0;
	if (receiver) {
		bpf_map_update_elem(&noted_ids, id, &receiver, 0);
		return 0;
	}
	client = bpf_map_lookup_elem(&noted_ids, id);
	return client ? *client : 0;
}

/* The result of `digit_words_of` for memory that cannot be read. */
#define UNREADABLE (~0ULL)

/* A bit for each word of 8 bytes that consists of digits, in a piece of the running task's
 * memory. */
__noinline __u64 digit_words_of(__u64 address)
{
	__u64 words = 0, piece[PIECE / 8];

	if (bpf_probe_read_user(piece, sizeof(piece), (void *)address))
		return UNREADABLE;
	for (int i = 0; i < PIECE / 8; i++)
		words |= is_zero(no_digits(piece[i])) << i;
	return words;
}

/* Digits in the running task's memory, and what they belong to. */
struct search {
	__u64 address;
	__u64 length;
	__u64 words; /* a bit for each word of 8 bytes that consists of digits */
	__u64 rest;  /* those of `words` that are still to be examined */
	__u32 receiver;
	__u32 found;
};

static __always_inline long digit_words_once(__u32 number, void *context)
{
	struct search *search = context;
	__u32 at = number * PIECE;
	__u64 piece;

	if (at >= search->length)
		return 1;
	/* The last piece may end beyond `length`: `search_ids` drops these bits. */
	piece = digit_words_of(search->address + at);
	if (piece == UNREADABLE)
		return 1;
	search->words |= piece << at / 8;
	return 0;
}

static __always_inline long take_id_once(__u32 number, void *context)
{
	struct search *search = context;
	__u64 first = search->rest & -search->rest;
	__u32 client;

	if (!search->rest)
		return 1;
	client =
		take_id(search->address + 8 * bit_number(first), search->address, search->receiver);
	search->found = client + search->found * is_zero(client);
	search->rest &= search->rest + first;
	return 0;
}

/*
 * Searches for ids in the running task's memory. An id has 8 digits in an aligned word of 8 bytes,
 * at least. The ids are noted for the client `receiver`; if `receiver` is 0, the client for which
 * one of them was noted is returned.
 */
__noinline __u32 search_ids(__u64 address, __u64 length, __u32 receiver)
{
	struct search search = {
		.address = address,
		.length = length,
		.receiver = receiver,
	};
	__u64 words;

	REPEAT(SEARCHED / PIECE, digit_words_once, &search);
	words = search.words;
	if (length < SEARCHED)
		words &= (1ULL << length / 8) - 1;
	/* Arguments have ids of 16 digits or more. */
	search.rest = receiver ? words : words & words >> 1;
	REPEAT(MOST_IDS, take_id_once, &search);
	return search.found;
}

/* Notes the ids that a daemon's task sends to a client in its present system call: they belong to
 * containers that the daemon has made for this client. */
static __always_inline void note_ids(struct task_struct *waker, __u32 client)
{
	__u64 regs = user_regs(false, waker), at, length;

	if (!regs)
		return;
	if (bpf_core_field_exists(struct pt_regs, si)) {
		at = PEEK(pt_regs, regs, si);
		length = PEEK(pt_regs, regs, dx);
	} else {
		at = PEEK(pt_regs___arm64, regs, regs[1]);
		length = PEEK(pt_regs___arm64, regs, regs[2]);
	}
	search_ids(at, length, client);
	/* 12 digits may have no whole word of 8 bytes in them, but then they have one that begins in
	 * the middle of another. */
	if (length > 4)
		search_ids(at + 4, length - 4, client);
}

/* The running task belongs to a daemon and wakes a task of the followed process of `client_leader`.
 * That process is a client if the daemon's task is sending to a socket. Not static: the verifier
 * looks at it once. */
__noinline int answer(__u64 client_leader)
{
	struct task_struct *waker = (struct task_struct *)bpf_get_current_task();
	struct task_struct *leader = (struct task_struct *)client_leader;
	__u32 client = BPF_CORE_READ(leader, pid);
	__u32 one = 1;

	/* A shim serves its daemon. */
	if (!sends() || part_of(leader) == PART_RUNTIME)
		return 0;
	if (!bpf_map_lookup_elem(&clients, &client) &&
	    !bpf_map_update_elem(&clients, &client, &one, BPF_NOEXIST))
		__sync_fetch_and_add(&client_count, 1);
	note_ids(waker, client);
	return 0;
}

/* Forgets a followed process that ends. */
static __always_inline void end_client(__u32 tgid)
{
	if (client_count && !bpf_map_delete_elem(&clients, &tgid))
		__sync_fetch_and_add(&client_count, -1);
}

/* Finds the client of a container and says how it is known (enum evidence): by the arguments of the
 * runtime, which the task has just executed, else by the connections of the daemon. */
static __noinline __u32 judge(struct task_struct *task, __u32 *client)
{
	struct mm_struct *mm = BPF_CORE_READ(task, mm);
	unsigned long start = BPF_CORE_READ(mm, arg_start);
	unsigned long end = BPF_CORE_READ(mm, arg_end);
	struct task_struct *only;
	__u64 found;

	if (client_count && end > start) {
		*client = search_ids(start, end - start, 0);
		if (*client)
			return EVIDENCE_SENT;
	}
	found = clients_of((__u64)task);
	only = (struct task_struct *)(found & ~CLIENT_FLAGS);
	if (found & CLIENTS_OURS && !(found & CLIENTS_SEVERAL)) {
		*client = BPF_CORE_READ(only, tgid);
		return EVIDENCE_INFERRED;
	}
	if (containers == CONTAINERS_ALL)
		return EVIDENCE_ANY;
	/* The daemon has too many connections to examine, but it has answered a followed client. */
	if (found & CLIENTS_OURS || (found & CLIENTS_SEVERAL && client_count))
		return EVIDENCE_NOT_RECORDED;
	return EVIDENCE_NONE;
}

/* The running task, which is not followed, has executed a program. Returns true if it is followed
 * from now on, as a container's. Not static: the verifier looks at it once. */
__noinline int adopt(void)
{
	struct task_struct *task = (struct task_struct *)bpf_get_current_task();
	__u32 tid = BPF_CORE_READ(task, pid);
	struct wire_container *record;
	__u32 evidence, client = 0;
	__u32 part = part_of(task);

	if (part != PART_RUNTIME)
		return false;
	evidence = judge(task, &client);
	if (evidence == EVIDENCE_NONE)
		return false;
	if (evidence != EVIDENCE_NOT_RECORDED)
		follow(tid);
	count_life();
	record = reserve_life(bpf_ktime_get_ns(), LIFE_CONTAINER, sizeof(*record), true);
	if (record) {
		record->tid = tid;
		record->tgid = BPF_CORE_READ(task, tgid);
		record->client = client;
		record->evidence = evidence;
		submit_life(record);
	}
	if (evidence == EVIDENCE_NOT_RECORDED)
		return false;
	put_join(task, false, 0);
	return true;
}

#endif
