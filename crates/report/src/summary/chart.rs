//! Draws the summary's pictures in mermaid, which GitHub and GitLab show in their pages: the steps over time,
//! and the CPUs and the memory in use.

use std::cmp::Reverse;
use std::fmt::Write;

use tr_analyze::critical_path::CriticalPath;
use tr_analyze::model::Analysis;
use tr_format::event::Ktime;
use tr_insight::resources::in_use::{cpus, memory};
use tr_insight::resources::memory::of_machine;
use tr_insight::steps::times::AllTimes;
use tr_insight::steps::{Step, Steps};
use tr_text::{escape, units};

/// The largest number of steps in the summary's picture of steps over time. A page has no room for more.
const STEPS: usize = 20;

/// The number of points of each line (CPUs, memory) in the summary's pictures.
const POINTS: u32 = 60;

/// The greatest width in columns of a name in the summary's pictures.
const NAME: usize = 40;

/// A step of the build as a bar in the picture of steps over time. Times are in milliseconds since the start of the
/// recording.
struct Bar {
    name: String,
    from: u64,
    to: u64,
    failed: bool,
    is_on_path: bool,
}

/// The data of the summary's pictures: steps over time, and the CPUs and the memory in use.
pub struct Chart {
    title: String,
    bars: Vec<Bar>,
    /// The length of the recording in milliseconds, which is the time axis of the pictures.
    ms: u64,
    cpus: u64,
    /// The CPUs that the build used, in hundredths of a CPU, in each of the equal parts of the recording's time.
    in_use: Vec<u64>,
    /// The used memory of the machine in MiB at each part of the recording's time; empty if it is not known everywhere.
    memory: Vec<u64>,
    /// The size of the machine's memory in MiB, which is the top of the picture of memory in use.
    whole_memory: u64,
}

impl Chart {
    /// The pictures for the summary of an analysis with a timeline. `fails` returns whether a step failed in a way that
    /// matters.
    pub fn new(
        analysis: &Analysis,
        title: String,
        steps: &Steps,
        path: Option<&CriticalPath>,
        fails: impl Fn(&Step) -> bool,
    ) -> Chart {
        let whole_memory = of_machine(&analysis.meta).unwrap_or(0);
        Chart {
            title,
            bars: bars(analysis, steps, path, fails),
            ms: analysis.wall() / 1_000_000,
            cpus: analysis.cpus_of_build(),
            in_use: cpus(analysis, POINTS),
            memory: memory(analysis, POINTS, whole_memory),
            whole_memory: whole_memory >> 20,
        }
    }

    /// The summary's pictures as blocks of mermaid in Markdown; empty if there is nothing to draw.
    pub fn markdown(&self) -> String {
        let mut out = String::new();
        if !self.bars.is_empty() {
            let _ = writeln!(out, "```mermaid\ngantt");
            let _ = writeln!(out, "    title {}", text(&self.title));
            // mermaid formats the times on the axis with d3, as dates. A number of seconds, unlike an hour, is the same
            // in every time zone.
            let axis = if self.ms > 10_000 { "%s s" } else { "%s.%L s" };
            let _ = writeln!(out, "    dateFormat x\n    axisFormat {axis}");
            for bar in &self.bars {
                let failed = if bar.failed { "failed: " } else { "" };
                let length = units::time(bar.to.saturating_sub(bar.from).saturating_mul(1_000_000));
                // mermaid takes a line that begins with one of its words for a command, so each line begins with a
                // number.
                let name = text(&format!("{length} {failed}{}", bar.name));
                let tags = if bar.is_on_path { "crit, " } else { "" };
                let to = bar.to.max(bar.from.saturating_add(1));
                let _ = writeln!(out, "    {name} :{tags}{}, {to}", bar.from);
            }
            out += "```\n\n";
        }
        if !self.in_use.is_empty() {
            let values = self
                .in_use
                .iter()
                .map(|hundredths| format!("{}.{:02}", hundredths / 100, hundredths % 100));
            let title = format!("CPUs in use, of {}", self.cpus);
            self.line(&mut out, &title, self.cpus, values);
        }
        if !self.memory.is_empty() {
            let values = self.memory.iter().map(u64::to_string);
            let whole = units::bytes(self.whole_memory << 20);
            let title = format!("Memory in use in MiB, of {whole}");
            self.line(&mut out, &title, self.whole_memory, values);
        }
        out
    }

    fn line(&self, out: &mut String, title: &str, most: u64, values: impl Iterator<Item = String>) {
        let values: Vec<String> = values.collect();
        // In the standard theme of mermaid, the colour of the line is nearly that of the page, so another colour is
        // set.
        let color =
            r##"%%{init: {"themeVariables": {"xyChart": {"plotColorPalette": "#3b76b8"}}}}%%"##;
        let _ = writeln!(
            out,
            "```mermaid\n{color}\nxychart-beta\n    title \"{title}\""
        );
        let ms = self.ms.max(1);
        let (seconds, ms) = (ms / 1000, ms % 1000);
        let _ = writeln!(out, "    x-axis \"seconds\" 0 --> {seconds}.{ms:03}");
        let _ = writeln!(out, "    y-axis 0 --> {}", most.max(1));
        let _ = writeln!(out, "    line [{}]\n```\n", values.join(", "));
    }
}

/// The steps to draw in the picture, in the order of time. Failed steps are chosen first, and then the steps with the
/// longest own time on the critical path. A step's own time excludes the time of the steps inside it.
fn bars(
    analysis: &Analysis,
    steps: &Steps,
    path: Option<&CriticalPath>,
    fails: impl Fn(&Step) -> bool,
) -> Vec<Bar> {
    let segments = path.map_or(&[][..], |path| &path.segments);
    let times = AllTimes::without_parts(analysis, steps, segments).steps;
    let list = steps.list();
    // For each step, the critical path's time in it but in none of the steps inside it.
    let mut own: Vec<u64> = times.iter().map(|times| times.on_path).collect();
    let mut has_inner = vec![false; list.len()];
    for (step, times) in list.iter().zip(&times) {
        let Some(parent) = step.parent else {
            continue;
        };
        if let (Some(own), Some(inner)) = (own.get_mut(parent), has_inner.get_mut(parent)) {
            *own = own.saturating_sub(times.on_path);
            *inner = true;
        }
    }
    let all = list.iter().zip(own).zip(has_inner).enumerate();
    let drawn = all.filter(|(_, ((step, own), has_inner))| {
        // A step that contains others and lasts nearly as long as the build explains nothing.
        let is_most = *has_inner && step.wall() > analysis.wall() / 10 * 9;
        let is_explained = *has_inner && *own < step.wall() / 2;
        !step.is_moment() && step.wall() > 0 && !is_explained && !is_most
    });
    let mut drawn: Vec<_> = drawn
        .map(|(at, ((step, own), _))| (at, step, own))
        .collect();
    drawn.sort_unstable_by_key(|(at, step, own)| {
        (!fails(step), Reverse(*own), Reverse(step.wall()), *at)
    });
    drawn.truncate(STEPS);
    drawn.sort_unstable_by_key(|(at, step, _)| (step.from, *at));
    let since = |time: Ktime| time.since(analysis.start) / 1_000_000;
    let bars = drawn.into_iter().map(|(_, step, own)| Bar {
        name: units::shorten(step.name.short(), NAME),
        from: since(step.from),
        to: since(step.to),
        failed: fails(step),
        is_on_path: own > 0,
    });
    bars.collect()
}

/// A text for one of mermaid's pictures. mermaid takes some signs for commands and does not decode its own codes. So
/// all signs but a few are replaced by look-alikes: by their full-width form (U+FF01 to U+FF5E), and colon and hyphen
/// by signs that more fonts have. A plain hyphen would let GitHub make a link of `GH-1`.
fn text(value: &str) -> String {
    const WIDE: u32 = 0xfee0;
    let shown = value.chars().map(|c| {
        let is_plain = c.is_alphanumeric() || " .,_/+=()".contains(c);
        match c {
            _ if escape::is_hidden(c) => '?',
            ':' => '\u{2236}',
            '-' => '\u{2011}',
            '!'..='~' if !is_plain => char::from_u32(u32::from(c) + WIDE).unwrap_or('?'),
            c => c,
        }
    });
    shown.collect()
}

#[cfg(test)]
mod tests {
    use super::text;

    #[test]
    fn no_sign_of_a_name_is_one_of_mermaid() {
        assert_eq!(text("a:b;c#d (1.5)"), "a\u{2236}b；c＃d (1.5)");
        let hostile = "%%{init: {}}%%\n```\nclick a \"javascript:x\" <script>[|]&*@";
        let shown = text(hostile);
        let is_safe = |c: char| c.is_alphanumeric() || !c.is_ascii() || " .,_/+=()?".contains(c);
        assert!(shown.chars().all(is_safe), "{shown}");
    }
}
