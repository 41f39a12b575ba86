//! Unit tests of the causes, of the first lines and of the gate.

use super::*;
use crate::diff::machine::tests;
use crate::diff::parts::{PartTimes, Parts};
use crate::diff::{conclusion, gate, json, text, warnings};
use crate::diff::{Ask, Diff};
use tr_text::style::Style;

const STYLE: Style = Style {
    width: 80,
    color: false,
    ascii: false,
    markdown: false,
};
const MS: u64 = 1_000_000;

/// The times in ms of a made-up run: the parts of its wall time, its CPU time, the time that it would take with CPUs
/// for itself, and the CPU time of other tasks on all CPUs.
#[derive(Clone)]
struct Made {
    parts: Vec<(WallPart, u64)>,
    work: u64,
    alone: u64,
    beside: u64,
    /// Whether the run's waits for the network are for servers on this machine.
    near: bool,
}

/// A build with 2 s of work, 300 ms of waits for CPUs that its own tasks had, and 100 ms of sleep on its critical
/// path. `parts` replaces or adds parts.
fn made(parts: &[(WallPart, u64)]) -> Made {
    let mut all = vec![
        (WallPart::Work, 2000),
        (WallPart::Own, 300),
        (WallPart::Sleep, 100),
    ];
    for (part, ms) in parts {
        all.retain(|(it, _)| it != part);
        all.push((*part, *ms));
    }
    let withheld = [WallPart::Others, WallPart::Quota, WallPart::Hypervisor];
    let own = all.iter().filter(|(part, _)| !withheld.contains(part));
    Made {
        alone: own.map(|(_, ms)| ms).sum(),
        parts: all,
        work: 3500,
        beside: 0,
        near: false,
    }
}

impl Made {
    fn work(mut self, ms: u64) -> Made {
        self.work = ms;
        self
    }

    fn near(mut self) -> Made {
        self.near = true;
        self
    }

    fn beside(mut self, ms: u64) -> Made {
        self.beside = ms;
        self
    }

    /// The given number of runs of this build, each a ten-thousandth longer than the one before.
    fn runs(&self, count: u64) -> Vec<Run> {
        let run = |at: u64| {
            let ns = |ms: u64| ms * MS + ms * at * 100;
            let parts: Vec<(WallPart, u64)> =
                self.parts.iter().map(|(it, ms)| (*it, ns(*ms))).collect();
            let wall: u64 = parts.iter().map(|(_, ns)| ns).sum();
            let mut run = tests::run([1, 1, 0, 0]);
            let times = tr_analyze::model::Times {
                on_cpu: ns(self.work),
                ..Default::default()
            };
            run.figures = super::super::run::Figures::new(wall, &times, None, None);
            run.machine.work = Some(ns(self.work));
            run.machine.loads = [(Load::Others, ns(self.beside))].into();
            let times: PartTimes = parts.into_iter().collect();
            run.parts = Some(Parts {
                names: [("md5sum".into(), times.get(WallPart::Others))].into(),
                waits: [(WallPart::Disk, 40)].into(),
                near: if self.near {
                    times.get(WallPart::Network)
                } else {
                    0
                },
                alone: ns(self.alone),
                times,
                ..Parts::default()
            });
            run
        };
        (0..count).map(run).collect()
    }
}

/// The comparison of two builds with this number of runs each, and with a gate of 10 %.
fn diff(base: &Made, new: &Made, runs: u64) -> Diff {
    compare(base.runs(runs), new.runs(runs), Figure::Wall, false)
}

fn compare(base: Vec<Run>, new: Vec<Run>, gate: Figure, strict: bool) -> Diff {
    let ask = Ask {
        top: 9,
        least: 1,
        gate: Some((gate, 10.0)),
        strict,
    };
    crate::diff::compare(base, new, ask)
}

fn causes(diff: &Diff) -> Vec<DifferenceCause> {
    diff.causes.shares.iter().map(|share| share.cause).collect()
}

/// Whether the gate fails the build; `None` if the gate cannot judge the build.
fn fails(diff: &Diff) -> Option<bool> {
    gate::judge(diff).unwrap().ok().map(|gate| gate.failed())
}

#[test]
fn others_on_the_new_side_are_the_runner() {
    // In the second case, the same work takes 11 % more CPU time, because other tasks share cores and caches with it.
    let base = made(&[]);
    for work in [3500, 3885] {
        let new = made(&[
            (WallPart::Work, 2000 * work / 3500),
            (WallPart::Others, 5500),
        ]);
        let new = new.work(work).beside(12_000);
        for runs in [1, 2, 4] {
            let diff = diff(&base, &new, runs);
            let first = conclusion::sentence(&diff).into_short().0;
            assert!(first.ends_with(": the runner, not your change"), "{first}");
            let second = conclusion::explanation(&diff).unwrap();
            assert!(
                second.starts_with("Other tasks +5.50 s (md5sum +5.50 s)"),
                "{second}"
            );
            let beside = second.contains("as tasks beside it can make it");
            assert_eq!(beside, work > 3500, "{second}");
            assert_eq!(fails(&diff), Some(false), "{runs} a side");
            let text = text::page(&diff, &STYLE).text(&STYLE);
            let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
            let said = if work > 3500 {
                "passed: the build's own time +9.2 %, not more than 10 %; wall time +238.3 %"
            } else {
                "passed: the build's own time +0.0 %, not more than 10 %; wall time +229.2 %"
            };
            assert!(text.contains(said), "{text}");
            let strict = compare(base.runs(runs), new.runs(runs), Figure::Wall, true);
            assert_eq!(fails(&strict), Some(true));
        }
    }
    // Here the base is the busy side, so the machine became quieter.
    let busy = made(&[(WallPart::Others, 5500)]).beside(12_000);
    let first = conclusion::sentence(&diff(&busy, &base, 4)).into_short().0;
    assert!(
        first.starts_with("Faster: ") && first.ends_with(": the runner, not your change"),
        "{first}"
    );
}

#[test]
fn cpu_time_that_neighbours_may_cost_is_no_proof() {
    let base = made(&[]);
    let new = |work: u64| made(&[(WallPart::Work, 2000 * work / 3500)]).work(work);
    let whose = |new: &Made| diff(&base, new, 4).causes.whose();
    // Three new builds: beside a task that spins on another CPU; without other tasks; and with a growth of the CPU time
    // that is larger than other tasks can cause.
    assert_eq!(whose(&new(4300).beside(2000)), Some(Whose::Unclear));
    assert_eq!(whose(&new(4300)), Some(Whose::Build));
    assert_eq!(whose(&new(6300).beside(2000)), Some(Whose::Build));
    let unclear = diff(&base, &new(4300).beside(2000), 4);
    assert_eq!(fails(&unclear), None);
    let first = conclusion::sentence(&unclear).into_short().0;
    assert!(
        first.ends_with(
            ": the runner, perhaps also the build: CPU time +23 %, p = 0.029, as tasks beside it can make it"
        ),
        "{first}"
    );
    let gate = |beside| {
        let new = new(4300).beside(beside);
        fails(&compare(base.runs(4), new.runs(4), Figure::OnCpu, false))
    };
    assert_eq!((gate(2000), gate(0)), (None, Some(true)));
}

/// Other tasks had the CPUs of the base, so the wall time falls although the build became slower.
#[test]
fn a_quieter_machine_excuses_no_slower_build() {
    let busy = made(&[(WallPart::Others, 5500)]).beside(12_000);
    let slower = [
        (made(&[(WallPart::Sleep, 1600)]), "sleep +1.50 s (+62 %"),
        (
            made(&[(WallPart::Work, 3000)]).work(4500),
            "CPU time of its own +1.00 s (+42 %",
        ),
        (
            made(&[(WallPart::Own, 800)]),
            "work that runs one after the other +500 ms (+21 %",
        ),
        // The other tasks no longer share cores with the build, so its work takes less CPU time.
        (
            made(&[(WallPart::Own, 800)]).work(3000),
            "work that runs one after the other +500 ms (+21 %",
        ),
    ];
    for (new, said) in slower {
        let diff = diff(&busy, &new, 4);
        let first = conclusion::sentence(&diff).into_short().0;
        assert!(first.starts_with("Faster: "), "{first}");
        let but = format!("the runner, not your change; but {said}");
        assert!(first.contains(&but), "{first}");
        assert_eq!(fails(&diff), Some(true), "{first}");
    }
    // A new build that is as fast as the base passes the gate, also on a runner with a slower disk.
    let disk = made(&[(WallPart::Disk, 500)]);
    for new in [made(&[]), disk] {
        let diff = diff(&busy, &new, 4);
        assert_eq!(
            fails(&diff),
            Some(false),
            "{}",
            conclusion::sentence(&diff).into_short().0
        );
    }
    // Here the build became faster, while other tasks took more of the CPUs.
    let faster = made(&[(WallPart::Others, 5500), (WallPart::Work, 1000)])
        .work(2500)
        .beside(12_000);
    let first = conclusion::sentence(&diff(&made(&[]), &faster, 4))
        .into_short()
        .0;
    let but = "not your change; but CPU time of its own −1.00 s";
    assert!(
        first.starts_with("Slower: ") && first.contains(but),
        "{first}"
    );
}

/// Other tasks took most of the new build's wall time. So a build that needs twice the CPU time explains only little of
/// the wall time's difference, but it does not pass the gate.
#[test]
fn a_busier_machine_excuses_no_build_that_works_twice_as_long() {
    let busy = |work| {
        let new = made(&[
            (WallPart::Work, 2000 * work / 3500),
            (WallPart::Others, 30_000),
        ]);
        new.work(work).beside(60_000)
    };
    for runs in [1, 2, 4] {
        let diff = diff(&made(&[]), &busy(7000), runs);
        let first = conclusion::sentence(&diff).into_short().0;
        assert!(
            first.ends_with("the build (more CPU time of its own) and the runner"),
            "{first}"
        );
        assert_eq!(fails(&diff), Some(true), "{runs} a side: {first}");
        // Shared cores and caches can make the CPU time of a build grow as much as here, so the gate cannot judge.
        let doubtful = self::diff(&made(&[]), &busy(4800), runs);
        assert_eq!(fails(&doubtful), None, "{runs} a side");
    }
}

#[test]
fn what_others_take_of_more_work_is_no_cause() {
    // Other tasks have half of the CPUs while the base runs, and also while the new build runs.
    let busy = |work: u64| {
        made(&[(WallPart::Work, work), (WallPart::Others, work + 300)]).work(work + 1500)
    };
    let both = diff(&busy(2000), &busy(3500), 4);
    assert_eq!(causes(&both), [DifferenceCause::Work]);
    assert_eq!(both.causes.whose(), Some(Whose::Build));
    assert_eq!(fails(&both), Some(true));
    // For each second of the build's work, other tasks take more time from the new build than from the base.
    let busier = made(&[(WallPart::Work, 3500), (WallPart::Others, 7000)]).work(6500);
    let both = diff(&busy(2000), &busier, 4);
    assert_eq!(
        causes(&both),
        [DifferenceCause::Others, DifferenceCause::Work]
    );
    // Other tasks took 7.0 s, of which 3.8 s are in proportion to the build's work.
    let others = both.causes.shares[0].ns;
    assert!(
        others.abs_diff(3200 * i128::from(MS)) < 10 * u128::from(MS),
        "{others}"
    );
    assert_eq!(both.causes.whose(), Some(Whose::Both));
    let first = conclusion::sentence(&both).into_short().0;
    assert!(
        first.contains(": the build (more CPU time of its own) and the runner"),
        "{first}"
    );
}

/// A quota of 30 % of a CPU stops a build in proportion to the CPU time of all its tasks, on the critical path or not.
#[test]
fn what_a_quota_takes_of_more_work_is_no_cause() {
    let base = made(&[(WallPart::Work, 442), (WallPart::Quota, 1740)]).work(662);
    let new = |quota| made(&[(WallPart::Work, 729), (WallPart::Quota, quota)]).work(1260);
    let of = |new: &Made| causes(&diff(&base, new, 4));
    assert_eq!(of(&new(3311)), [DifferenceCause::Work]);
    assert_eq!(
        of(&new(6622)),
        [DifferenceCause::Quota, DifferenceCause::Work]
    );
}

/// Other tasks took 16 ms from the base, which did 5 ms of work, and 23 ms from the new build, which did 97 ms of work.
/// At the base's rate, other tasks would have taken 310 ms from the new build. The difference of 287 ms is nevertheless
/// not a gain from other tasks, because other tasks took more time from the new build than from the base.
#[test]
fn others_give_no_more_back_than_they_had() {
    let base = made(&[
        (WallPart::Work, 5),
        (WallPart::Own, 0),
        (WallPart::Others, 16),
        (WallPart::Sleep, 250),
    ]);
    let new = |others| {
        let parts = [
            (WallPart::Work, 97),
            (WallPart::Own, 0),
            (WallPart::Others, others),
            (WallPart::Sleep, 9),
        ];
        made(&parts).work(97)
    };
    let of = |others| {
        let diff = diff(&base.clone().work(5), &new(others), 4);
        let shares = diff.causes.shares.iter();
        let others = shares.filter(|share| share.cause == DifferenceCause::Others);
        others.map(|share| share.ns / i128::from(MS)).sum::<i128>()
    };
    assert_eq!((of(23), of(16)), (0, 0));
    // Other tasks took nothing from the new build, so the whole time that they took from the base counts as gained.
    let base = made(&[(WallPart::Others, 900), (WallPart::Sleep, 900)]);
    let diff = diff(&base, &made(&[(WallPart::Work, 3800)]).work(5300), 4);
    let mut withheld = withheld(diff.sides());
    assert_eq!(withheld.next().map(|it| it.ns / i128::from(MS)), Some(-900));
}

#[test]
fn each_part_is_a_cause() {
    let base = made(&[]);
    let of = |new: &Made| {
        let diff = diff(&base, new, 4);
        (causes(&diff), diff.causes.whose())
    };
    for (part, cause) in [
        (WallPart::Sleep, DifferenceCause::Sleep),
        (WallPart::Other, DifferenceCause::Other),
        (WallPart::Disk, DifferenceCause::Disk),
        (WallPart::Memory, DifferenceCause::Memory),
        (WallPart::Network, DifferenceCause::Network),
        (WallPart::Outside, DifferenceCause::Outside),
    ] {
        let whose = match part {
            // The build's sleeps are its own, and so are its waits for memory if its use of memory is not known.
            WallPart::Memory | WallPart::Sleep | WallPart::Other => Whose::Build,
            // The tasks outside of the recording may belong to the build.
            WallPart::Outside => Whose::Unclear,
            _ => Whose::Machine,
        };
        assert_eq!(of(&made(&[(part, 1000)])), (vec![cause], Some(whose)));
    }
    for (part, cause) in [
        (WallPart::Quota, DifferenceCause::Quota),
        (WallPart::Hypervisor, DifferenceCause::Hypervisor),
    ] {
        assert_eq!(
            of(&made(&[(part, 1000)])),
            (vec![cause], Some(Whose::Machine))
        );
    }
    // The recorder took longer to start, or lost events. Neither is a cause.
    for part in [WallPart::Around, WallPart::Unknown] {
        assert_eq!(of(&made(&[(part, 1000)])), (vec![], None));
    }
    // The CPU time is the same, but more of it is on the critical path.
    assert_eq!(
        of(&made(&[(WallPart::Work, 3000)])),
        (vec![DifferenceCause::Order], Some(Whose::Build))
    );
    assert_eq!(
        of(&made(&[(WallPart::Work, 3000)]).work(4500)),
        (vec![DifferenceCause::Work], Some(Whose::Build))
    );
}

/// Distinguishes a slower disk from a build that uses the disk more.
#[test]
fn more_waits_for_a_disk_are_the_builds() {
    let base = made(&[(WallPart::Disk, 200)]);
    let slow = made(&[(WallPart::Disk, 1200)]).runs(4);
    let whose = |new: Vec<Run>| {
        compare(base.runs(4), new, Figure::Wall, false)
            .causes
            .whose()
    };
    assert_eq!(whose(slow.clone()), Some(Whose::Machine));
    let mut more = slow.clone();
    for run in &mut more {
        let parts = run.parts.as_mut().unwrap();
        parts.waits.insert(WallPart::Disk, 190);
    }
    assert_eq!(whose(more), Some(Whose::Build));
    let mut bytes = (base.runs(4), slow);
    for (at, run) in bytes.0.iter_mut().chain(&mut bytes.1).enumerate() {
        let read = if at < 4 { 100 << 20 } else { 300 << 20 };
        run.demands.insert(Demand::Read, read);
    }
    let diff = compare(bytes.0, bytes.1, Figure::Wall, false);
    assert_eq!(diff.causes.whose(), Some(Whose::Build));
    let second = conclusion::explanation(&diff).unwrap();
    assert!(
        second.starts_with("Waits for disks and files +1.00 s (+200 MiB read from disks)"),
        "{second}"
    );
}

/// Makes half of the CPU time of the first `count` runs unknown, as if these runs had lost events.
fn unsure(mut runs: Vec<Run>, count: usize) -> Vec<Run> {
    for run in runs.iter_mut().take(count) {
        let on_cpu = run.figures.get(Figure::OnCpu).unwrap() / 2;
        let times = tr_analyze::model::Times {
            on_cpu,
            unknown: on_cpu,
            ..Default::default()
        };
        let wall = run.figures.get(Figure::Wall).unwrap();
        run.figures = super::super::run::Figures::new(wall, &times, None, None);
        run.machine.work = Some(on_cpu);
    }
    runs
}

/// A run with much unknown time is left out when the causes are found. If this run were included, the longer sleep of
/// the other runs would not be found, or the difference would be attributed to another order of the work.
#[test]
fn unknown_waits_are_no_order() {
    let unsure = [(WallPart::Unknown, 800), (WallPart::Sleep, 100)];
    let mut new = made(&[(WallPart::Sleep, 900)]).runs(3);
    new.extend(made(&unsure).runs(1));
    let diff = compare(made(&[]).runs(4), new, Figure::Wall, false);
    assert_eq!(causes(&diff), [DifferenceCause::Sleep]);
    let warned = warnings::warnings(&diff).join("\n");
    assert!(warned.contains("800 ms of its time is unknown"), "{warned}");
    // If too few runs would remain without the runs that have much unknown time, no run is left out.
    let new = made(&unsure).runs(1);
    let diff = compare(made(&[]).runs(1), new, Figure::Wall, false);
    assert_eq!((causes(&diff), diff.set_aside.len()), (vec![], 0));
}

/// A longer time is attributed to the order in which the work ran only if both builds are known to have the same amount
/// of work.
#[test]
fn unknown_work_is_no_order() {
    let base = made(&[]);
    let doubled = made(&[(WallPart::Work, 4000)]).work(7000);
    let of = |base: (u64, usize), count: u64| {
        let base = unsure(self::made(&[]).runs(base.0), base.1);
        let diff = compare(base, doubled.runs(count), Figure::Wall, false);
        (causes(&diff), diff)
    };
    // The CPU time is known for four runs on each side, then for three against four, then for one against one.
    let (named, diff) = of((5, 1), 4);
    assert_eq!(
        (named, fails(&diff)),
        (vec![DifferenceCause::Work], Some(true))
    );
    let warned = warnings::warnings(&diff).join("\n");
    assert!(warned.contains("it is left out of the causes"), "{warned}");
    assert_eq!(of((4, 1), 4).0, [DifferenceCause::Work]);
    let (named, diff) = of((2, 1), 1);
    assert_eq!((named, fails(&diff)), (vec![], Some(true)));
    let first = conclusion::sentence(&diff).into_short().0;
    assert!(
        first.contains(": too much of its CPU time is unknown"),
        "{first}"
    );
    let warned = warnings::warnings(&diff).join("\n");
    assert!(
        warned.contains("needs more CPU time is not known"),
        "{warned}"
    );
    // Other tasks had the CPUs for longer, and the build's CPU time is not known.
    let busy = made(&[(WallPart::Others, 5500)]).runs(4);
    let diff = compare(base.runs(4), unsure(busy, 4), Figure::Wall, false);
    assert_eq!(causes(&diff), [DifferenceCause::Others]);
    assert_eq!(diff.causes.whose(), Some(Whose::Unclear));
    assert_eq!(fails(&diff), None);
    let first = conclusion::sentence(&diff).into_short().0;
    assert!(
        first
            .ends_with(": the runner, perhaps also the build: too much of its CPU time is unknown"),
        "{first}"
    );
}

/// A difference of CPU time that is no larger than its spread may still explain the whole difference of the wall time.
#[test]
fn work_within_its_spread_is_not_equal() {
    let runs = |work: &[u64], path: u64| -> Vec<Run> {
        let one = |work: &u64| {
            let all = made(&[(WallPart::Work, path)]).work(*work);
            all.runs(1).remove(0)
        };
        work.iter().map(one).collect()
    };
    let base = || runs(&[3000, 3400, 3700, 4900], 2000);
    let of = |new: Vec<Run>| causes(&compare(base(), new, Figure::Wall, false));
    let noisy = runs(&[3600, 4500, 4700, 6100], 3000);
    assert_eq!(of(noisy), []);
    let equal = runs(&[3100, 3400, 3800, 4800], 3000);
    assert_eq!(of(equal), [DifferenceCause::Order]);
}

/// Other tasks make the wall times of the runs differ so much that the growth of a slower build is inside the spread.
/// The gate nevertheless fails the slower build, and passes a build that is not slower.
#[test]
fn the_gate_judges_the_time_on_cpus_of_its_own() {
    // Other tasks make the wall times of the runs on each side lie far apart.
    let scattered = |side: &Made| {
        let mut runs = side.runs(4);
        for (run, ms) in runs.iter_mut().zip([100, 4000, 900, 6000]) {
            let parts = run.parts.as_mut().unwrap();
            let wall = run.figures.get(Figure::Wall).unwrap() + ms * MS;
            parts.times.add(WallPart::Others, ms * MS);
            let times = tr_analyze::model::Times {
                on_cpu: run.machine.work.unwrap(),
                ..Default::default()
            };
            run.figures = super::super::run::Figures::new(wall, &times, None, None);
        }
        runs
    };
    let (base, equal) = (made(&[]), made(&[]));
    let slower = made(&[(WallPart::Work, 2400)]).work(3900);
    let judged = |new: &Made, strict: bool| {
        let diff = compare(scattered(&base), scattered(new), Figure::Wall, strict);
        gate::gate_words(&diff).unwrap()
    };
    let (text, failed) = judged(&slower, false);
    let words = "failed: the build's own time +16.7 %, more than 10 %; wall time";
    assert!(failed && text.starts_with(words), "{text}");
    assert!(text.ends_with("inside the spread"), "{text}");
    assert!(!judged(&equal, false).1);
    // A strict gate judges the wall time. The difference of the wall times is inside their spread.
    assert!(!judged(&slower, true).1);
}

/// A server that was started before the recording may belong to the build or to somebody else. So waits for this server
/// are attributed to nobody.
#[test]
fn waits_for_servers_of_this_machine_are_nobodys() {
    let base = made(&[(WallPart::Network, 100), (WallPart::Outside, 100)]).near();
    let of = |new: &Made| {
        let diff = diff(&base, new, 4);
        let first = conclusion::sentence(&diff).into_short().0;
        let (_, cause) = first.split_once("): ").unwrap_or_default();
        (cause.to_owned(), diff.causes.whose(), fails(&diff))
    };
    let server = "longer waits for the network: the other end's, or your change's";
    let daemon = "longer waits for tasks that are not recorded: theirs, or your change's";
    let network = |ms| made(&[(WallPart::Network, ms), (WallPart::Outside, 100)]);
    let outside = |ms| made(&[(WallPart::Outside, ms), (WallPart::Network, 100)]);
    let unclear = Some(Whose::Unclear);
    assert_eq!(of(&network(900).near()), (server.into(), unclear, None));
    assert_eq!(of(&outside(900).near()), (daemon.into(), unclear, None));
    let gate = gate::gate_words(&diff(&base, &outside(900).near(), 4)).unwrap();
    let why = format!("the build's own time +30.8 % ({daemon}): --fail-over cannot judge it");
    assert_eq!(gate, (why, true));
    // A growth within the limit passes, whoever is responsible.
    assert_eq!(of(&outside(300).near()).2, Some(false));
    // The waits are for a server on another machine.
    let far = of(&network(900));
    assert_eq!(far.1, Some(Whose::Machine), "{}", far.0);
    // If the new build waits for the network more often than the base, the build is responsible.
    let mut more = network(900).near().runs(4);
    for run in &mut more {
        run.parts
            .as_mut()
            .unwrap()
            .waits
            .insert(WallPart::Network, 5);
    }
    let whose = compare(base.runs(4), more, Figure::Wall, false);
    assert_eq!(whose.causes.whose(), Some(Whose::Build));
    // A sleep of 800 ms alone makes the build slower by more than the gate's limit. A sleep of 340 ms does not.
    let slept = |ms| {
        let parts = [
            (WallPart::Outside, 900),
            (WallPart::Sleep, ms),
            (WallPart::Network, 100),
        ];
        of(&made(&parts).near())
    };
    let both = format!("the build (longer sleep); {daemon}");
    assert_eq!(slept(800), (both, Some(Whose::Build), Some(true)));
    assert_eq!(slept(340).2, None);
    // The build waited longer for tasks that are not recorded, and other tasks had the CPUs for longer.
    let parts = [
        (WallPart::Outside, 900),
        (WallPart::Others, 900),
        (WallPart::Network, 100),
    ];
    let of_all = of(&made(&parts).near());
    assert_eq!(of_all, (format!("the runner; {daemon}"), unclear, None));
}

/// Distinguishes a runner with less memory from a build that needs more memory.
#[test]
fn waits_for_memory_are_in_the_first_line() {
    let first = |new: u64| {
        let mut sides = [made(&[]).runs(4), made(&[(WallPart::Memory, 1200)]).runs(4)];
        for (run, resident) in sides
            .iter_mut()
            .zip([1 << 30, new])
            .flat_map(|(runs, it)| runs.iter_mut().map(move |run| (run, it)))
        {
            run.demands.insert(Demand::Resident, resident);
        }
        let [base, new] = sides;
        conclusion::sentence(&compare(base, new, Figure::Wall, false))
            .into_short()
            .0
    };
    let same = first(1 << 30);
    assert!(
        same.ends_with(": the runner's memory, not your change"),
        "{same}"
    );
    let more = first(3 << 30);
    assert!(more.ends_with(": longer waits for memory"), "{more}");
}

#[test]
fn cpu_time_is_shown_where_the_wall_time_does_not_differ() {
    // The wall times vary by the time that other tasks take.
    let noisy = |work: u64, runs: &[u64]| -> Vec<Run> {
        let one = |others: &u64| {
            let all =
                made(&[(WallPart::Work, work), (WallPart::Others, *others)]).work(work + 1500);
            all.runs(1).remove(0)
        };
        runs.iter().map(one).collect()
    };
    let others = [300, 2500, 900, 4000];
    let (base, new) = (noisy(1500, &others), noisy(2500, &[3000, 20, 2000, 500]));
    let diff = compare(base, new, Figure::Wall, false);
    assert_eq!(
        diff.whole(Figure::Wall).unwrap().verdict,
        SpreadVerdict::Inside
    );
    let first = conclusion::sentence(&diff).into_short().0;
    assert!(
        first.starts_with("No difference of the wall time beyond normal variation: "),
        "{first}"
    );
    assert!(first.contains("; but CPU time +33 %, p = 0.029"), "{first}");
    assert_eq!(causes(&diff), [DifferenceCause::Work]);
    let (base, again) = (noisy(1500, &others), noisy(1500, &[3000, 20, 2000, 500]));
    let first = conclusion::sentence(&compare(base, again, Figure::Wall, false))
        .into_short()
        .0;
    assert!(
        first.starts_with("No difference beyond normal variation: "),
        "{first}"
    );
}

#[test]
fn the_parts_and_the_rest_are_shown() {
    let mut base = made(&[(WallPart::Others, 700)]).runs(4);
    base.extend(made(&[(WallPart::Disk, 900)]).runs(1));
    let new = made(&[(WallPart::Others, 3700)]).runs(4);
    let diff = compare(base, new, Figure::Wall, false);
    let text = text::page(&diff, &STYLE).text(&STYLE);
    assert!(text.contains("run-queue wait: other tasks"), "{text}");
    let json: serde_json::Value = serde_json::from_str(&json::render(&diff).unwrap()).unwrap();
    assert_eq!(json["whose"], "machine");
    assert_eq!(json["causes"][0]["cause"], "others");
    let others = json["parts"]["others"]["base"].as_u64().unwrap();
    assert!(others.abs_diff(700 * MS) < MS, "{others}");
    assert_eq!(
        (
            json["gate"]["passed"].clone(),
            json["gate"]["runner"].clone()
        ),
        (true.into(), true.into())
    );
}

#[test]
fn another_cpu_model_leaves_the_code_in_doubt() {
    let on = |made: Made, model: &str| {
        let mut runs = made.runs(4);
        runs.iter_mut().for_each(|run| run.cpu = model.into());
        runs
    };
    let slower = |times: u64| made(&[(WallPart::Work, 2000 * times / 10)]).work(3500 * times / 10);
    let cases = [
        (13, "A", Whose::Build, Some(true)),
        (13, "", Whose::Build, Some(true)),
        (13, "B", Whose::Unclear, None),
        // No CPU model in a fleet of runners is three times as slow as another model.
        (30, "B", Whose::Build, Some(true)),
    ];
    for (times, model, whose, fail) in cases {
        let (base, new) = (on(made(&[]), "A"), on(slower(times), model));
        let diff = compare(base, new, Figure::Wall, false);
        let sentence = conclusion::sentence(&diff).into_short().0;
        assert_eq!(diff.causes.whose(), Some(whose), "{model} {sentence}");
        assert_eq!(fails(&diff), fail, "{model} {sentence}");
        let doubt = sentence.contains("as another CPU model can make it");
        assert_eq!(doubt, whose == Whose::Unclear, "{sentence}");
    }
}

#[test]
fn another_number_of_cpus_is_not_the_builds() {
    let on = |made: Made, cpus: usize| {
        let mut runs = made.runs(4);
        runs.iter_mut().for_each(|run| run.cpus = cpus);
        runs
    };
    let of = |new: Made, cpus, figure| compare(on(made(&[]), 2), on(new, cpus), figure, false);
    let serial = || made(&[(WallPart::Work, 3000)]);
    let judge = |new, cpus| {
        let diff = of(new, cpus, Figure::Wall);
        let first = conclusion::sentence(&diff).into_short().0;
        let (_, cause) = first.split_once("): ").unwrap_or_default();
        (cause.to_owned(), diff.causes.whose(), fails(&diff))
    };
    let (order, build) = ("less of its work runs at once", Some(Whose::Build));
    assert_eq!(judge(serial(), 2), (order.into(), build, Some(true)));
    let fewer = format!("the runner, perhaps also the build: {order}, on 1 CPU instead of 2");
    let unclear = Some(Whose::Unclear);
    assert_eq!(judge(serial(), 1), (fewer, unclear, None));
    // On more CPUs, more of the work could run at once. If nevertheless less of it runs at once, the build is
    // responsible.
    assert_eq!(judge(serial(), 4), (order.into(), build, Some(true)));
    // More CPUs can change the CPU time a little, because fewer tasks share a core, but cannot double it.
    let (cause, whose, fail) = judge(made(&[(WallPart::Work, 2600)]).work(4500), 4);
    assert!(cause.ends_with(", on 4 CPUs instead of 2"), "{cause}");
    assert_eq!((whose, fail), (unclear, None));
    let doubled = made(&[(WallPart::Work, 4000)]).work(7000);
    let (_, whose, fail) = judge(doubled, 1);
    assert_eq!((whose, fail), (build, Some(true)));
    // If the build sleeps longer, the build is responsible on any number of CPUs.
    let (_, whose, fail) = judge(made(&[(WallPart::Sleep, 900)]), 1);
    assert_eq!((whose, fail), (build, Some(true)));
    let gate = gate::gate_words(&of(serial(), 1, Figure::Wall)).unwrap().0;
    assert!(
        gate.ends_with(", on 1 CPU instead of 2: --fail-over cannot judge it"),
        "{gate}"
    );
    // Because of other tasks, the wall times scatter so much that no difference between them is found. Other figures do
    // differ.
    let noisy = |others: [u64; 4], work: u64, cpus: usize| -> Vec<Run> {
        let one = |others| {
            on(
                made(&[(WallPart::Others, others), (WallPart::Work, work)]),
                cpus,
            )
            .remove(0)
        };
        others.map(one).into()
    };
    let (base, new) = (
        noisy([9, 8000, 800, 4000], 2000, 2),
        noisy([20, 5000, 300, 2000], 3000, 1),
    );
    let first = conclusion::sentence(&compare(base, new, Figure::Wall, false))
        .into_short()
        .0;
    assert!(
        first.contains("; but less of its work runs at once, on 1 CPU instead of 2 (+42 %"),
        "{first}"
    );
}

#[test]
fn other_methods_are_not_compared() {
    let base = made(&[]).runs(1);
    let mut new = made(&[(WallPart::Others, 5500)]).runs(1);
    for run in &mut new {
        run.method = "ptrace".into();
    }
    let diff = compare(base.clone(), new.clone(), Figure::Wall, false);
    assert_eq!((causes(&diff), fails(&diff)), (Vec::new(), None));
    assert!(conclusion::sentence(&diff)
        .into_short()
        .0
        .ends_with("; not the same method: bpf and ptrace"));
    assert!(diff.whole(Figure::OnCpu).is_some() && diff.whole(Figure::RunQueue).is_none());
    // The method sudo attaches the same BPF programs as the method bpf.
    new[0].method = "sudo".into();
    let diff = compare(base, new, Figure::Wall, false);
    assert_eq!(causes(&diff), [DifferenceCause::Others]);
}
