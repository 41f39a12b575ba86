//! Puts into words the first lines of a comparison of builds: a failure, or what became slower, by how much, and who is
//! responsible.

use super::causes::{work, DifferenceCause, Doubt, Share, Whose};
use super::demands;
use super::processes::ChangeKind;
use super::run::Figure;
use super::spread::{percent, signed, Difference, SpreadVerdict};
use super::Diff;
use super::{commands, ends, methods};
use tr_insight::resources::demands::Demand;
use tr_text::phrase::Phrase;
use tr_text::units;

/// The cause of a part of the difference between two builds, in words that say whether it made the build slower
/// or faster.
fn words(share: &Share) -> &'static str {
    match (share.cause, share.ns > 0) {
        (DifferenceCause::Work, true) => "more CPU time of its own",
        (DifferenceCause::Work, false) => "less CPU time of its own",
        (DifferenceCause::Order, true) => "less of its work runs at once",
        (DifferenceCause::Order, false) => "more of its work runs at once",
        (DifferenceCause::Others, true) => "other tasks had the CPUs for longer",
        (DifferenceCause::Others, false) => "other tasks had the CPUs for less time",
        (DifferenceCause::Quota, true) => "the CPU quota stopped it for longer",
        (DifferenceCause::Quota, false) => "the CPU quota stopped it for less time",
        (DifferenceCause::Hypervisor, true) => "the hypervisor took more",
        (DifferenceCause::Hypervisor, false) => "the hypervisor took less",
        (DifferenceCause::Disk, true) => "longer waits for disks and files",
        (DifferenceCause::Disk, false) => "shorter waits for disks and files",
        (DifferenceCause::Memory, true) => "longer waits for memory",
        (DifferenceCause::Memory, false) => "shorter waits for memory",
        (DifferenceCause::Network, true) => "longer waits for the network",
        (DifferenceCause::Network, false) => "shorter waits for the network",
        (DifferenceCause::Sleep, true) => "longer sleep",
        (DifferenceCause::Sleep, false) => "shorter sleep",
        (DifferenceCause::Outside, true) => "longer waits for tasks that are not recorded",
        (DifferenceCause::Outside, false) => "shorter waits for tasks that are not recorded",
        (DifferenceCause::Other, true) => "longer waits",
        (DifferenceCause::Other, false) => "shorter waits",
    }
}

/// The words by which a part of the difference is attributed to the runner's disk, memory, network, or to the
/// runner in general.
fn not_yours(share: &Share) -> &'static str {
    match share.cause {
        DifferenceCause::Disk => "the runner's disk, not your change",
        DifferenceCause::Memory => "the runner's memory, not your change",
        DifferenceCause::Network => "the network, not your change",
        _ => "the runner, not your change",
    }
}

/// A difference between two sides in percent of the base, with its p value if there is one: `+69 %, p = 0.029`.
fn relative(judged: &Difference) -> String {
    match judged.p {
        Some(p) => format!("{}, p = {p:.3}", percent(judged)),
        None => percent(judged),
    }
}

/// The conclusion in one sentence: that a build failed, that a recording is incomplete, or the verdict on the
/// wall time with its cause and the process that changed most.
pub(super) fn sentence(diff: &Diff) -> Phrase {
    let Some(wall) = diff.whole(Figure::Wall) else {
        return "The wall times cannot be compared".into();
    };
    if let Some(defect) = ends::defect(diff) {
        let [base, new] = [wall.base, wall.new].map(units::time);
        let defect = units::sentence(&defect.to_string());
        return format!("{defect}; the wall times, {base} and {new}, measure no whole build")
            .into();
    }
    let change = match wall.difference() {
        0 => None,
        1.. => Some((ChangeKind::Slower, "Slower")),
        _ => Some((ChangeKind::Faster, "Faster")),
    };
    let figures = format!(
        "{} → {} ({}, {})",
        units::time(wall.base),
        units::time(wall.new),
        signed(wall.difference(), units::time),
        percent(wall)
    );
    let (kind, word) = match (change, wall.verdict) {
        (Some(change), SpreadVerdict::Outside | SpreadVerdict::Unknown) => change,
        (change, _) => {
            let inside = change.map(|_| figures);
            return same_wall(diff, wall, inside).into();
        }
    };
    if let Some(methods) = methods::mixed(diff).or_else(|| commands::strangers(diff)) {
        return format!("{word}: {figures}; {methods}").into();
    }
    let cause = cause(diff).map_or(String::new(), |cause| format!(": {cause}"));
    let most = match diff.causes.whose() {
        Some(Whose::Machine | Whose::Unclear) => Phrase::default(),
        _ => most(diff, kind),
    };
    let against = against(diff).map_or(String::new(), |but| format!("; {but}"));
    Phrase::with([&most], |[most]| {
        format!("{word}: {figures}{cause}{most}{against}")
    })
}

/// A clause which says that the build's own time changed in the opposite direction of the wall time, with the largest
/// cause; `None` without such a change beyond the spread. The wall time alone would hide a slower build on a quieter
/// machine.
fn against(diff: &Diff) -> Option<String> {
    let (alone, first) = (diff.causes.alone.as_ref()?, diff.causes.against.first()?);
    let is_with = alone.difference().signum() == first.ns.signum();
    (is_with && alone.verdict == SpreadVerdict::Outside).then(|| {
        let by = relative(alone);
        format!(
            "but {} ({by}, with the CPUs to itself)",
            words_of(diff, first)
        )
    })
}

/// The conclusion if the wall times differ by no more than the spread. It mentions the figures that differ by more.
fn same_wall(diff: &Diff, wall: &Difference, inside: Option<String>) -> String {
    let but = besides(diff);
    let but = if but.is_empty() {
        String::new()
    } else {
        format!("; but {}", but.join(", "))
    };
    match (inside, but.is_empty()) {
        (None, _) => format!("Equally fast: {}{but}", units::time(wall.base)),
        (Some(figures), true) => format!("No difference beyond normal variation: {figures}"),
        (Some(figures), false) => {
            format!("No difference of the wall time beyond normal variation: {figures}{but}")
        }
    }
}

/// Clauses about the figures, such as the CPU time, that differ beyond the spread of the runs although the wall
/// time does not.
fn besides(diff: &Diff) -> Vec<String> {
    let differs =
        |judged: &&Difference| judged.is_noticeable() && judged.verdict == SpreadVerdict::Outside;
    let mut but = Vec::new();
    let work = diff.causes.work.as_ref().filter(differs);
    if let Some(work) = work {
        let note = doubt(diff);
        but.push(format!("CPU time {}{note}", relative(work)));
    }
    for share in &diff.causes.shares {
        match (share.cause, &diff.causes.alone) {
            (DifferenceCause::Work, _) => {}
            (DifferenceCause::Order, Some(alone)) => {
                let by = relative(alone);
                let note = doubt_of(diff, share);
                but.push(format!(
                    "{}{note} ({by}, with the CPUs to itself)",
                    words(share)
                ));
            }
            _ => but.push(words_of(diff, share)),
        }
    }
    but
}

/// The party to which the difference between two builds is attributed; `None` if there is no such party, or if the
/// times cannot be compared because a build failed or was only partly recorded.
pub(super) fn whose(diff: &Diff) -> Option<Whose> {
    diff.causes.whose().filter(|_| ends::defect(diff).is_none())
}

/// A clause with the cause of the difference between two builds, and the party to which it is attributed; `None`
/// if no cause is known.
fn cause(diff: &Diff) -> Option<String> {
    let first = |whose| diff.causes.of(whose).next();
    let (build, machine) = (first(Whose::Build), first(Whose::Machine));
    let doubtful = first(Whose::Unclear);
    let maybe = doubtful.map(|share| unclear(diff, share));
    Some(match (build, machine, doubtful.zip(maybe)) {
        (Some(own), None, None) => words(own).into(),
        (None, machine, None) if is_work_unknown(diff) => {
            let runner = machine.map_or("", |_| "the runner, perhaps also the build: ");
            format!("{runner}too much of its CPU time is unknown")
        }
        (None, Some(machine), None) => not_yours(machine).into(),
        (Some(own), machine, maybe) => {
            let runner = machine.map_or("", |_| " and the runner");
            let maybe = maybe.map_or(String::new(), |(_, it)| format!("; {it}"));
            format!("the build ({}){runner}{maybe}", words(own))
        }
        (None, machine, Some((share, maybe))) => match (share.cause, machine) {
            (DifferenceCause::Network | DifferenceCause::Outside, None) => maybe,
            (DifferenceCause::Network | DifferenceCause::Outside, Some(_)) => {
                format!("the runner; {maybe}")
            }
            _ => format!("the runner, perhaps also the build: {maybe}"),
        },
        (None, None, None) => return None,
    })
}

/// Whether too few runs know their CPU time, so that more work of the build itself may be a cause that is not
/// found.
fn is_work_unknown(diff: &Diff) -> bool {
    diff.causes.work.is_none() && !diff.causes.parts.is_empty()
}

/// Sentences about the runs in which too much of the tasks' time is unknown.
pub(super) fn unknown_work(diff: &Diff) -> Vec<String> {
    let runs = diff.runs();
    let unsure = runs.filter(|run| run.parts.is_some() && work(run).is_none());
    let left_out = if is_work_unknown(diff) {
        "whether the build needs more CPU time is not known"
    } else {
        "its CPU time is left out of the causes"
    };
    let said = unsure.map(|run| {
        let unknown = run
            .figures
            .get(Figure::Unknown)
            .map_or("?".into(), units::time);
        format!("{}: {unknown} of its time is unknown: {left_out}", run.file)
    });
    said.collect()
}

/// A clause about a cause that may be due to the build or to something else, such as another machine.
pub(super) fn unclear(diff: &Diff, share: &Share) -> String {
    match (share.cause, &diff.causes.work) {
        (DifferenceCause::Work, Some(work)) => {
            format!("CPU time {}{}", relative(work), doubt(diff))
        }
        (DifferenceCause::Order, _) => format!("{}{}", words(share), doubt_of(diff, share)),
        (DifferenceCause::Outside, _) => format!("{}: theirs, or your change's", words(share)),
        _ => format!("{}: the other end's, or your change's", words(share)),
    }
}

/// A clause about the circumstance, other than the build's work, that can explain the difference of its CPU
/// time; empty if there is none.
fn doubt(diff: &Diff) -> String {
    diff.causes.doubt.map_or(String::new(), Doubt::words)
}

/// A clause about the circumstance, other than the build's work, that can explain this part of the difference;
/// empty if there is none.
fn doubt_of(diff: &Diff, share: &Share) -> String {
    let doubt = diff.causes.doubt_of(share.cause, share.ns);
    doubt.map_or(String::new(), Doubt::words)
}

/// A clause about the process whose wall time grew most (`kind` is `Slower`) or fell most. COMMAND itself is left out,
/// because its time is that of the whole run, and so are processes that mostly wait for their children.
fn most(diff: &Diff, kind: ChangeKind) -> Phrase {
    let several = diff.matched > 1;
    let only = match kind {
        ChangeKind::Slower => ChangeKind::New,
        _ => ChangeKind::Gone,
    };
    let mut changes = diff.changes.iter();
    let most = changes.find(|change| {
        let side = change.kind == kind || change.kind == only;
        side && !change.through && change.size() > 0 && (!several || !change.above.is_empty())
    });
    most.map_or(Phrase::default(), |most| {
        let by = signed(most.value(Figure::Wall), units::time);
        let only = if most.kind == only {
            format!(" ({})", only.title())
        } else {
            String::new()
        };
        Phrase::with([&most.label], |[label]| {
            format!("; most of all {label}{only} {by} of wall time")
        })
    })
}

/// The sentence that explains the difference between two builds: the causes, each with its part of the difference, and
/// the builds' CPU time. `None` if the wall times do not differ, or if no cause or no CPU time is known.
pub(super) fn explanation(diff: &Diff) -> Option<String> {
    let wall = diff.whole(Figure::Wall)?;
    if ends::defect(diff).is_some() || wall.verdict == SpreadVerdict::Inside {
        return None;
    }
    let whose = diff.causes.whose()?;
    if let [Share {
        cause: DifferenceCause::Work,
        ..
    }] = diff.causes.shares.as_slice()
    {
        // The conclusion in the first line already has this cause.
        return None;
    }
    let shares: Vec<String> = diff
        .causes
        .shares
        .iter()
        .map(|share| words_of(diff, share))
        .collect();
    let work = diff.causes.work.as_ref()?;
    let equal = !work.is_noticeable();
    let times = format!("{} and {}", units::time(work.base), units::time(work.new));
    let work = match (equal, whose) {
        (true, _) => format!("the build's CPU time is equal ({times})"),
        (false, Whose::Machine | Whose::Unclear) => {
            let doubt = doubt(diff);
            format!("the build's CPU time: {times} ({}{doubt})", percent(work))
        }
        (false, _) => format!("the build's CPU time: {times} ({})", percent(work)),
    };
    Some(units::sentence(&format!("{}; {work}", shares.join(", "))))
}

/// A cause of the difference between two builds, its part of the difference, and details such as the bytes read.
fn words_of(diff: &Diff, share: &Share) -> String {
    let by = signed(share.ns, units::time);
    let mut details = match share.cause {
        DifferenceCause::Others => others(diff, share.ns),
        DifferenceCause::Disk => bytes(diff, &[Demand::Read, Demand::Written]),
        DifferenceCause::Memory => bytes(diff, &[Demand::Resident, Demand::Reclaim, Demand::Swap]),
        DifferenceCause::Network => bytes(diff, &[Demand::Received, Demand::Sent]),
        _ => Vec::new(),
    };
    let waits = matches!(
        share.cause,
        DifferenceCause::Disk | DifferenceCause::Network | DifferenceCause::Outside
    );
    if waits && share.as_many {
        details.push("as many".into());
    }
    let details = if details.is_empty() {
        String::new()
    } else {
        format!(" ({})", details.join(", "))
    };
    format!("{} {by}{details}", share.cause.title())
}

/// Names up to three tasks outside of the build, each with its part of the difference: at least a tenth. `ns` is the
/// difference between the two sides in the time for which such tasks had CPUs.
fn others(diff: &Diff, ns: i128) -> Vec<String> {
    const SHOWN: usize = 3;
    let names = diff.causes.names.iter();
    let counts = names.filter(|(_, by)| by.signum() == ns.signum() && by.abs() * 10 >= ns.abs());
    let shown = counts.take(SHOWN);
    shown
        .map(|(name, by)| format!("{name} {}", signed(*by, units::time)))
        .collect()
}

fn bytes(diff: &Diff, of: &[Demand]) -> Vec<String> {
    let differ = diff
        .demands
        .iter()
        .filter(|(demand, _)| of.contains(demand));
    differ
        .map(|(demand, it)| format!("{} {}", demands::change(*demand, it), demand.title()))
        .collect()
}
