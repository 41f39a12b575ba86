//! The two messages between `tr` and the loader that sudo runs. Both have a fixed length and contain plain
//! numbers, none of which the loader trusts.

use tr_bpf::{wire, Containers, Living, Parts, Sampling, Settings};
use zerocopy::{FromBytes, FromZeros, Immutable, IntoBytes, KnownLayout};

/// The bytes with which the messages between `tr` and the loader begin in this version.
const MAGIC: [u8; 8] = *b"trload06";
/// The largest number of processes to follow in a request to the loader.
const MOST_TARGETS: usize = 4096;
/// The number of 64-bit words in a set of CPUs that has a bit for each CPU.
const CPU_WORDS: usize = wire::MAX_CPUS / 64;
/// The largest size in bytes of each buffer that the loader makes for a recording: of each CPU's buffer for scheduling
/// events (slots), and of a ring.
const LARGEST_BUFFER: u32 = 1 << 30;
/// The largest number of recordings for which loaders attach BPF programs on the whole machine at the same time. Each
/// recording adds some time to every context switch of the machine.
const MOST_RECORDINGS: usize = 64;
/// The largest task id that Linux allows, plus one.
const PID_MAX: u32 = 1 << 22;

const ALL: u32 = 1;
const LATER_CPUS: u32 = 2;
const CGROUP: u32 = 4;
const SYSCALLS: u32 = 8;
const SERVERS: u32 = 16;
const LIGHT: u32 = 32;
/// The setting for containers is a small number in the flags of a request. This constant is the lowest bit of that
/// number.
const CONTAINERS: u32 = 64;

/// The request from `tr` to the loader, which has the settings of the BPF programs.
#[derive(Clone, Debug, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct Request {
    magic: [u8; 8],
    /// The sizes in bytes of the BPF programs' memory that both `tr` and the loader use. If two versions of `tr`
    /// differ in that memory, they differ in these sizes.
    memory: [u64; 2],
    cgroup: u64,
    flags: u32,
    later_cpus: u32,
    possible_cpus: u32,
    sched_slots: u32,
    life_ring: u32,
    argv_limit: u32,
    pid_max: u32,
    target_count: u32,
    /// The number of stacks that are sampled each second on a CPU, or 0 if no stacks are sampled at intervals.
    sample_hz: u32,
    /// The size of the ring for sampled stacks, in bytes.
    sample_ring: u32,
    /// The stack of a task is recorded when the task has waited for at least this time, in ns; 0 if no stacks of
    /// waits are recorded.
    wait_least: u64,
    /// The set of CPUs whose events are recorded, with a bit for each CPU.
    cpus: [u64; CPU_WORDS],
    targets: [u32; MOST_TARGETS],
}

impl Request {
    /// Makes the request with these settings of the BPF programs; `None` if they have more targets or CPUs than a
    /// request has room for.
    pub fn of(settings: &Settings) -> Option<Request> {
        let mut request = Request {
            magic: MAGIC,
            memory: tr_bpf::MEMORY.map(|len| len as u64),
            cgroup: settings.target_cgroup.unwrap_or(0),
            flags: 0,
            later_cpus: settings.later_cpus.unwrap_or(0),
            possible_cpus: u32::try_from(settings.possible_cpus).ok()?,
            sched_slots: settings.sched_slots,
            life_ring: settings.life_ring,
            argv_limit: settings.argv_limit,
            pid_max: settings.pid_max,
            target_count: u32::try_from(settings.targets.len()).ok()?,
            sample_hz: settings.stacks.map_or(0, |sampling| sampling.hz),
            sample_ring: settings.stacks.map_or(0, |sampling| sampling.ring),
            wait_least: settings.stacks.map_or(0, |sampling| sampling.wait_least),
            cpus: [0; CPU_WORDS],
            targets: [0; MOST_TARGETS],
        };
        let flags = [
            (settings.all, ALL),
            (settings.later_cpus.is_some(), LATER_CPUS),
            (settings.target_cgroup.is_some(), CGROUP),
            (settings.servers, SERVERS),
            (settings.syscalls, SYSCALLS),
            (settings.light, LIGHT),
        ];
        for (is, flag) in flags {
            request.flags |= if is { flag } else { 0 };
        }
        request.flags |= settings.containers as u32 * CONTAINERS;
        for cpu in &settings.cpus {
            *request.cpus.get_mut(usize::from(cpu / 64))? |= 1 << (cpu % 64);
        }
        let targets = request.targets.get_mut(..settings.targets.len())?;
        targets.copy_from_slice(&settings.targets);
        Some(request)
    }

    /// Creates a request with zeros. The loader receives the real request into it, from the `tr` that records.
    pub fn empty() -> Request {
        Request::new_zeroed()
    }

    /// Verifies the request and returns its settings of the BPF programs, or the reason for a refusal as text.
    /// `memory` is the memory of the machine in bytes: the slots and rings take at most half of it, together with
    /// those of all running recordings.
    pub fn settings(&self, memory: u64, living: Living) -> Result<Settings, &'static str> {
        if self.magic != MAGIC || self.memory != tr_bpf::MEMORY.map(|len| len as u64) {
            return Err("the program was replaced by another version");
        }
        let cpus: Vec<u16> = (0..wire::MAX_CPUS as u16)
            .filter(|cpu| self.cpus.get(usize::from(cpu / 64)).unwrap_or(&0) >> (cpu % 64) & 1 == 1)
            .collect();
        let is_size =
            |bytes: u32| bytes.is_power_of_two() && (4096..=LARGEST_BUFFER).contains(&bytes);
        let targets = self.targets.get(..self.target_count as usize);
        let has_stacks = self.sample_hz > 0 || self.wait_least > 0;
        let containers = Containers::of(self.flags / CONTAINERS);
        let valid = !cpus.is_empty()
            && self.later_cpus as usize <= wire::MAX_CPUS
            && self.possible_cpus as usize <= wire::MAX_CPUS
            && (1..=PID_MAX).contains(&self.pid_max)
            && is_size(self.sched_slots)
            && is_size(self.life_ring)
            && self.sample_hz <= Sampling::MOST
            && (!has_stacks || is_size(self.sample_ring));
        let (true, Some(targets), Some(containers)) = (valid, targets, containers) else {
            return Err("a setting is out of its range");
        };
        let has = |flag| self.flags & flag != 0;
        let settings = Settings {
            all: has(ALL),
            cpus,
            later_cpus: has(LATER_CPUS).then_some(self.later_cpus),
            possible_cpus: self.possible_cpus as usize,
            sched_slots: self.sched_slots,
            life_ring: self.life_ring,
            argv_limit: self.argv_limit,
            pid_max: self.pid_max,
            targets: targets.to_vec(),
            target_cgroup: has(CGROUP).then_some(self.cgroup),
            containers,
            servers: has(SERVERS),
            syscalls: has(SYSCALLS),
            light: has(LIGHT),
            stacks: has_stacks.then_some(Sampling {
                hz: self.sample_hz,
                wait_least: self.wait_least,
                ring: self.sample_ring,
            }),
            count_emitted: false,
            hidden_tid: 0,
            keep_others: false,
        };
        if living.recordings >= MOST_RECORDINGS {
            return Err("this machine has 64 recordings by BPF already");
        }
        let slots = u64::from(settings.regions()) * u64::from(settings.sched_slots);
        let samples = settings
            .stacks
            .map_or(0, |sampling| u64::from(sampling.ring));
        let own = slots + u64::from(settings.life_ring) + samples;
        if own > (memory / 2).saturating_sub(living.memory) {
            return Err(
                "the rings, with those of all recordings, would take more than half of the memory",
            );
        }
        Ok(settings)
    }
}

/// The reply from the loader to `tr`: the properties of the attached BPF programs, or the reason why they were not
/// attached. The descriptors of the programs come with the reply.
#[derive(Clone, Debug, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct Reply {
    attached: u32,
    raw: u32,
    irq_known: u32,
    /// Whether the kernel shows its addresses in recorded stacks, as a number (0 or 1).
    kernel_shown: u32,
    calls: u32,
    samplers: u32,
    /// The number of perf events and links that call the BPF programs that record stacks.
    callers: u32,
    reason_len: u32,
    reason: [u8; 512],
}

impl Reply {
    /// Makes the reply that the BPF programs are attached and have these properties.
    pub fn attached(parts: Parts) -> Reply {
        let callers = parts.callers.unwrap_or(0);
        Reply {
            attached: 1,
            raw: parts.raw.into(),
            irq_known: parts.irq_known.into(),
            kernel_shown: parts.kernel_shown.into(),
            calls: parts.calls.into(),
            samplers: parts.callers.is_some().into(),
            callers: u32::try_from(callers).unwrap_or(u32::MAX),
            ..Reply::empty()
        }
    }

    /// Makes the reply that the BPF programs are not attached for this reason. A long reason is cut.
    pub fn failed(reason: &str) -> Reply {
        let mut reply = Reply::empty();
        for (place, byte) in reply.reason.iter_mut().zip(reason.bytes()) {
            *place = byte;
            reply.reason_len += 1;
        }
        reply
    }

    /// Creates an empty reply about BPF programs, which is filled by receiving one from the loader.
    pub fn empty() -> Reply {
        Reply::new_zeroed()
    }

    /// The properties of the attached BPF programs, or the reason why the programs are not attached.
    pub fn read(&self) -> Result<Parts, String> {
        if self.attached == 1 {
            return Ok(Parts {
                raw: self.raw != 0,
                kernel_shown: self.kernel_shown != 0,
                irq_known: self.irq_known != 0,
                callers: (self.samplers != 0).then_some(self.callers as usize),
                calls: self.calls != 0,
            });
        }
        let reason = self.reason.get(..self.reason_len as usize);
        Err(String::from_utf8_lossy(reason.unwrap_or_default()).into_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GIB: u64 = 1 << 30;

    fn settings() -> Settings {
        Settings {
            all: false,
            cpus: vec![0, 1, 65, 1023],
            later_cpus: Some(2),
            possible_cpus: 1024,
            sched_slots: 1 << 20,
            life_ring: 1 << 22,
            argv_limit: 16 << 10,
            pid_max: 32_768,
            targets: vec![7, 4711],
            target_cgroup: Some(99),
            containers: Containers::All,
            servers: true,
            syscalls: true,
            light: true,
            stacks: Some(Sampling {
                hz: 99,
                wait_least: 1_000_000,
                ring: 1 << 20,
            }),
            count_emitted: false,
            hidden_tid: 0,
            keep_others: false,
        }
    }

    const NONE: Living = Living {
        memory: 0,
        recordings: 0,
    };

    #[test]
    fn settings_arrive_as_they_were() {
        let request = Request::of(&settings()).unwrap();
        let read = Request::read_from_bytes(request.as_bytes()).unwrap();
        let read = read.settings(GIB, NONE).unwrap();
        assert_eq!(format!("{read:?}"), format!("{:?}", settings()));
        let too_many = Settings {
            targets: vec![1; MOST_TARGETS + 1],
            ..settings()
        };
        assert!(Request::of(&too_many).is_none());
    }

    #[test]
    fn settings_out_of_range_are_refused() {
        let good = || Request::of(&settings()).unwrap();
        assert!(good().settings(GIB, NONE).is_ok());
        assert!(
            good().settings(16 << 20, NONE).is_err(),
            "half of the memory"
        );
        // The limits also count the running recordings of other users: the bytes of memory that these recordings use,
        // and their number.
        let living = |memory, recordings| Living { memory, recordings };
        assert!(good().settings(GIB, living(GIB / 4, 63)).is_ok());
        assert!(good().settings(GIB, living(GIB / 2, 1)).is_err());
        assert!(good().settings(GIB, living(u64::MAX, 1)).is_err());
        assert!(good().settings(GIB, living(0, 64)).is_err());
        let changes: [fn(&mut Request); 14] = [
            |request| request.magic[7] = b'0',
            |request| request.memory[1] += 64,
            |request| request.flags |= 1 << 15,
            |request| request.cpus = [0; CPU_WORDS],
            |request| request.later_cpus = u32::MAX,
            |request| request.possible_cpus = 1025,
            |request| request.sched_slots = 5000,
            |request| request.sched_slots = 1 << 31,
            |request| request.life_ring = 2048,
            |request| request.sample_hz = 10_001,
            |request| request.sample_ring = 5000,
            |request| request.pid_max = 0,
            |request| request.pid_max = PID_MAX + 1,
            |request| request.target_count = MOST_TARGETS as u32 + 1,
        ];
        for (at, change) in changes.into_iter().enumerate() {
            let mut request = good();
            change(&mut request);
            assert!(request.settings(GIB, NONE).is_err(), "change {at}");
        }
    }

    #[test]
    fn any_bytes_are_settings_or_refused() {
        let mut seed = 1u64;
        for _ in 0..2000 {
            let mut request = Request::of(&settings()).unwrap();
            let bytes = request.as_mut_bytes();
            for _ in 0..8 {
                seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                // The changed byte comes after `magic` and `memory`, because a request with another value there is
                // refused at once, as one from another version of `tr`.
                let at = 24 + (seed >> 33) as usize % 190;
                bytes[at] = (seed >> 25) as u8;
            }
            if let Ok(settings) = request.settings(GIB, NONE) {
                assert!(settings.sched_slots.is_power_of_two());
                assert!(u64::from(settings.regions()) * u64::from(settings.sched_slots) < GIB);
            }
        }
    }

    #[test]
    fn a_reply_has_the_programs_or_the_reason() {
        for callers in [None, Some(0), Some(2)] {
            let parts = Parts {
                raw: true,
                kernel_shown: true,
                irq_known: false,
                callers,
                calls: true,
            };
            assert_eq!(Reply::attached(parts).read().unwrap(), parts);
        }
        let reason = |reply: Reply| reply.read().unwrap_err();
        assert_eq!(reason(Reply::failed("why")), "why");
        assert_eq!(reason(Reply::failed(&"x".repeat(600))), "x".repeat(512));
        let mut hostile = Reply::failed("why");
        hostile.reason_len = u32::MAX;
        assert_eq!(reason(hostile), "");
    }
}
