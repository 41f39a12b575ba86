//! Analyzing, with a bar on the terminal when it takes long.

use std::fmt::Write;
use std::io::IsTerminal;
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressState, ProgressStyle};
use tr_analyze::{Analysis, Options, Watch};
use tr_format::reader::Trace;
use tr_format::Error;

use crate::open::{self, Opened};

/// Nobody minds waiting for that long without a word.
const SILENT: Duration = Duration::from_millis(500);

/// [`tr_analyze::analyze`], with a bar when it takes long.
pub fn analyze(trace: &Trace, options: &Options) -> Analysis {
    watched(|watch| tr_analyze::analyze_watched(trace, options, watch))
}

/// The part of a trace that `options` ask for, of as much of the trace as that takes;
/// `name` is what to call it in warnings.
///
/// # Errors
/// As [`Trace::open`], when the whole trace has to be opened after all.
pub fn analyze_opened(opened: Opened, options: &Options, name: &str) -> Result<Analysis, Error> {
    let trace = match opened {
        Opened::Whole(trace) => trace,
        Opened::Part(window) => {
            let part = watched(|watch| tr_analyze::analyze_window(&window, options, watch));
            if let Some(analysis) = part {
                return Ok(analysis);
            }
            let trace = Box::new(Trace::open(window.trace.into_source())?);
            open::warn(&trace, name);
            trace
        }
    };
    Ok(analyze(&trace, options))
}

/// Does work that tells how far it is. When standard error is a terminal and the work
/// goes on for longer than half a second, a bar there shows how far it is, how fast, and
/// how much time is left.
fn watched<T>(work: impl FnOnce(Watch<'_>) -> T) -> T {
    if !std::io::stderr().is_terminal() {
        return work(&mut |_, _| {});
    }
    let (begun, bar) = (Instant::now(), ProgressBar::hidden());
    bar.set_style(style());
    let done = work(&mut |done, all| {
        bar.set_length(all);
        bar.set_position(done);
        if bar.is_hidden() && begun.elapsed() > SILENT {
            bar.set_draw_target(ProgressDrawTarget::stderr());
        }
    });
    bar.finish_and_clear();
    done
}

fn style() -> ProgressStyle {
    let template = "tr: {wide_bar} {percent:>3} %, {rate}, {eta} left";
    // An error would be one of the template; the default one does as well.
    let style = ProgressStyle::with_template(template);
    let style = style.unwrap_or_else(|_| ProgressStyle::default_bar());
    style.with_key("rate", |state: &ProgressState, to: &mut dyn Write| {
        // What it is written to is a string.
        let _ = write!(to, "{:.1} M events/s", state.per_sec() / 1e6);
    })
}
