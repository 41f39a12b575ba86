//! Tests the recorded sums of CPU time that other tasks used while followed tasks waited for the CPU: they agree with
//! the recorded switches.

#![allow(clippy::expect_used, clippy::indexing_slicing)]

mod common;

use std::collections::{BTreeMap, HashMap};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use common::{ensure, settings};
use libtest_mimic::Failed;
use tr_bpf::wire::{self, Kind, Sched};
use tr_bpf::{Record, Settings, Tracer};
use zerocopy::FromBytes;

fn main() {
    common::run(vec![
        ("sums_are_those_of_the_switches", equal),
        ("switches_of_others_are_no_events", bounded),
        ("nothing_is_summed_for_a_sleeping_task", asleep),
    ]);
}

/// Processes that are killed, with their descendants, when this value is dropped.
struct Children(Vec<Child>);

impl Children {
    /// Starts `count` shells that run this script on the first CPU alone.
    fn start(count: usize, script: &str) -> Result<Children, Failed> {
        let mut children = Children(Vec::new());
        for _ in 0..count {
            let mut command = Command::new("taskset");
            command.args(["-c", "0", "sh", "-c", script]);
            command.process_group(0);
            command.stdout(Stdio::null()).stderr(Stdio::null());
            children.0.push(command.spawn()?);
        }
        Ok(children)
    }
}

impl Drop for Children {
    fn drop(&mut self) {
        for child in &mut self.0 {
            // SAFETY: a plain system call. The child is the leader of its process group, and is not reaped yet.
            unsafe { libc::kill(-(child.id() as i32), libc::SIGKILL) };
            let _ = child.wait();
        }
    }
}

/// Starts processes that will not be followed: two loops, and a pipeline whose processes switch again and again.
fn strangers() -> Result<[Children; 2], Failed> {
    let pair = "yes x | while read line; do /bin/true; done";
    Ok([
        Children::start(2, "while :; do :; done")?,
        Children::start(1, pair)?,
    ])
}

struct Recorded {
    /// The scheduling events of the first CPU.
    events: Vec<Sched>,
    sums: Vec<wire::Others>,
    names: HashMap<u32, (u32, [u8; 16])>,
    verified: u32,
}

/// Records a followed shell that runs `script` on the first CPU, beside tasks that are not followed.
fn record(script: &str, keep_others: bool) -> Result<Recorded, Failed> {
    let strangers = strangers()?;
    let followed = Children::start(1, script)?;
    std::thread::sleep(Duration::from_millis(200));
    let mut settings = Settings {
        all: false,
        servers: false,
        keep_others,
        targets: vec![followed.0[0].id()],
        ..settings(32 << 20)
    };
    settings.life_ring = 4 << 20;
    let mut tracer = Tracer::start(&settings)?;
    tracer.snapshot()?;
    std::thread::sleep(Duration::from_millis(2_500));
    tracer.detach();
    let mut recorded = Recorded {
        events: Vec::new(),
        sums: Vec::new(),
        names: HashMap::new(),
        verified: tracer.verified().iter().map(|program| program.1).sum(),
    };
    let mut losses = 0;
    tracer.consume(|record| match record {
        Record::Sched(0, slot) => recorded.events.push(slot.event(0)),
        Record::Sched(..) => {}
        Record::Lost(..) => losses += 1,
        Record::Life(record) => {
            let (head, _) = wire::Head::read_from_prefix(record).expect("a head");
            match head.kind() {
                Kind::LIFE_OTHERS if head.cpu == 0 => {
                    let sums = wire::Others::read_from_bytes(record).expect("sums");
                    recorded.sums.push(sums);
                }
                Kind::LIFE_OUTSIDER => {
                    let task = wire::Outsider::read_from_bytes(record).expect("a name");
                    recorded.names.insert(task.tid, (task.tgid, task.comm));
                }
                Kind::LIFE_LOST => losses += 1,
                _ => {}
            }
        }
    });
    drop((strangers, followed));
    ensure(losses == 0, || format!("{losses} losses"))?;
    Ok(recorded)
}

/// The script of a shell that sleeps, computes and sleeps again, so that it often waits for the CPU.
const BUSY: &str = "while :; do sleep 0.003; i=0; while [ $i -lt 2000 ]; do i=$((i+1)); done; done";

fn equal() -> Result<(), Failed> {
    let recorded = record(BUSY, true)?;
    let switches: Vec<&Sched> = recorded
        .events
        .iter()
        .filter(|event| event.kind == wire::SchedKind::SCHED_SWITCH)
        .collect();
    ensure(recorded.sums.len() > 5, || {
        format!("{} sums", recorded.sums.len())
    })?;
    // The CPU time of each process: first by the recorded sums, then by the recorded switches. Names are not compared,
    // because a process can change its name.
    let mut processes: BTreeMap<u32, [u64; 2]> = BTreeMap::new();
    let (mut until, mut rest, mut all) = (0, 0, 0);
    for sums in &recorded.sums {
        let to = sums.head.time;
        let in_order = until <= sums.since && sums.since < to;
        ensure(in_order, || "sums that overlap".into())?;
        until = to;
        let shares = sums.shares.iter().filter(|share| share.ns > 0);
        let mut sum = sums.rest;
        for share in shares {
            sum += share.ns;
            processes.entry(share.tgid).or_default()[0] += share.ns;
        }
        ensure(sum == to - sums.since, || format!("{sum} ns of {sums:?}"))?;
        (rest, all) = (rest + sums.rest, all + sum);
        let mut last = sums.since;
        let first = switches.partition_point(|event| event.time <= sums.since);
        for switch in switches.get(first..).unwrap_or_default() {
            let task = recorded.names.get(&switch.from);
            let tgid = task.map_or(0, |(tgid, _)| *tgid);
            processes.entry(tgid).or_default()[1] += switch.time.min(to) - last;
            last = switch.time.min(to);
            if last == to {
                break;
            }
        }
    }
    // The tgid 0 stands for a share of several processes with the same name.
    let several = processes.remove(&0).unwrap_or_default()[0];
    let differ = processes
        .values()
        .map(|[sum, events]| sum.abs_diff(*events));
    let differ = differ.sum::<u64>();
    ensure(differ <= several + 2 * rest + all / 50, || {
        format!("{differ} of {all} ns differ, {rest} rest, {several} of several: {processes:?}")
    })
}

fn bounded() -> Result<(), Failed> {
    let recorded = record(BUSY, false)?;
    let followed = |event: &Sched| {
        let outside = |tid| tid == 0 || recorded.names.contains_key(&tid);
        !outside(event.from) || !outside(event.to)
    };
    let others = recorded
        .events
        .iter()
        .filter(|event| !followed(event))
        .count();
    ensure(others == 0, || format!("{others} switches of others"))?;
    ensure(!recorded.sums.is_empty(), || "no sums".into())?;
    ensure(recorded.sums.len() <= recorded.events.len(), || {
        format!(
            "{} sums, {} events",
            recorded.sums.len(),
            recorded.events.len()
        )
    })?;
    println!("{} instructions", recorded.verified);
    Ok(())
}

fn asleep() -> Result<(), Failed> {
    let recorded = record("sleep 100", false)?;
    ensure(recorded.sums.len() <= 1, || {
        format!("{} sums", recorded.sums.len())
    })
}
