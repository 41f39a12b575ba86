//! The report on failed processes, steps and tests. The failure that explains COMMAND's own failure comes first.

use tr_failure::{Failure, Failures, PERHAPS};
use tr_insight::verdicts::StepVerdicts;
use tr_insight::views::view::View;
use tr_text::called::TR;
use tr_text::page::{Page, Span};
use tr_text::style::{Paint, Style};
use tr_text::units;

/// The largest number of failed processes and steps that get a line of their own. The failure that explains COMMAND's
/// failure always gets a line.
const MOST_FAILED: usize = 4;
/// The largest number of failed ancestors between a failure and COMMAND that a line names.
const PARENTS: usize = 4;
/// The greatest width in columns of a failed process's name, where several failures share a line.
const NAME: usize = 30;
const LEAD: &str = "Failed";
const GAP: &str = "   ";

/// The width in columns of the first word of a line with the space after it.
const LEAD_WIDTH: usize = LEAD.len() + GAP.len();

/// Writes a line for each of the first failures (of a process, a step or a test) that matter. A last line has the
/// number of the others and, if COMMAND failed, of the failures with unknown consequences or with none.
pub(super) fn failed(out: &mut Page, view: &View<'_>, judged: &StepVerdicts<'_>, style: &Style) {
    let failures = Failures::new(view.recording, view.chosen, Some(judged));
    let shown = failures.reported.iter().enumerate();
    // The failure that explains COMMAND's failure is shown, wherever it is in the list.
    let shown = shown.filter(|(at, _)| *at < MOST_FAILED || Some(*at) == failures.command);
    let mut count = 0;
    // The circumstance that delayed a failed process until it exceeded a time limit. The same circumstance may have
    // delayed several failed processes, so it is printed only once.
    let mut held = shown.clone().find_map(|(_, failed)| failed.held_by());
    let mut shown = shown.peekable();
    while let Some((_, failure)) = shown.next() {
        line(out, failure, style);
        if let Some(held) = held.take_if(|reason| failure.held_by().as_ref() == Some(reason)) {
            out.wrapped(Paint::Dim, &indent(), held.short());
        }
        // If consecutive failures in this list led to the same chain of failures, this chain is printed only once,
        // after the last of the consecutive failures.
        let is_last = shown
            .peek()
            .is_none_or(|(_, next)| !is_same_chain(&failure.above, &next.above));
        if is_last && !failure.above.is_empty() {
            out.spans([indent(), to_the_root(&failure.above, style)]);
        }
        count += 1;
    }
    let (unclear, tolerated) = match failures.command {
        Some(_) => (failures.unclear, failures.tolerated),
        None => (0, 0),
    };
    let mut parts = Vec::new();
    if let more @ 1.. = failures.reported.len() - count + unclear {
        let beside = failures.beside.iter().take(unclear);
        let name = |failed: &Failure| {
            format!(
                "{} {}",
                units::shorten(failed.name().short(), NAME),
                failed.ended().short()
            )
        };
        let mut beside: Vec<String> = beside.map(name).collect();
        if (1..more).contains(&beside.len()) {
            beside.push("…".to_owned());
        }
        let beside = if beside.is_empty() {
            String::new()
        } else {
            format!(" ({})", beside.join(", "))
        };
        parts.push(format!("{} more failed{beside}", units::count(more as u64)));
    }
    if tolerated > 0 {
        let count = units::count(tolerated as u64);
        parts.push(format!("{count} failed without consequence"));
    }
    if !parts.is_empty() {
        let text = format!("{}: {TR} analyze --report execs --failed", parts.join(", "));
        out.wrapped(Paint::Dim, &indent(), &text);
    }
}

/// Whether two failures led to the same failures of ancestors.
fn is_same_chain(one: &[Failure], other: &[Failure]) -> bool {
    let key = |failed: &Failure| (failed.process, failed.perhaps);
    one.iter().map(key).eq(other.iter().map(key))
}

fn indent() -> String {
    " ".repeat(LEAD_WIDTH)
}

fn line(out: &mut Page, failure: &Failure, style: &Style) {
    let pid = failure.pid.map(|pid| format!(" (pid {pid})"));
    let room = |fact: &str| {
        style
            .width
            .saturating_sub(units::width(fact) + LEAD_WIDTH + 3)
    };
    let pid = pid.unwrap_or_default();
    let at = failure.at().map(|at| format!("at {}", at.short()));
    let ending = failure.fact();
    let ending = ending.short();
    let before = |at: &String| format!("{ending} {at}");
    let with_pid = format!("{ending}{pid}");
    // On a narrow terminal, the pid is left out before the name is cut, and the line of the script is printed on a line
    // of its own.
    let inside = at.as_ref().map(|at| format!("{with_pid} {at}"));
    let facts = [inside, at.as_ref().map(before)];
    let fits = |fact: &String| room(fact) >= 20.min(units::width(failure.name().short()));
    let inside = facts.into_iter().flatten().find(fits);
    let below = at.filter(|_| inside.is_none());
    let alone = || {
        Some(with_pid)
            .filter(fits)
            .unwrap_or_else(|| ending.to_owned())
    };
    let fact = inside.unwrap_or_else(alone);
    let lead = [Span::new(Paint::Bad, LEAD), GAP.into()];
    let fact = [Span::from("   "), Span::new(Paint::Bad, fact)];
    out.named(lead, failure.name().short(), 12, fact);
    if let Some(at) = below {
        out.wrapped(Paint::Plain, &indent(), &at);
    }
}

/// The line that names the failed ancestors of a failure, from the nearest one up to COMMAND. If the names do not fit
/// into the line, they are shortened, or fewer ancestors are named.
fn to_the_root(above: &[Failure], style: &Style) -> String {
    const ROOMS: [(usize, usize); 4] = [(30, PARENTS), (20, PARENTS), (12, PARENTS), (20, 2)];
    let room = style.width.saturating_sub(LEAD_WIDTH);
    let (between, root) = above.split_at(above.len().saturating_sub(1));
    let text = |(length, most): (usize, usize)| {
        let name = |lead: &str, failed: &Failure| {
            let name = units::shorten(failed.name().short(), length);
            format!("{lead}{name} {}", failed.ended().short())
        };
        let own = |failed: &Failure| name(failed.lead(), failed);
        let mut names: Vec<String> = between.iter().take(most).map(own).collect();
        let mut hidden = between.iter().skip(most);
        if between.len() > most {
            names.push("…".to_owned());
        }
        let perhaps = hidden.any(|failed| failed.perhaps);
        names.extend(root.iter().map(|failed| {
            if perhaps {
                name(PERHAPS, failed)
            } else {
                own(failed)
            }
        }));
        format!("→ {}", names.join(" → "))
    };
    let mut texts = ROOMS.into_iter().map(text);
    let fits = texts.find(|text| units::width(text) <= room);
    fits.unwrap_or_else(|| units::shorten(&text((12, 1)), room))
}
