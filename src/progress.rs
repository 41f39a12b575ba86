//! Analyzing, with a bar on the terminal when it takes long.

use std::fmt::Write;
use std::io::IsTerminal;
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressState, ProgressStyle};
use tr_analyze::{Analysis, Options};
use tr_format::reader::Trace;

/// Nobody minds waiting for that long without a word.
const SILENT: Duration = Duration::from_millis(500);

/// [`tr_analyze::analyze`]. When standard error is a terminal and the work goes
/// on for longer than half a second, a bar there shows how far it is, how fast,
/// and how much time is left.
pub fn analyze(trace: &Trace, options: &Options) -> Analysis {
    if !std::io::stderr().is_terminal() {
        return tr_analyze::analyze(trace, options);
    }
    let (begun, bar) = (Instant::now(), ProgressBar::hidden());
    bar.set_style(style());
    let analysis = tr_analyze::analyze_watched(trace, options, &mut |done, all| {
        bar.set_length(all);
        bar.set_position(done);
        if bar.is_hidden() && begun.elapsed() > SILENT {
            bar.set_draw_target(ProgressDrawTarget::stderr());
        }
    });
    bar.finish_and_clear();
    analysis
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
