//! Finds failures that a process learned of by other means than the exit status of a child: by the answer of a server,
//! a status in a file, polls of a service that had ended, or results in a text.

use std::cell::OnceCell;
use std::collections::{BTreeMap, BTreeSet};

use tr_analyze::model::{Process, ProcessIx};
use tr_analyze::timeline::{Actor, Bucket, Wait};
use tr_format::event::{Argv, Ktime, Reason};
use tr_programs::table::utilities::UtilityUse;
use tr_programs::tools::Role;

use super::explains::{is_nap, OF_SHELLS};
use super::files::{has_name_of, last_file, needs, reads_the_same, share_a_file};
use super::finder::Finder;
use super::passes::{
    builds, code, fails, has_use, is_often_ignored, is_question, is_report, passes, program_start,
    soon,
};
use super::passes::{is_optional, is_step};
use super::passes::{Passes, AT_ONCE, LONGEST_CHAIN, MOST_EXAMINED};
use super::pipes::SUBSHELLS;
use super::reactions::runs_tests;
use super::runners::is_script;
use super::servers::addresses;
use tr_insight::processes::roles::{is_probe, role};
use tr_insight::processes::timeout::timed_out;
use tr_insight::processes::{exit, label};

/// The least number of runs of one program with one command line that count as polling. A guess: with one run, nothing
/// is repeated.
const LEAST_POLLS: usize = 2;

/// A process whose failure no failed child explains, and the failed processes that may have caused this failure.
struct Case<'a> {
    last: ProcessIx,
    /// The last process of the chain of failures that begins with `last`.
    top: ProcessIx,
    /// The failed processes outside of the chain that do real work.
    others: Vec<ProcessIx>,
    /// All failed processes.
    failed: &'a BTreeSet<ProcessIx>,
}

/// A search for the failed process that caused the failure of another process.
type Search = fn(&Finder<'_>, &Case<'_>) -> Option<ProcessIx>;

/// The searches in the order in which they are tried; the first result counts. Each stands before the next one for the
/// reason above it: recorded connections come first, then nearness in time, and last what remains by elimination.
const SEARCHES: [Search; 12] = [
    // A recorded wake-up connects the two processes; an equal status in the next search may be chance.
    |finder, case| finder.by_answer(case.last, &case.others),
    // A rare status names one process; polls only show that something was missing.
    |finder, case| finder.by_status(case.last, &case.others),
    // Repeated tries show that the script looked for this job's result; the next search has no sign that it looked.
    |finder, case| finder.by_polls(case.last, &case.others),
    // This search is for shells, and the next one is for other programs, so their order does not matter.
    |finder, case| finder.by_result(case.last, &case.others),
    // The server's job ran while the program ran; a helper only ended while the program slept.
    |finder, case| finder.by_server(case.last, &case.others),
    // The program's sleep shows that it waited; members of a pipe are connected by little more than their times.
    |finder, case| finder.by_helper(case.last, &case.others),
    // The writer of the same pipe is nearer than a background job that a time limit may have waited for.
    |finder, case| finder.by_writer(case.last, &case.others),
    // A job inside of the process that was too late is nearer than an earlier step outside of it.
    |finder, case| finder.by_time_out(case.last, &case.others),
    // The step right before a reader is nearer than the earlier steps, through which the next search goes back.
    |finder, case| finder.by_step_before(case.last, &case.others),
    // A file, a pipe or a program connects the two steps; the last two searches need no connection.
    |finder, case| finder.by_ignored_step(case.last, &case.others),
    // A failure that is hidden inside of the failed process is nearer than one that is hidden anywhere in the build.
    |finder, case| finder.by_elimination(case.last, case.failed),
    |finder, case| finder.by_polled_state(case.last, case.top, case.failed),
];

impl Finder<'_> {
    /// The failed process that perhaps caused the failure of the first process of a chain, if no failed child explains
    /// the failure of this first process.
    pub(super) fn news(
        &self,
        chain: &[ProcessIx],
        failed: &BTreeSet<ProcessIx>,
    ) -> Option<ProcessIx> {
        let first = *chain.first()?;
        if exit::killed_by(self.analysis.process(first).status).is_some() {
            return None;
        }
        let within: BTreeSet<ProcessIx> = chain.iter().copied().collect();
        let counts = |ix: &ProcessIx| {
            !within.contains(ix)
                && !self.tests.is_asked.contains(ix)
                && !self.leads(*ix)
                && self.sure.own.has(*ix)
                && self.is_work(*ix)
        };
        let others: Vec<ProcessIx> = failed.iter().copied().filter(counts).collect();
        let case = Case {
            last: first,
            top: *chain.last()?,
            others,
            failed,
        };
        SEARCHES.iter().find_map(|search| search(self, &case))
    }

    /// Whether a failed process runs a program that does real work (more than a check), and no ancestor stopped this
    /// process.
    fn is_work(&self, ix: ProcessIx) -> bool {
        let process = self.analysis.process(ix);
        let parent = process.parent.map(|parent| self.analysis.process(parent));
        is_step(process)
            && !is_often_ignored(process)
            && !is_optional(process)
            && self.sure.stop(ix).is_none()
            && !self.has_rank(ix)
            && !parent.is_some_and(|parent| is_probe(process, parent))
    }

    /// The last failed child of a server, if the child failed right before an answer of the server ended the last wait
    /// of the client. The client must have ended soon after this wait. The answer then probably reported the child's
    /// failure.
    fn by_answer(&self, client: ProcessIx, others: &[ProcessIx]) -> Option<ProcessIx> {
        let process = self.analysis.process(client);
        let timeline = self.analysis.timeline.as_ref()?;
        let stretches = process
            .threads
            .iter()
            .flat_map(|thread| timeline.of(*thread));
        let waits = stretches.filter(|stretch| {
            let is_wait = stretch.doing == Bucket::Wait(Wait::Sleep);
            // Waits for a child or a signal do not count, because the end of a child is no answer of a server.
            let is_for_child = matches!(stretch.reason, Reason::Child | Reason::Signal);
            is_wait
                && !is_for_child
                && process.end.since(stretch.to.min(process.end)) <= soon(process)
        });
        let answers = waits.filter_map(|stretch| match stretch.waker() {
            Actor::Thread(by) => Some((stretch.to, self.analysis.thread(by).process)),
            _ => None,
        });
        let (at, server) = answers.max_by_key(|(at, _)| *at)?;
        let mut above = self.analysis.ancestors(client).take(LONGEST_CHAIN);
        let is_server = server != client && above.all(|ix| ix != server);
        let mut others = others.iter().copied().rev().filter(|ix| {
            let job = self.analysis.process(*ix);
            let is_answered = job.end <= at && at.since(job.end) <= AT_ONCE;
            is_server && job.parent == Some(server) && is_answered && self.is_last(job, server)
        });
        others.next()
    }

    /// The only failed process, or the outermost one of nested processes, that ended with the same exit status as a
    /// later script. The script then probably read the status from a file (`exit $(cat status)`). Statuses that a
    /// shell can also have by itself do not count.
    fn by_status(&self, last: ProcessIx, others: &[ProcessIx]) -> Option<ProcessIx> {
        let process = self.analysis.process(last);
        // Only a script, or a program that reads text, can have taken its exit status from a file. A test runner is
        // excluded, because the status of a test runner shows the failure of a test.
        let has_own_status = runs_tests(process) || !is_script(process) && !is_reader(process);
        if passes(process) != Passes::Status && has_own_status {
            return None;
        }
        let status = code(process).filter(|code| *code != 0 && !OF_SHELLS.contains(code))?;
        let is_same = |ix: &&ProcessIx| {
            let other = self.analysis.process(**ix);
            let is_beside = other.parent == process.parent
                && other
                    .parent
                    .is_some_and(|ix| passes(self.analysis.process(ix)) == Passes::Last);
            code(other) == Some(status) && other.end <= process.end && !is_beside
        };
        self.only_uppermost(others.iter().filter(is_same))
    }

    /// A failed background job whose result a script polled in vain; `None` if there is no such job. The job ended
    /// before the last poll, and the last poll failed, too. The script that polls is run by the shell that started the
    /// job, or by a descendant of this shell.
    fn by_polls(&self, last: ProcessIx, others: &[ProcessIx]) -> Option<ProcessIx> {
        let process = self.analysis.process(last);
        let is_shell = |ix: &ProcessIx| passes(self.analysis.process(*ix)) == Passes::Status;
        let poller = if is_shell(&last) {
            last
        } else {
            process.parent?
        };
        let above = self.analysis.ancestors(poller).take(LONGEST_CHAIN);
        let mut shells = std::iter::once(poller).chain(above).take_while(is_shell);
        shells.find_map(|shell| self.job_before_polls(shell, poller, last, others))
    }

    /// Finds a background job of the shell `shell` that failed before the last poll `last` of the process `poller`,
    /// which waited for the job's result.
    fn job_before_polls(
        &self,
        shell: ProcessIx,
        poller: ProcessIx,
        last: ProcessIx,
        others: &[ProcessIx],
    ) -> Option<ProcessIx> {
        let process = self.analysis.process(last);
        let script = self.analysis.process(shell);
        let jobs = others.iter().copied().rev().filter(|ix| {
            let job = self.analysis.process(*ix);
            // A `sleep` that ends right after the job can be mistaken for the program that reads the job's output in a
            // pipe. So if there is a timeline, it must show that the supposed reader really read from the job.
            let is_read = |reader| self.analysis.timeline.is_none() || self.reads(reader, *ix);
            let is_piped = || self.reader(job, script).is_some_and(is_read);
            let top = self.top_of_subshells(*ix);
            let is_of_shell = self.analysis.process(top).parent == Some(shell);
            is_of_shell && self.is_in_background(top) && !is_piped()
        });
        let mut jobs = jobs.take(MOST_EXAMINED);
        jobs.find(|ix| {
            let job = self.analysis.process(*ix);
            let is_client = || shell == poller && self.is_client(last, *ix, shell);
            self.polls_fail_after(job, self.analysis.process(poller), process) || is_client()
        })
    }

    /// Whether a child of a shell (`client`) probably needed a background process of the shell (`service`) that had
    /// already ended. One of three facts shows this: the client slept again and again after the end of the service, the
    /// client exceeded its time limit, or the shell slept right after starting the service.
    fn is_client(&self, client: ProcessIx, service: ProcessIx, shell: ProcessIx) -> bool {
        let (process, ended) = (
            self.analysis.process(client),
            self.analysis.process(service),
        );
        let (ports, asked) = (addresses(&ended.argv), addresses(&process.argv));
        let is_of_others = !ports.is_empty()
            && !asked.is_empty()
            && !asked.iter().any(|port| ports.contains(port));
        let started = self.analysis.process(self.top_of_subshells(service)).start;
        let is_beside =
            client != shell && !is_of_others && process.start > started && process.end > ended.end;
        let children = &self.analysis.process(shell).children;
        let next = children.partition_point(|ix| self.analysis.process(*ix).start <= started);
        let next = children.get(next).map(|ix| self.analysis.process(*ix));
        let is_given_time = || next.is_some_and(|next| has_use(next, UtilityUse::Nap));
        let has_waited = || timed_out(process) || self.polls_after(ended.end, client);
        is_beside && !builds(process) && (has_waited() || is_given_time())
    }

    /// Whether a process slept several times for planned intervals after the time `time`. A process that polls a state
    /// does this.
    fn polls_after(&self, time: Ktime, ix: ProcessIx) -> bool {
        let threads = self.analysis.process(ix).threads.iter().take(MOST_EXAMINED);
        let timeline = self.analysis.timeline.iter();
        let stretches = timeline.flat_map(|timeline| {
            let threads = threads.clone();
            threads.flat_map(|thread| timeline.since(*thread, time))
        });
        let naps = stretches.filter(|stretch| stretch.from >= time && is_nap(stretch));
        naps.take(LEAST_POLLS).count() == LEAST_POLLS
    }

    /// Whether a shell polled a service in vain after the service had ended. A failed child of the shell counts as such
    /// a poll if the child only checks or fetches something, or if the child's command line ran several times. `last`
    /// is the poll that failed last, or the shell itself.
    fn polls_fail_after(&self, service: &Process, shell: &Process, last: &Process) -> bool {
        let children = shell.children.iter().rev().take(MOST_EXAMINED);
        let children = children.map(|ix| self.analysis.process(*ix));
        let ports = addresses(&service.argv);
        let is_of_others = |child: &Process| {
            let asked = addresses(&child.argv);
            let is_known = !ports.is_empty() && !asked.is_empty();
            is_known && !asked.iter().any(|port| ports.contains(port))
        };
        let later = children.filter(|child| {
            let is_poll = last.pid == shell.pid || child.argv == last.argv;
            // A comparison of files is not a poll of a service.
            let compares = has_use(child, UtilityUse::Compare);
            let has_failed = fails(child) && !child.execs.is_empty();
            is_poll
                && !compares
                && has_failed
                && program_start(child) >= service.end
                && !is_of_others(child)
        });
        let mut runs: BTreeMap<&[u8], usize> = BTreeMap::new();
        let mut polls = later.filter(|child| {
            let all = runs.entry(&child.argv.bytes).or_default();
            *all += 1;
            *all >= LEAST_POLLS || is_question(child) || is_optional(child)
        });
        polls.next().is_some()
    }

    /// The only failed script, or the outermost one of nested scripts, whose parent is a shell that succeeded. The
    /// failed shell `last` could not get the exit status of this script, but `last` may have read the script's results
    /// from a text. Scripts inside tests are left out, because tests start programs that are expected to fail.
    fn by_result(&self, last: ProcessIx, others: &[ProcessIx]) -> Option<ProcessIx> {
        let reader = self.analysis.process(last);
        if passes(reader) != Passes::Status {
            return None;
        }
        let scripts = others.iter().filter(|ix| {
            let script = self.analysis.process(**ix);
            let Some(parent) = script.parent.map(|parent| self.analysis.process(parent)) else {
                return false;
            };
            let is_kept = passes(parent) == Passes::Status && parent.status == Some(0);
            is_script(script) && is_kept && script.end <= reader.end
        });
        self.only_uppermost(scripts)
    }

    /// The only hidden failure inside the failed process `last`: a failed descendant whose ancestors up to `last`
    /// succeeded, were stopped, or still live. `last` may have learned of this failure from a text, if it is a script
    /// that ended with 1 by its own decision, or a test runner that prints results.
    fn by_elimination(&self, last: ProcessIx, failed: &BTreeSet<ProcessIx>) -> Option<ProcessIx> {
        let process = self.analysis.process(last);
        let is_test_runner = role(process) == Some(Role::Tests);
        let is_script = passes(process) == Passes::Status && code(process) == Some(1);
        if !is_test_runner && !is_script {
            return None;
        }
        self.only_hidden(last, is_test_runner, failed.iter().copied())
    }

    /// The only hidden failure in the whole build, as the explanation of a check that failed several times. COMMAND's
    /// last failure must be this check (`poll`), and the hidden failure must have come before the first run of this
    /// check. A failure is hidden if an ancestor of the failed process shows no failure.
    fn by_polled_state(
        &self,
        poll: ProcessIx,
        top: ProcessIx,
        failed: &BTreeSet<ProcessIx>,
    ) -> Option<ProcessIx> {
        let process = self.analysis.process(poll);
        if !is_question(process) || process.execs.is_empty() {
            return None;
        }
        let polls = failed.iter().map(|ix| self.analysis.process(*ix));
        let polls = polls.filter(|other| other.argv == process.argv);
        let starts: Vec<Ktime> = polls.map(|other| other.start).collect();
        let first = starts
            .iter()
            .min()
            .filter(|_| starts.len() >= LEAST_POLLS)?;
        let before = |ix: &ProcessIx| self.analysis.process(*ix).end <= *first;
        self.only_hidden(top, false, failed.iter().copied().filter(before))
    }

    /// The only hidden failure inside the process `last`: the failure of a descendant, while a process between this
    /// descendant and `last` shows no failure. If `last` is a test runner, the descendant must have taken a noticeable
    /// part of the runner's time.
    fn only_hidden(
        &self,
        last: ProcessIx,
        is_test_runner: bool,
        failed: impl Iterator<Item = ProcessIx>,
    ) -> Option<ProcessIx> {
        let counts = |ix: &ProcessIx| {
            let mut above = self.analysis.ancestors(*ix).take(LONGEST_CHAIN);
            let inside: Vec<ProcessIx> = above.by_ref().take_while(|ix| *ix != last).collect();
            let is_below = self
                .analysis
                .ancestors(*ix)
                .take(LONGEST_CHAIN)
                .any(|ix| ix == last);
            let is_work = self.sure.own.has(*ix) && self.is_work(*ix);
            let is_asked = !is_test_runner && self.tests.is_asked.contains(ix);
            let is_hidden = inside.iter().any(|ix| self.is_silent(*ix));
            let in_a_tool = inside.iter().any(|ix| self.is_tool_that_succeeded(*ix));
            let is_long = !is_test_runner || self.took_its_part(self.analysis.process(*ix), last);
            is_below && is_work && !is_asked && is_hidden && !in_a_tool && is_long
        };
        let hidden: BTreeSet<ProcessIx> = failed.filter(counts).collect();
        let uppermost = hidden.iter().rev().copied().filter(|ix| {
            let mut above = self.analysis.ancestors(*ix).take(LONGEST_CHAIN);
            !above.any(|ix| hidden.contains(&ix))
        });
        self.only_command(uppermost)
    }

    /// A failed descendant of a server, if the descendant started and ended during the life of the given client
    /// process. If there are several such descendants, all of them must have the same command line, and the last one is
    /// returned.
    fn by_server(&self, client: ProcessIx, others: &[ProcessIx]) -> Option<ProcessIx> {
        let process = self.analysis.process(client);
        if passes(process) == Passes::Status || builds(process) {
            return None;
        }
        let during = others.iter().rev().copied().filter(|ix| {
            let job = self.analysis.process(*ix);
            let is_during = job.start >= process.start && job.end <= process.end;
            is_during && self.is_in_a_server(*ix, client)
        });
        self.only_command(during)
    }

    /// Whether a process is a descendant of a server of `client`. A server is a background process that has the same
    /// parent as `client`, was started before `client`, outlived `client`, and shows no failure of its own.
    fn is_in_a_server(&self, ix: ProcessIx, client: ProcessIx) -> bool {
        let started = self.analysis.process(client);
        let mut above = self.analysis.ancestors(ix).take(LONGEST_CHAIN);
        above.any(|ix| {
            let server = self.analysis.process(ix);
            server.parent == started.parent
                && server.start < started.start
                && server.end >= started.end
                && self.is_silent(ix)
        })
    }

    /// The only failed helper process of a program. There are two kinds of helpers: a child that ended during a sleep
    /// of the program for a timer, and a process that outlived its own parent and ended before the last wait of the
    /// program for a timer began.
    fn by_helper(&self, last: ProcessIx, others: &[ProcessIx]) -> Option<ProcessIx> {
        let process = self.analysis.process(last);
        if !matches!(passes(process), Passes::Tests | Passes::Last) {
            return None;
        }
        let helpers = others.iter().rev().copied().filter(|ix| {
            let helper = self.analysis.process(*ix);
            let Some(parent) = helper.parent.filter(|_| helper.end <= process.end) else {
                return false;
            };
            let is_orphan = self.analysis.process(parent).end < helper.end;
            parent == last && self.slept_across(helper.end, last)
                || is_orphan && self.waited_after(helper, last)
        });
        self.only_command(helpers)
    }

    /// Whether the main thread of a process was in a sleep for a timer at the time `time`: the sleep began before that
    /// time and ended after that time. Only the main thread counts, because other threads of a language's runtime
    /// always sleep.
    fn slept_across(&self, time: Ktime, ix: ProcessIx) -> bool {
        let main = self.analysis.process(ix).threads.first();
        let around = self.analysis.timeline.as_ref().zip(main);
        let stretch = around.and_then(|(timeline, main)| timeline.since(*main, time).next());
        stretch.is_some_and(|stretch| stretch.from < time && is_nap(&stretch))
    }

    /// The first failed program of a pipe that ended before the pipe's last program (`reader`) failed. Perhaps `reader`
    /// lacked the output of this program. A program that ended after `reader` does not count, because such a program
    /// perhaps failed only because `reader` had ended. Jobs that run at the same time but do not read from each other
    /// do not count either.
    fn by_writer(&self, reader: ProcessIx, others: &[ProcessIx]) -> Option<ProcessIx> {
        let process = self.analysis.process(reader);
        let shell = process.parent?;
        let is_shell = passes(self.analysis.process(shell)) == Passes::Status;
        if !is_shell || !self.is_last(process, shell) {
            return None;
        }
        others.iter().copied().find(|ix| {
            let writer = self.analysis.process(*ix);
            let is_near = writer.parent == Some(shell)
                && writer.start < process.start
                && process.start.since(writer.start) <= AT_ONCE
                && (process.start < writer.end || !self.waited_between(shell, writer, process));
            let (written, read) = (self.exit(writer), self.exit(process));
            let (is_first, is_soon) = (written <= read, read.since(written.min(read)) <= AT_ONCE);
            let is_read = || {
                let members = self.analysis.process(shell).children.iter();
                let mut members = members.rev().take(MOST_EXAMINED).filter(|member| {
                    let started = self.analysis.process(**member).start;
                    started > writer.start && started <= process.start
                });
                members.any(|member| self.reads(*member, *ix))
            };
            is_near && is_first && (is_soon || is_read())
        })
    }

    /// Whether a shell waited for a child between the starts of two of its children. A shell starts the members of a
    /// pipe without such a wait, even if the first one ends before the last one begins. The answer is also yes if the
    /// recording has no timeline.
    fn waited_between(&self, shell: ProcessIx, first: &Process, second: &Process) -> bool {
        let main = self.analysis.process(shell).threads.first();
        let Some((timeline, main)) = self.analysis.timeline.as_ref().zip(main) else {
            return true;
        };
        let between = timeline.since(*main, first.start);
        let mut between = between.take_while(|stretch| stretch.from < second.start);
        between.any(|stretch| {
            matches!(stretch.doing, Bucket::Wait(_)) && stretch.reason == Reason::Child
        })
    }

    /// The only failed background job among the descendants of a `timeout` that ended its program. Other processes
    /// probably waited for the result of that job until the time limit.
    fn by_time_out(&self, late: ProcessIx, others: &[ProcessIx]) -> Option<ProcessIx> {
        if !timed_out(self.analysis.process(late)) {
            return None;
        }
        let waited_for = others.iter().rev().copied().filter(|ix| {
            let job = self.analysis.process(*ix);
            let has_exited = exit::killed_by(job.status).is_none();
            let mut above = self.analysis.ancestors(*ix).take(LONGEST_CHAIN);
            has_exited && self.is_in_background(*ix) && above.any(|ix| ix == late)
        });
        self.only_command(waited_for)
    }

    /// The last step of a script before the program `reader`, if this step failed and `reader` only reads what other
    /// programs wrote. The step must be more than a check: it must have taken a noticeable part of the script's time.
    fn by_step_before(&self, reader: ProcessIx, others: &[ProcessIx]) -> Option<ProcessIx> {
        let process = self.analysis.process(reader);
        let script = process.parent.filter(|_| is_reader(process))?;
        if passes(self.analysis.process(script)) != Passes::Status {
            return None;
        }
        let mut before = self.before_start(process, script).rev().take(MOST_EXAMINED);
        let step = before.find(|step| is_step(step))?;
        let found = others
            .iter()
            .copied()
            .find(|ix| self.analysis.process(*ix).pid == step.pid);
        found.filter(|ix| {
            let is_awaited = step.end <= process.start && !self.is_in_background(*ix);
            is_awaited && self.took_its_part(step, script)
        })
    }

    /// Finds an earlier failed step of a script that may explain why the later step `last` of this script failed. The
    /// script went on after the earlier failure, but probably did not ignore it on purpose. The result is the last
    /// failed step for which one of these facts is true:
    /// - The failed step wrote data into a pipe.
    /// - The failed step is a build right before the later step.
    /// - The last argument of the failed step is a file that the later step names.
    /// - The failed step ran the same program as the later step on the same file, and the script does not use the exit
    ///   status of the failed step.
    fn by_ignored_step(&self, last: ProcessIx, others: &[ProcessIx]) -> Option<ProcessIx> {
        let process = self.analysis.process(last);
        let script = process.parent?;
        let shell = self.analysis.process(script);
        if passes(shell) != Passes::Status || builds(process) {
            return None;
        }
        let mut before = self.before_start(process, script).rev().take(MOST_EXAMINED);
        let build = before
            .find(|step| is_step(step))
            .filter(|step| builds(step));
        // Some programs may write into the pipe from which the later step reads, as in `tail -n 1 log | grep -q ok`.
        // Their arguments count as arguments of the later step.
        let mates = self.before_start(process, script).rev().take(SUBSHELLS);
        let fed: Vec<&Argv> = mates
            .filter(|mate| self.is_beside(mate, process))
            .map(|mate| &mate.argv)
            .collect();
        let course = self.course(script);
        let usage = OnceCell::new();
        let usage_of = |ix: ProcessIx| {
            let course = course.as_ref()?;
            let usage = usage.get_or_init(|| course.part.status_usage());
            usage.get(&course.command(ix)?)
        };
        others.iter().copied().rev().find(|ix| {
            let step = self.analysis.process(*ix);
            let top = self.analysis.process(self.top_of_forks(*ix, script));
            let is_before = top.parent == Some(script) && top.end <= process.start;
            // A group of commands in braces, or a subshell, ends with the status of its last command. So the status of
            // the group may not show the earlier failure of another command in the group.
            let is_shown = fails(top);
            let names_last_file = || {
                let file = last_file(&step.argv);
                file.is_some_and(|file| has_name_of(&process.argv, &file))
                    && !reads_the_same(&step.argv, &process.argv)
            };
            // The failure of a condition (`if jq -e .draft file`) is an answer and not an error.
            let is_asked = || usage_of(*ix).is_some_and(|usage| usage.is_condition);
            if is_before && is_shown && names_last_file() && !is_asked() {
                return true;
            }
            let name = label::program(step);
            let is_on_the_file = || {
                step.argv != process.argv
                    && name == label::program(process)
                    && share_a_file(&step.argv, &process.argv, &name)
            };
            let is_ignored = || usage_of(*ix).is_some_and(|usage| !usage.is_used);
            if is_before && is_shown && is_on_the_file() && is_ignored() {
                return true;
            }
            let is_build = is_shown && build.is_some_and(|build| build.pid == top.pid);
            let is_written = || {
                let reader = self.reader(top, shell);
                reader.is_some_and(|reader| {
                    let is_log = has_use(self.analysis.process(reader), UtilityUse::Report);
                    let files = self.outputs(reader);
                    let is_needed = files.iter().any(|file| {
                        needs(&process.argv, file) || fed.iter().any(|argv| needs(argv, file))
                    });
                    (is_needed || !is_log) && self.reads(reader, *ix)
                })
            };
            is_before && self.took_its_part(step, script) && (is_build || is_written())
        })
    }

    /// The last of several processes, if all of them ran one command line; `None` otherwise.
    fn only_command(&self, mut all: impl Iterator<Item = ProcessIx>) -> Option<ProcessIx> {
        let last = all.next()?;
        let argv = &self.analysis.process(last).argv;
        let is_same = all.all(|ix| self.analysis.process(ix).argv == *argv);
        is_same.then_some(last)
    }

    /// Whether the end of a process shows no failure: it succeeded, was stopped on purpose, or still lives.
    fn is_silent(&self, ix: ProcessIx) -> bool {
        let process = self.analysis.process(ix);
        !fails(process) || self.sure.on_purpose(ix, process)
    }

    /// Whether a process is a successful tool that builds, tests, configures or fetches packages. If such a tool
    /// succeeded, the failures of its descendants do not matter for other processes.
    fn is_tool_that_succeeded(&self, ix: ProcessIx) -> bool {
        let process = self.analysis.process(ix);
        let is_tool =
            builds(process) || matches!(role(process), Some(Role::Packages | Role::Configure));
        !fails(process) && is_tool
    }

    /// The first of the given processes, if it is an ancestor of all others; otherwise `None`.
    fn only_uppermost<'a>(
        &self,
        mut all: impl Iterator<Item = &'a ProcessIx>,
    ) -> Option<ProcessIx> {
        let uppermost = *all.next()?;
        let is_below = |ix: &ProcessIx| {
            let mut above = self.analysis.ancestors(*ix).take(LONGEST_CHAIN);
            above.any(|above| above == uppermost)
        };
        all.all(is_below).then_some(uppermost)
    }
}

/// Whether a process runs a small program that only reads what other programs wrote, such as `grep` or `awk`.
fn is_reader(process: &Process) -> bool {
    is_question(process) || is_report(process) || has_use(process, UtilityUse::Reader)
}
