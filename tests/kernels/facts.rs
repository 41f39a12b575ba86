//! Tests facts about the machine (network, disks, memory and others) in recordings of `facts.sh` in several kernels: if
//! the kernel has the tracepoints, the facts are recorded and equal the kernel's own counts; otherwise the recording
//! says what is missing.

use std::collections::BTreeSet;
use std::path::Path;

use tr_analyze::memory::MemoryKind;
use tr_analyze::model::Analysis;
use tr_analyze::{analyze, Options};
use tr_format::counters::Counter;
use tr_format::meta::Extra;
use tr_format::reader::Trace;
use tr_format::source::Source;
use tr_insight::resources::calls::name_of;

/// Each fact with the tracepoints that the kernel must have for it, and the beginning of the message for a kernel that
/// lacks one of the tracepoints.
const FACTS: [(Option<Extra>, &[&str], &str); 7] = [
    (
        Some(Extra::Network),
        &["sock:inet_sock_set_state"],
        "TCP connections: ",
    ),
    (
        Some(Extra::Dns),
        &["net:net_dev_queue", "net:netif_receive_skb"],
        "DNS queries: ",
    ),
    (
        Some(Extra::Block),
        &["block:block_rq_issue", "block:block_rq_complete"],
        "requests to block devices: ",
    ),
    (
        Some(Extra::Memory),
        &["vmscan:mm_vmscan_direct_reclaim_begin"],
        "direct reclaim of memory: ",
    ),
    (
        None,
        &["vmscan:mm_vmscan_memcg_reclaim_begin"],
        "reclaim of a cgroup's memory: ",
    ),
    (None, &["oom:mark_victim"], "kills for lack of memory: "),
    (
        Some(Extra::SystemCalls),
        &["raw_syscalls:sys_enter", "raw_syscalls:sys_exit"],
        "system calls: ",
    ),
];

/// Compares a recording with all that is known about it, and returns a line of figures.
pub fn check(path: &Path) -> String {
    let file = std::fs::File::open(path).expect("a file");
    let trace = Trace::open(Source::file(file).unwrap()).expect("a trace");
    let text = |extension| std::fs::read_to_string(path.with_extension(extension)).expect("a text");
    let (events, told) = (text("events"), text("told"));
    let events: BTreeSet<&str> = events.lines().collect();
    let count = |name: &str| {
        let mut lines = told.lines().filter_map(|line| line.strip_prefix(name));
        let count = lines
            .next()
            .and_then(|count| count.trim().parse::<u64>().ok());
        count.unwrap_or_else(|| panic!("{name} in {told}"))
    };
    let meta = trace.meta();
    let name = path.display();
    for (extra, tracepoints, words) in FACTS {
        let known = tracepoints
            .iter()
            .all(|tracepoint| events.contains(tracepoint));
        let named = meta
            .missing
            .iter()
            .any(|reason| reason.to_string().starts_with(words));
        assert_eq!(known, !named, "{name}: {words}{:?}", meta.missing);
        if let Some(extra) = extra {
            assert_eq!(meta.has(extra), known, "{name}: {extra:?}");
        }
    }
    let analysis = analyze(&trace, &Options::default());
    assert!(analysis.quality.lost.is_empty(), "{name}");
    let network = network(&analysis);
    let requests = requests(&analysis);
    assert_eq!(requests, count("requests"), "{name}: requests to loop0");
    let (kills, reclaims) = memory(&analysis);
    assert_eq!(kills, count("kills"), "{name}: kills");
    assert!(reclaims > 0, "{name}: the cgroup's memory was reclaimed");
    let calls = analysis.calls.iter();
    // `facts.sh` runs dd with bs=1, which makes about 5000 system calls.
    let writes: u64 = calls
        .filter(|call| name_of(&meta.machine, call.sum.number, call.sum.compat) == "write")
        .map(|call| call.sum.count)
        .sum();
    assert!((5000..5500).contains(&writes), "{name}: {writes} writes");
    counters(&analysis, count("pressures") > 0);
    format!(
        "{name}: {network}, {requests} requests, {kills} kills, {reclaims} reclaims, {writes} writes"
    )
}

/// Checks the lookups and connections of `dns.c`, and returns their figures.
fn network(analysis: &Analysis) -> String {
    let lookups = &analysis.network.lookups;
    let codes: Vec<Option<u8>> = lookups.iter().map(|lookup| lookup.code).collect();
    assert_eq!(codes, [Some(0), Some(3), None], "{lookups:?}");
    for it in lookups.iter().filter(|lookup| lookup.answered.is_some()) {
        let length = it.length(analysis.end);
        assert!((50_000_000..5_000_000_000).contains(&length), "{it:?}");
    }
    let name = lookups.first().map(|lookup| lookup.query.name.to_vec());
    assert_eq!(name.as_deref(), Some(&b"registry.example"[..]));
    let connections = &analysis.network.connections;
    let [one, other] = connections.as_slice() else {
        panic!("{connections:?}");
    };
    assert_eq!((one.bytes, other.bytes), (Some((1, 0)), Some((0, 1))));
    assert_eq!((one.peer, other.peer), (Some(1), Some(0)));
    "2 connections, 3 queries".into()
}

/// The number of read requests for the disk loop0.
fn requests(analysis: &Analysis) -> u64 {
    let blocks = analysis.disks.blocks.iter();
    let mine = blocks.filter(|(_, block)| &*block.name == b"loop0");
    mine.filter_map(|(_, block)| Some(block.groups.first()?.count))
        .sum()
}

/// How many tasks were killed for lack of memory, and how often tasks reclaimed memory.
fn memory(analysis: &Analysis) -> (u64, u64) {
    let mut sums = (0, 0);
    for it in &analysis.memory.events {
        match it.kind {
            MemoryKind::Killed(_) => sums.0 += 1,
            MemoryKind::Reclaimed(count, _) => sums.1 += count,
            MemoryKind::Swapped(_) => {}
        }
    }
    sums
}

/// Checks the counters that every kernel has. With `pressure`, also checks the counters of a kernel with PSI (pressure
/// stall information).
fn counters(analysis: &Analysis, pressure: bool) {
    assert!(analysis.machine.counters.len() >= 2, "start, end");
    let (_, last) = analysis.machine.counters.last().expect("a sample");
    for counter in [
        Counter::Busy,
        Counter::Iowait,
        Counter::Recorder,
        Counter::AvailableMemory,
    ] {
        assert!(last.get(counter).is_some(), "{counter:?}: {last:?}");
    }
    for counter in [Counter::CpuSome, Counter::IoSome, Counter::MemoryFull] {
        assert_eq!(
            last.get(counter).is_some(),
            pressure,
            "{counter:?}: {last:?}"
        );
    }
    let mut resident = analysis.machine.counters.iter();
    assert!(resident.any(|(_, it)| it.get(Counter::Resident).is_some()));
}
