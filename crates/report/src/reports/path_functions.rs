//! Shows the functions in those stack samples that were taken on the critical path: of the thread that the
//! path goes through, at that time.

use serde_json::{json, Value};
use tr_analyze::critical_path::{CriticalPath, OnPath};
use tr_analyze::model::Analysis;
use tr_format::meta::Extra;
use tr_format::stack::Doing;

use crate::functions::{self, FunctionGroups};
use tr_insight::functions::{Functions, StackSamples};
use tr_text::called::TR;
use tr_text::json::with;
use tr_text::page::Page;
use tr_text::style::Style;
use tr_text::table::Sheet;
use tr_text::units;

pub struct PathFunctions {
    /// Whether the recording has stacks sampled on a CPU, and whether it has stacks of waits.
    has: [bool; 2],
    found: OnPath,
    functions: Functions,
}

impl PathFunctions {
    /// Finds the functions in the stacks that were sampled on the critical path; `None` if no stacks were
    /// recorded.
    pub fn new(analysis: &Analysis, path: &CriticalPath) -> Option<PathFunctions> {
        if !analysis.meta.has_stacks() {
            return None;
        }
        let found = path.sampled(&analysis.stacks);
        let samples = found.samples.iter();
        let samples = samples.map(|(sample, ns)| (None, StackSamples::of(analysis, sample, *ns)));
        Some(PathFunctions {
            has: [Extra::Stacks, Extra::OffCpuStacks].map(|extra| analysis.meta.has(extra)),
            functions: Functions::new(&analysis.stacks, samples),
            found,
        })
    }

    /// The report's text on functions of the critical path: how much of the path's time has stack samples,
    /// and the tables of functions.
    pub fn page(&self, style: &Style, limit: Option<usize>) -> Page {
        let mut out = Page::new();
        let OnPath {
            sampled,
            not_sampled,
            waited,
            ..
        } = self.found;
        let words = |ns| match ns {
            0 => "none".to_owned(),
            ns => units::time(ns),
        };
        let [on_cpu, waits] = self.has;
        let of_cpu = if on_cpu {
            format!(
                "{} in steps with a sample, {} in steps without one",
                words(sampled),
                words(not_sampled)
            )
        } else {
            format!("not sampled ({TR} record --stacks)")
        };
        let all = words(sampled.saturating_add(not_sampled));
        out.line(&format!("{all} on a CPU: {of_cpu}"));
        let of_waits = if waits {
            let known = self.functions.sum(Doing::OffCpu).ns;
            format!("{} of it with a stack", words(known))
        } else {
            format!("not sampled ({TR} record --off-cpu-stacks)")
        };
        let waits = format!(
            "{} of waits for anything but a CPU: {of_waits}",
            words(waited)
        );
        if waited > 0 {
            out.line(&waits);
        }
        out.blank();
        out.add(functions::page(
            &self.functions,
            style,
            FunctionGroups::default(),
            limit,
        ));
        out
    }

    /// The functions on the critical path as JSON, with the sampled times of the path and the first `most`
    /// functions.
    pub fn json(&self, most: usize) -> Value {
        let own = json!({
            "sampled_on_cpu_ns": self.found.sampled,
            "other_on_cpu_ns": self.found.not_sampled,
            "waited_ns": self.found.waited,
        });
        with(
            own,
            functions::json(&self.functions, FunctionGroups::default(), most),
        )
    }

    /// The CSV table of the functions on the critical path. It has at most `most` rows of functions.
    pub fn sheet(&self, most: usize) -> Sheet {
        functions::sheet(&self.functions, FunctionGroups::default(), most)
    }
}
