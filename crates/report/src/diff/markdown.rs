//! `tr diff` as Markdown, for a comment on a pull request.

use std::fmt::Write;

use super::functions::{Noisy, RULE};
use super::text::{command, difference, value, verdict};
use super::{percent, signed, Change, Diff, Figure, Gate, Judged, What};
use crate::escape::{code, markdown};
use crate::units;

/// Tables with more rows are folded.
const OPEN: usize = 10;

impl Diff {
    /// Markdown for GitHub and GitLab.
    pub fn markdown(&self) -> String {
        let mut out = String::new();
        // Of a build that failed, the conclusion tells the times.
        let wall = self.whole(Figure::Wall);
        let wall = wall.filter(|_| self.failure().is_none());
        let change = wall.map_or(String::new(), |wall| {
            format!(
                ": {} → {}{}",
                units::time(wall.base),
                units::time(wall.new),
                match wall.difference() {
                    0 => String::new(),
                    _ => format!(
                        " (**{}, {}**)",
                        difference(Figure::Wall, wall),
                        percent(wall)
                    ),
                }
            )
        });
        let _ = writeln!(out, "### {}{change}\n", code(&command(&self.new)));
        let sign = if self.failure().is_some() { "❌ " } else { "" };
        let _ = writeln!(out, "{sign}**{}**\n", markdown(&self.conclusion()));
        if let Some(text) = self.explanation() {
            let _ = writeln!(out, "**{}**\n", markdown(&text));
        }
        if let Some(gate) = self.gate() {
            let failed = gate.as_ref().map_or(true, Gate::failed);
            let text = gate.map_or_else(|why| why, |gate| gate.text());
            let sign = if failed { "❌" } else { "✅" };
            let _ = writeln!(out, "{sign} {}\n", markdown(&text));
        }
        for text in self.warnings() {
            let _ = writeln!(out, "⚠️ {}\n", markdown(&text));
        }
        if self.same() {
            let _ = writeln!(out, "No difference in any of {} processes.\n", self.matched);
        } else {
            self.figures_table(&mut out);
            for what in What::ALL {
                self.changes_table(&mut out, what);
            }
            self.steps_table(&mut out);
            self.programs_table(&mut out);
        }
        self.loads_table(&mut out);
        self.demands_table(&mut out);
        self.calls_table(&mut out);
        self.functions_table(&mut out);
        let _ = writeln!(out, "<sub>{}</sub>", self.statistic());
        out
    }

    fn figures_table(&self, out: &mut String) {
        out.push_str(
            "| | base | new | difference | | |\n| --- | ---: | ---: | ---: | ---: | --- |\n",
        );
        for (figure, judged) in &self.whole {
            if judged.difference() == 0 {
                continue;
            }
            let _ = writeln!(
                out,
                "| {} | {} | {} | {} | {} | {} |",
                figure.title(),
                value(*figure, judged.base),
                value(*figure, judged.new),
                difference(*figure, judged),
                percent(judged),
                verdict(*figure, judged),
            );
        }
        out.push('\n');
    }

    fn changes_table(&self, out: &mut String, what: What) {
        let all: Vec<&Change> = self.of_kind(what).collect();
        if all.is_empty() {
            return;
        }
        let shown = all.len().min(self.ask.top);
        let fold = shown > OPEN || matches!(what, What::New | What::Gone);
        let of = if shown == all.len() {
            shown.to_string()
        } else {
            format!("{shown} of {}", units::count(all.len() as u64))
        };
        if fold {
            let _ = writeln!(out, "<details><summary>{} ({of})</summary>\n", what.name());
        } else {
            let _ = writeln!(out, "**{}** ({of})\n", what.name());
        }
        out.push_str("| process | below | base | new | wall | CPU | run queue | memory |\n");
        out.push_str("| --- | --- | ---: | ---: | ---: | ---: | ---: | ---: |\n");
        for change in all.into_iter().take(shown) {
            let side = |side: &std::collections::BTreeMap<Figure, u64>| {
                let wall = side.get(&Figure::Wall);
                wall.map(|ns| units::time(*ns)).unwrap_or_default()
            };
            let time = |figure| signed(change.value(figure), units::time);
            let memory = change.judged.get(&Figure::Rss);
            let _ = writeln!(
                out,
                "| {} | {} | {} | {} | {} | {} | {} | {} |",
                code(&change.label),
                code(&units::shorten(&change.above.join(" › "), 60)),
                side(&change.base),
                side(&change.new),
                time(Figure::Wall),
                time(Figure::OnCpu),
                time(Figure::RunQueue),
                memory.map_or(String::new(), |judged| difference(Figure::Rss, judged)),
            );
        }
        out.push_str(if fold { "\n</details>\n\n" } else { "\n" });
    }

    fn loads_table(&self, out: &mut String) {
        if self.loads.is_empty() {
            return;
        }
        out.push_str("| the machine | base | new | difference |\n| --- | ---: | ---: | ---: |\n");
        for (load, judged) in &self.loads {
            let _ = writeln!(
                out,
                "| {} | {} | {} | {} |",
                load.title(),
                units::time(judged.base),
                units::time(judged.new),
                signed(judged.difference(), units::time),
            );
        }
        out.push('\n');
    }

    fn demands_table(&self, out: &mut String) {
        if self.demands.is_empty() {
            return;
        }
        out.push_str("| disks, network, memory | base | new | difference |\n");
        out.push_str("| --- | ---: | ---: | ---: |\n");
        for (demand, judged) in &self.demands {
            let _ = writeln!(
                out,
                "| {} | {} | {} | {} |",
                demand.title(),
                demand.show(judged.base),
                demand.show(judged.new),
                demand.change(judged),
            );
        }
        out.push('\n');
    }

    fn calls_table(&self, out: &mut String) {
        if self.calls.is_empty() {
            return;
        }
        out.push_str("<details><summary>system calls</summary>\n\n");
        out.push_str("| system call | calls | base | new | time |\n");
        out.push_str("| --- | ---: | ---: | ---: | ---: |\n");
        for call in self.calls.iter().take(self.ask.top) {
            let _ = writeln!(
                out,
                "| {} | {} → {} | {} | {} | {} |",
                code(&call.name),
                units::count(call.count.base),
                units::count(call.count.new),
                units::time(call.time.base),
                units::time(call.time.new),
                signed(call.time.difference(), units::time),
            );
        }
        out.push_str("\n</details>\n\n");
    }

    fn functions_table(&self, out: &mut String) {
        let functions = self.functions.iter().flatten();
        let mut functions = functions.take(self.ask.top).peekable();
        if functions.peek().is_none() {
            return;
        }
        let change = |it: &Noisy| match it.differs(self.ask.least) {
            true => signed(it.time.difference(), units::time),
            false => String::new(),
        };
        out.push_str("<details><summary>functions on a CPU</summary>\n\n");
        out.push_str("| function | in | program | self base | new | self | total |\n");
        out.push_str("| --- | --- | --- | ---: | ---: | ---: | ---: |\n");
        for it in functions {
            let _ = writeln!(
                out,
                "| {} | {} | {} | {} | {} | {} | {} |",
                code(&it.name.function),
                code(&it.name.binary),
                code(&it.program),
                units::time(it.own.time.base),
                units::time(it.own.time.new),
                change(&it.own),
                change(&it.total),
            );
        }
        let _ = writeln!(out, "\n{RULE}\n\n</details>\n");
    }

    fn steps_table(&self, out: &mut String) {
        if self.steps.is_empty() {
            return;
        }
        out.push_str("<details><summary>by step</summary>\n\n");
        out.push_str("| step | base | new | wall | CPU | run queue |\n");
        out.push_str("| --- | ---: | ---: | ---: | ---: | ---: |\n");
        for step in self.steps.iter().take(self.ask.top) {
            let change = |judged: Option<&Judged>| {
                judged.map_or("?".into(), |judged| {
                    signed(judged.difference(), units::time)
                })
            };
            let _ = writeln!(
                out,
                "| {} | {} | {} | {} | {} | {} |",
                code(&step.name),
                units::time(step.wall.base),
                units::time(step.wall.new),
                change(Some(&step.wall)),
                change(step.on_cpu.as_ref()),
                change(step.starved.as_ref()),
            );
        }
        out.push_str("\n</details>\n\n");
    }

    fn programs_table(&self, out: &mut String) {
        if self.programs.is_empty() {
            return;
        }
        out.push_str("<details><summary>by program</summary>\n\n");
        out.push_str("| program | count | CPU base | new | CPU | critical path |\n");
        out.push_str("| --- | ---: | ---: | ---: | ---: | ---: |\n");
        for program in self.programs.iter().take(self.ask.top) {
            let path = program.path.as_ref().map_or(0, Judged::difference);
            let _ = writeln!(
                out,
                "| {} | {} → {} | {} | {} | {} | {} |",
                code(&program.name),
                units::count(program.count.0),
                units::count(program.count.1),
                units::time(program.on_cpu.base),
                units::time(program.on_cpu.new),
                signed(program.on_cpu.difference(), units::time),
                signed(path, units::time),
            );
        }
        out.push_str("\n</details>\n\n");
    }
}
