//! Shows on the terminal how far an analysis of recordings has come, if that takes long.

use std::fmt::Write;
use std::io::IsTerminal;
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressState, ProgressStyle};
use tr_text::called::TR;

/// The time for which an analysis shows nothing, before the progress bar appears.
const SILENT_TIME: Duration = Duration::from_millis(500);

/// The progress bar of an analysis on standard error, if that is a terminal. The bar appears after [`SILENT_TIME`].
pub struct Bar {
    bar: ProgressBar,
    begun: Instant,
    is_terminal: bool,
}

impl Bar {
    /// Creates the progress bar of the analysis of one recording. `is_part` is set if only a part of the recording is
    /// analyzed (`--from`).
    pub fn of_one(is_part: bool) -> Bar {
        Bar::new(style(is_part))
    }

    /// Creates the common progress bar of the analyses of several recordings.
    #[cfg(feature = "compare")]
    pub fn of_several() -> Bar {
        // An error can only mean that the template is wrong.
        let style = ProgressStyle::with_template(&format!("{TR}: {{msg}} {SEVERAL_BAR}"));
        Bar::new(style.unwrap_or_else(|_| ProgressStyle::default_bar()))
    }

    fn new(style: ProgressStyle) -> Bar {
        let bar = ProgressBar::hidden();
        bar.set_style(style);
        Bar {
            bar,
            begun: Instant::now(),
            is_terminal: std::io::stderr().is_terminal(),
        }
    }

    /// Shows in front of the bar which of several recordings is being analyzed. The first one has the number 1.
    #[cfg(feature = "compare")]
    pub fn name_recording(&self, number: usize, of: usize) {
        self.bar.set_message(format!("recording {number} of {of}"));
    }

    /// Moves the end of the bar to `done` steps of `all`.
    pub fn show(&self, done: u64, all: u64) {
        self.bar.set_length(all);
        self.bar.set_position(done);
        if self.is_terminal && self.bar.is_hidden() && self.begun.elapsed() > SILENT_TIME {
            self.bar.set_draw_target(ProgressDrawTarget::stderr());
        }
    }

    /// Prints a line on standard error above the progress bar.
    pub fn say(&self, text: &str) {
        self.bar.suspend(|| message!("{text}"));
    }

    /// Removes the progress bar from the terminal.
    pub fn finish(&self) {
        self.bar.finish_and_clear();
    }
}

/// The template of the progress bar for one recording: the bar, the percentage, the speed and the remaining time.
const BAR: &str = "{wide_bar} {percent:>3} %, {rate}, {eta} left";
/// The template of the progress bar for several recordings: the bar, the percentage and the remaining time.
#[cfg(feature = "compare")]
const SEVERAL_BAR: &str = "{wide_bar} {percent:>3} %, {eta} left";

/// The layout of the progress bar for one recording, or for a part of one.
fn style(is_part: bool) -> ProgressStyle {
    // If only a part of the recording is analyzed (`--from`), the bar says that the whole trace is read. The earlier
    // events are needed, because the state of each task at `--from` depends on them.
    let template = if is_part {
        format!("{TR}: reading the whole trace {BAR}")
    } else {
        format!("{TR}: {BAR}")
    };
    // An error can only mean that the template is wrong.
    let style = ProgressStyle::with_template(&template);
    let style = style.unwrap_or_else(|_| ProgressStyle::default_bar());
    style.with_key("rate", |state: &ProgressState, to: &mut dyn Write| {
        // Writing to a string cannot fail.
        let _ = write!(to, "{:.1} M events/s", state.per_sec() / 1e6);
    })
}
