//! Makes the part of the HTML report above its views: the recording, its sums, what failed, the verdict and the advice.

use tr_analyze::critical_path;
use tr_analyze::model::{self, Analysis};
use tr_format::meta::Scope;

use crate::ci;
use tr_advice::{programs, Advice, BuildVerdict};
use tr_failure::{Failure, Failures};
use tr_insight::cpus::shares::CpuShares;
use tr_insight::processes::{exit, who};
use tr_insight::recordings::ci::Ci;
use tr_insight::recordings::imports::Imports;
use tr_insight::recordings::{versions, warnings};
use tr_text::object;
use tr_text::{escape, units};

/// The largest number of processes that the HTML report lists as evidence for a change that would save time.
const EVIDENCE: usize = 40;
/// The largest number of failed processes, steps and tests that the HTML report lists.
const FAILURES: usize = 20;

/// The names and results of the first failed tests for which it is not known when they ran. Only the result files of
/// test runners have these tests.
pub(super) fn unplaced(imports: &Imports) -> Vec<(String, &'static str)> {
    let tests = imports.unplaced_failed().take(FAILURES);
    tests
        .map(|test| (test.name.clone(), test.result.word()))
        .collect()
}

object! {
    Trace(analysis: &Analysis, imports: &Imports, file: &str) {
        file: String = escape::raw(file.as_bytes()),
        command: String = who::headline(&analysis.meta),
        // COMMAND's status in words; `None` without COMMAND.
        result: Option<String> = exit::of_command(analysis),
        failed: bool = analysis.summary.as_ref().is_none_or(|s| exit::failed(s.status)),
        date: String = units::date(analysis.meta.start_unix()),
        host: String = escape::raw(analysis.meta.host.as_bytes()),
        kernel: String = who::kernel(&analysis.meta),
        // The number of CPUs that the build could use (`cpus`), and of all CPUs of the machine (`online`).
        cpus: u64 = analysis.cpus_of_build(),
        online: usize = analysis.meta.cpus.len(),
        machine: String = escape::raw(analysis.meta.machine.as_bytes()),
        // The process of COMMAND; `None` if the recording has no such process.
        root: Option<u32> = critical_path::root(analysis).ok().map(|ix| ix.0),
        // The number of parallel jobs that a program's arguments set, in words (`make: 4 jobs`). The outermost such
        // program counts.
        jobs: Option<String> = programs::jobs_of_arguments(analysis),
        // The build tools and their versions.
        tools: Vec<String> = versions::shown(analysis, imports),
        events: u64 = analysis.events.total(),
        lost: String = warnings::lost(analysis),
        // The method of the recording, and the facts that it cannot provide.
        recorded: Vec<String> = warnings::recorded(analysis),
        // Whether the sums are only lower bounds.
        least: bool = warnings::is_lower_bound(analysis),
        // Whether nothing is known about the recorded processes.
        blank: bool = warnings::is_blank(analysis),
        // The identifiers of the CI run, in words.
        ci: Vec<String> = ci::words(&Ci::new(&analysis.meta)),
        // Whether every task of the machine was recorded.
        all: bool = analysis.meta.scope == Scope::All,
        // The beginning (`from`) and the end (`to`) of the analyzed part of the recording, in ns since the start of the
        // recording.
        from: u64 = analysis.start.since(analysis.meta.start),
        to: u64 = analysis.end.since(analysis.meta.start),
        // The length of the whole recording in ns, even if only a part of it is analyzed.
        whole: u64 = analysis.whole,
        version: String = env!("CARGO_PKG_VERSION").into(),
    }

    Totals(totals: &model::Totals) {
        processes: u64 = totals.processes,
        threads: u64 = totals.threads,
        execs: u64 = totals.execs,
        forks: u64 = totals.forks,
        exits: u64 = totals.exits,
        on_cpu: Option<u64> = totals.times.on_cpu_known(),
        run_queue: Option<u64> = totals.times.run_queue_known(),
        sleep: Option<u64> = totals.times.sleep_known(),
        blocked: Option<u64> = totals.times.blocked_known(),
        // Only a recording without scheduling events has this time, because it cannot tell sleep from blocking.
        #[serde(skip_serializing_if = "Option::is_none")]
        asleep_or_blocked: Option<u64> = totals.times.asleep_or_blocked_known(),
        unknown: u64 = totals.times.unknown,
    }

    // The CPU time of the machine: the time of the build, of other tasks, of the hypervisor, and idle time.
    Shares(shares: &CpuShares) {
        build: Option<u64> = shares.build,
        others: Option<u64> = shares.others,
        stolen: Option<u64> = shares.stolen,
        idle: Option<u64> = shares.idle,
    }

    // The failures that matter, most severe first. `above` has the chain of failures from each of them to COMMAND's
    // failure.
    FailureRows(failures: &Failures) {
        told: Vec<FailureRow> = failures.reported.iter().take(FAILURES).map(FailureRow::new).collect(),
        more: usize = failures.reported.len().saturating_sub(FAILURES),
        // The number of failures for which the recording does not show whether they had consequences, and some of
        // these failures.
        unclear: usize = failures.unclear,
        beside: Vec<String> = failures.beside.iter().map(|failed| format!("{} {}", failed.name().short(), failed.ended().short())).collect(),
        command: bool = failures.command.is_some(),
        tolerated: usize = failures.tolerated,
        // The processes that failed without consequences, including processes that are not descendants of COMMAND.
        calm: Vec<u32> = failures.calm.iter().map(|ix| ix.0).collect(),
        // The processes that certainly failed because of another failure.
        led: Vec<u32> = failures.led.iter().map(|ix| ix.0).collect(),
    }

    FailureRow(failed: &Failure) {
        process: Option<u32> = failed.process.map(|ix| ix.0),
        name: String = failed.name().short().to_owned(),
        end: String = failed.ended().short().to_owned(),
        after: u64 = failed.after,
        above: Vec<FailureRow> = failed.above.iter().map(FailureRow::new).collect(),
        // Whether a failure in the list `above` may have another cause than the previous failure in the chain of
        // failures.
        perhaps: bool = failed.perhaps,
        // The circumstance that delayed the failed process.
        held: Option<String> = failed.held_by().map(|held| held.short().to_owned()),
        // The line of the script that ran the failed process, or the statement by which the script ended.
        at: Option<String> = failed.at().map(|at| at.short().to_owned()),
    }

    VerdictRow(verdict: &BuildVerdict) {
        sentence: String = verdict.sentence(),
        // Sentences about who delayed the build, and about the parts of the build's time for which the recording does
        // not show whether something delayed the build.
        more: Vec<String> = verdict.more(),
        // The parts of the critical path's time; the build's own work comes first.
        parts: Vec<(&'static str, u64)> = verdict.parts().into(),
    }

    // A change that would save time.
    Change(analysis: &Analysis, advice: &Advice) {
        text: String = format!("{}: {}", advice.finding.short(), advice.action),
        gain: u64 = advice.gain,
        from: u64 = advice.from.since(analysis.meta.start),
        to: u64 = advice.to.since(analysis.meta.start),
        // The first of the processes that are the evidence for the change.
        processes: Vec<u32> = advice.processes.iter().take(EVIDENCE).map(|ix| ix.0).collect(),
    }
}
