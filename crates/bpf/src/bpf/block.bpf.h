/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Requests to block devices, by block_rq_issue and block_rq_complete.
 *
 * A request becomes sums and a histogram of its device; the recorder reads them once a second.
 * The requests of all tasks count: writeback issues them in a kernel thread, so the running
 * task at the issue is often not the one that wrote.
 */
#ifndef TR_BLOCK_BPF_H
#define TR_BLOCK_BPF_H

#include "core.bpf.h"

/* The most requests in flight at a time. */
#define MAX_REQUESTS 8192

/* A request in flight. */
struct issued {
	__u64 time;
	__u64 bytes;
	__u32 device; /* its place in block_devices */
	__u32 group;  /* enum block_group */
};

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, MAX_REQUESTS);
	__type(key, __u64); /* the request's address */
	__type(value, struct issued);
} requests SEC(".maps");

/* The place of each device in block_devices, by its number. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, BLOCK_DEVICES);
	__type(key, __u32);
	__type(value, __u32);
} device_places SEC(".maps");

/* The places that are taken: programs for Linux 5.8 have no atomic compare-and-swap, and no atomic
 * addition that returns the sum. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, BLOCK_DEVICES);
	__type(key, __u32);
	__type(value, __u32);
} taken_places SEC(".maps");

/* About the first place that is free. */
__u32 free_place;

/* How many CPUs may find a new device in the same moment. */
#define FINDERS 4

/* The group of an operation, as in /proc/diskstats; BLOCK_GROUPS for a driver's own requests. */
static __always_inline __u32 group_of(__u32 operation)
{
	if (operation >= REQ_OP_DRV_IN)
		return BLOCK_GROUPS;
	if (operation == REQ_OP_FLUSH)
		return BLOCK_FLUSH;
	if (operation == REQ_OP_DISCARD)
		return BLOCK_DISCARD;
	return operation & 1 ? BLOCK_WRITE : BLOCK_READ;
}

/* The place of a device in block_devices; BLOCK_DEVICES if there is no room. Not static: the
 * verifier then follows the caller's remaining instructions once, and not for each way through this
 * function. */
__noinline __u32 place_of(__u32 number)
{
	__u32 *known = bpf_map_lookup_elem(&device_places, &number), place, i;

	if (known)
		return *known;
	for (i = 0; i < FINDERS; i++) {
		place = free_place;
		if (place >= BLOCK_DEVICES)
			break;
		free_place = place + 1;
		if (bpf_map_update_elem(&taken_places, &place, &number, BPF_NOEXIST))
			continue;
		/* Another CPU may have found it: then this place stays empty. */
		if (!bpf_map_update_elem(&device_places, &number, &place, BPF_NOEXIST)) {
			block_numbers[place & (BLOCK_DEVICES - 1)] = number;
			return place;
		}
		known = bpf_map_lookup_elem(&device_places, &number);
		if (known)
			return *known;
	}
	__sync_fetch_and_add(&block_overflow, 1);
	return BLOCK_DEVICES;
}

/* Adds the time since the device's last event if a request was in flight. Two CPUs that do
 * this in the same moment can both add it: an error of nanoseconds a second, cheaper than a
 * lock. */
static __always_inline void add_busy(struct block_device *device, __u64 now)
{
	__u64 last = device->last;

	if (now <= last)
		return;
	device->last = now;
	if (device->in_flight)
		__sync_fetch_and_add(&device->busy, now - last);
}

static __always_inline int on_issue(struct request *request)
{
	__u64 key = (__u64)request;
	struct gendisk *disk;
	struct issued issued;
	struct block_device *device;

	issued.group = group_of(PEEK(request, request, cmd_flags) & REQ_OP_MASK);
	if (issued.group >= BLOCK_GROUPS)
		return 0;
	if (bpf_core_field_exists(request->rq_disk))
		disk = BPF_CORE_READ(request, rq_disk);
	else
		disk = BPF_CORE_READ(request, q, disk);
	if (!disk)
		return 0;
	issued.device = place_of((__u32)BPF_CORE_READ(disk, major) << MINORBITS |
				 (__u32)BPF_CORE_READ(disk, first_minor));
	if (issued.device >= BLOCK_DEVICES)
		return 0;
	device = &block_devices[issued.device & (BLOCK_DEVICES - 1)];
	issued.bytes = PEEK(request, request, __data_len);
	issued.time = bpf_ktime_get_ns();
	if (bpf_map_update_elem(&requests, &key, &issued, BPF_NOEXIST)) {
		/* A requeued request is in flight already. */
		if (bpf_map_update_elem(&requests, &key, &issued, BPF_EXIST))
			__sync_fetch_and_add(&block_overflow, 1);
		return 0;
	}
	add_busy(device, issued.time);
	__sync_fetch_and_add(&device->in_flight, 1);
	return 0;
}

/* The bucket of a latency: n for 2^(n + 10) to 2^(n + 11) ns. The first bucket has no lower bound
 * and the last one no upper bound. The function has no branches, like the search for ids in
 * containers.bpf.h, and is not static, like `place_of`. */
__noinline __u32 bucket_of(__u64 ns)
{
	__u64 log = 0, bits;

#pragma unroll
	for (__u64 half = 32; half; half /= 2) {
		bits = half * (1 - is_zero(ns >> half));
		ns >>= bits;
		log += bits;
	}
	if (log <= BLOCK_FIRST_BITS)
		return 0;
	log -= BLOCK_FIRST_BITS;
	return log < BLOCK_BUCKETS ? log : BLOCK_BUCKETS - 1;
}

static __always_inline int on_complete(struct request *request, __u32 bytes)
{
	__u64 key = (__u64)request, now, latency;
	struct issued *found, issued;
	struct block_device *device;
	struct block_sums *sums;

	/* The driver completes a request in parts; the last part has all that is left. */
	if (bytes < PEEK(request, request, __data_len))
		return 0;
	found = bpf_map_lookup_elem(&requests, &key);
	if (!found)
		return 0;
	issued = *found;
	if (bpf_map_delete_elem(&requests, &key))
		return 0;
	now = bpf_ktime_get_ns();
	latency = now > issued.time ? now - issued.time : 0;
	device = &block_devices[issued.device & (BLOCK_DEVICES - 1)];
	sums = &device->sums[issued.group & (BLOCK_GROUPS - 1)];
	add_busy(device, now);
	__sync_fetch_and_add(&device->in_flight, -1);
	__sync_fetch_and_add(&sums->count, 1);
	__sync_fetch_and_add(&sums->bytes, issued.bytes);
	__sync_fetch_and_add(&sums->latency, latency);
	__sync_fetch_and_add(&sums->buckets[bucket_of(latency) & (BLOCK_BUCKETS - 1)], 1);
	/* The reader has begun a new interval. If two requests end at once, one of them may be
	 * missed. */
	if (sums->interval != block_interval) {
		sums->interval = block_interval;
		sums->longest = 0;
	}
	if (latency > sums->longest)
		sums->longest = latency;
	return 0;
}

/* Handles both orders of arguments: before 5.11 the request queue was the first one. */
static __always_inline int issue_event(__u64 *ctx)
{
	if (issue_has_queue)
		return on_issue((struct request *)ARG(ctx, 1));
	return on_issue((struct request *)ARG(ctx, 0));
}

PROGRAM(issue, block_rq_issue, issue_event(ctx))

PROGRAM(complete, block_rq_complete, on_complete((struct request *)ctx[0], ctx[2]))

#endif
