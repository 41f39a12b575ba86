/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * ---- Containers ----
 *
 * A daemon starts a container for its client, so the container's processes are no descendants of
 * the client's. The program of the runtime (a shim, runc, conmon) that the daemon executes is
 * followed from that exec on, with its descendants, if a followed client has asked for it. docs/recording.md
 * has the rules.
 */

/* What a task's name says of it. */
enum part {
	PART_NONE = 0,
	PART_DAEMON = 1,  /* starts containers for clients */
	PART_RUNTIME = 2, /* is executed for each container */
	PART_CLIENT = 3,  /* asks a daemon */
};

#define PARTS 18

/* The names as the kernel has them, cut after 15 bytes. podman is its own daemon
 * (podman-system-service). */
static const struct {
	char comm[16];
	__u64 part;
} parts[PARTS] = {
	{ "dockerd", PART_DAEMON },	    { "containerd", PART_DAEMON },
	{ "podman", PART_DAEMON },	    { "buildkitd", PART_DAEMON },
	{ "containerd-shim", PART_RUNTIME }, { "runc", PART_RUNTIME },
	{ "crun", PART_RUNTIME },	    { "youki", PART_RUNTIME },
	{ "conmon", PART_RUNTIME },	    { "buildkit-runc", PART_RUNTIME },
	{ "docker", PART_CLIENT },	    { "docker-compose", PART_CLIENT },
	{ "docker-buildx", PART_CLIENT },   { "podman-remote", PART_CLIENT },
	{ "nerdctl", PART_CLIENT },	    { "buildctl", PART_CLIENT },
	{ "ctr", PART_CLIENT },		    { "crictl", PART_CLIENT },
};

/* Bytes of an answer, or of a runtime's arguments, that are searched for ids. */
#define SEARCHED 512
/* Bytes that are read at once: the stack of an exec's program, with all that it calls, has 512. */
#define PIECE 16
/* Hexadecimal digits of a short id. */
#define SHORT_ID 12

/* The followed clients that live, by their process: those that a daemon has answered. */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 1024);
	__type(key, __u32);
	__type(value, __u32);
} clients SEC(".maps");

/* The processes of the daemons that have answered them. */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 64);
	__type(key, __u32);
	__type(value, __u32);
} answerers SEC(".maps");

/* The ids in these answers: the first digits, and the client's process. */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 4096);
	__type(key, __u64);
	__type(value, __u32);
} told_ids SEC(".maps");

/* The number of `clients`, the last one, and the living clients that are not followed. */
__u32 client_count, last_client, strangers;

/* A lower-case hexadecimal digit's value plus 1; 0: another character. */
static const __u8 hex_digits[256] = {
	['0'] = 1, ['1'] = 2,  ['2'] = 3,  ['3'] = 4,  ['4'] = 5,  ['5'] = 6,  ['6'] = 7,  ['7'] = 8,
	['8'] = 9, ['9'] = 10, ['a'] = 11, ['b'] = 12, ['c'] = 13, ['d'] = 14, ['e'] = 15, ['f'] = 16,
};

/* Out of line: it is asked at execs and at first meetings. */
static __noinline __u32 part_of(struct task_struct *task)
{
	__u64 name[2] = {};
	__u32 part = PART_NONE;

	bpf_probe_read_kernel_str(name, sizeof(name),
				  (void *)task + bpf_core_field_offset(task->comm));
	for (int i = 0; i < PARTS; i++) {
		const __u64 *known = (const __u64 *)parts[i].comm;

		if (known[0] == name[0] && known[1] == name[1])
			part = parts[i].part;
	}
	return part;
}

/*
 * Searches the ids in the running task's memory. `teller` is the client to note them for; 0: finds
 * the client that one of them was noted for, and else returns 1 if there is a long id. Neither
 * branches nor the verifier's knowledge depend on the bytes: a look-up of each digit in a table.
 * Not static: the verifier looks at it once.
 */
__noinline __u32 search_ids(__u64 address, __u64 length, __u32 teller)
{
	__u64 value = 0, run = 0, longest = 0;
	__u32 found = 0;

	barrier_var(run);
	for (int at = 0; at < SEARCHED; at += PIECE) {
		__u8 bytes[PIECE] = {};
		__u64 some = length > at ? length - at : 0;

		if (some > sizeof(bytes))
			some = sizeof(bytes);
		if (!some || bpf_probe_read_user(bytes, some, (void *)(address + at)))
			break;
		for (int i = 0; i < PIECE; i++) {
			__u64 digit = hex_digits[bytes[i]];

			run = (run + 1) * ((digit + 15) >> 4);
			value = value << 4 | ((digit - 1) & 15);
			if (run > longest)
				longest = run;
			if (run == SHORT_ID) {
				__u64 key = value & ((1ULL << 4 * SHORT_ID) - 1);

				if (teller) {
					bpf_map_update_elem(&told_ids, &key, &teller, 0);
				} else {
					__u32 *client = bpf_map_lookup_elem(&told_ids, &key);

					if (client)
						found = *client;
				}
			}
		}
	}
	if (!teller && !found)
		return longest >= 64;
	return found;
}

/* Ids that a task sends in its present system call: those of containers that the daemon has made for
 * this client. */
static __always_inline void note_ids(struct task_struct *waker, __u32 client)
{
	__u64 regs = user_regs(false, waker), at, length;

	if (!regs)
		return;
	if (bpf_core_field_exists(struct pt_regs, si)) {
		at = PEEK(struct pt_regs, regs, si);
		length = PEEK(struct pt_regs, regs, dx);
	} else {
		at = PEEK(struct pt_regs___arm64, regs, regs[1]);
		length = PEEK(struct pt_regs___arm64, regs, regs[2]);
	}
	search_ids(at, length, client);
}

/* A daemon's task, which runs here, wakes a followed task. If that is by what it sends to a socket,
 * the followed task's process is a client. Out of line: it is rare. */
static __noinline int answer(struct task_struct *waker, struct task_struct *wakee)
{
	__u32 daemon = BPF_CORE_READ(waker, tgid);
	__u32 client = BPF_CORE_READ(wakee, tgid);
	__u32 one = 1;

	/* A shim serves its daemon. */
	if (!sends(waker) || part_of(wakee) == PART_RUNTIME)
		return 0;
	if (!bpf_map_lookup_elem(&clients, &client) &&
	    !bpf_map_update_elem(&clients, &client, &one, BPF_NOEXIST))
		__sync_fetch_and_add(&client_count, 1);
	last_client = client;
	if (!bpf_map_lookup_elem(&answerers, &daemon))
		bpf_map_update_elem(&answerers, &daemon, &one, 0);
	note_ids(waker, client);
	return 0;
}

/* A followed process ends. */
static __always_inline void end_client(__u32 tgid)
{
	if (client_count && !bpf_map_delete_elem(&clients, &tgid))
		__sync_fetch_and_add(&client_count, -1);
}

/* A client that is not followed begins. */
static __always_inline void note_stranger(__u32 tid)
{
	__u8 *slot = follow_slot(tid);

	if (slot && !(*slot & (STANDING | STRANGER))) {
		*slot |= STRANGER;
		__sync_fetch_and_add(&strangers, 1);
	}
}

/* It ends, or executes another program. */
static __always_inline void end_stranger(__u32 tid)
{
	__u8 *slot = follow_slot(tid);

	if (slot && *slot & STRANGER) {
		*slot &= ~STRANGER;
		__sync_fetch_and_add(&strangers, -1);
	}
}

/* A daemon that has answered a followed client has executed the task's runtime, or the system's
 * containerd has. One that a shim executes is for a container that is not followed: its health
 * check, or `docker exec`, whose id is told. */
static __always_inline bool is_asked(struct task_struct *task)
{
	struct task_struct *parent = BPF_CORE_READ(task, real_parent);

	for (int up = 0; up < 3; up++) {
		__u32 tgid = BPF_CORE_READ(parent, tgid);

		if (bpf_map_lookup_elem(&answerers, &tgid))
			return true;
		if (part_of(parent) != PART_DAEMON)
			return false;
		parent = BPF_CORE_READ(parent, real_parent);
		if (BPF_CORE_READ(parent, tgid) <= 1)
			return true;
	}
	return false;
}

/* Whose a container is (enum evidence), by the arguments of its runtime, which the task has just
 * executed. */
static __noinline __u32 judge(struct task_struct *task, __u32 *client)
{
	struct mm_struct *mm = BPF_CORE_READ(task, mm);
	unsigned long start = BPF_CORE_READ(mm, arg_start);
	unsigned long end = BPF_CORE_READ(mm, arg_end);
	__u32 found;

	*client = last_client;
	if (!client_count || end <= start)
		return containers == CONTAINERS_ALL ? EVIDENCE_ANY : EVIDENCE_NONE;
	found = search_ids(start, end - start, 0);
	if (found > 1) {
		*client = found;
		return EVIDENCE_TOLD;
	}
	if (!is_asked(task))
		return containers == CONTAINERS_ALL ? EVIDENCE_ANY : EVIDENCE_NONE;
	if (!strangers)
		return EVIDENCE_ONLY;
	/* A daemon tells its client ids of this length. */
	if (found && containers != CONTAINERS_ALL)
		return EVIDENCE_NONE;
	return EVIDENCE_AMBIGUOUS;
}

static __always_inline int put_join(struct task_struct *task, bool born, const __u32 area);

/* A task that is not followed has executed a program. True: it is followed from now on. */
static __noinline int adopt(struct task_struct *task)
{
	__u32 tid = BPF_CORE_READ(task, pid);
	struct wire_container *record;
	__u32 evidence, client = 0;
	__u32 part = part_of(task);

	end_stranger(tid);
	if (part == PART_CLIENT)
		note_stranger(tid);
	if (part != PART_RUNTIME)
		return false;
	evidence = judge(task, &client);
	if (evidence == EVIDENCE_NONE)
		return false;
	follow(tid);
	count_life();
	record = reserve_life(bpf_ktime_get_ns(), LIFE_CONTAINER, sizeof(*record), true);
	if (record) {
		record->tid = tid;
		record->tgid = BPF_CORE_READ(task, tgid);
		record->client = evidence == EVIDENCE_ANY ? 0 : client;
		record->evidence = evidence;
		submit_life(record);
	}
	put_join(task, false, 0);
	return true;
}
