//! Puts the verdict on a step into words.

use serde_json::{json, Value};

use super::{StepVerdict, WallPart};
use tr_text::units;

impl StepVerdict {
    /// The name of the part of a step's wall time that the verdict names, for JSON, CSV
    /// and exports.
    pub fn name(&self) -> String {
        self.part.key()
    }

    pub fn json(&self) -> Value {
        let by = self.by.iter();
        let by: Vec<Value> = by
            .map(|(name, ns)| json!({ "name": name, "ns": ns }))
            .collect();
        json!({
            "is": self.name(),
            "ns": self.ns,
            "had_cpu_ns": self.parts.get(WallPart::Work),
            "wanted_cpu_ns": self.parts.wanted(),
            "suite_percent": self.median,
            "by": by,
            "held_back": self.is_reported,
        })
    }

    /// The words of the verdict on a step, with its evidence, in one sentence.
    pub fn text(&self) -> String {
        let share = units::share(self.ns, self.wall);
        let wall = units::time(self.wall);
        let mut text = format!("{share} of its {wall} went to {}", self.part.title());
        if !self.by.is_empty() {
            let by = self.by.iter();
            let by = by.map(|(name, ns)| format!("{} {}", name.short(), units::time(*ns)));
            text += &format!(" ({})", by.collect::<Vec<_>>().join(", "));
        }
        if self.part.is_starved() {
            text += &self.cpu();
        }
        text
    }

    /// The words for the CPU time that the step wanted and the CPU time that it had, with
    /// the share in percent.
    fn cpu(&self) -> String {
        let had = units::time(self.parts.get(WallPart::Work));
        let wanted = units::time(self.parts.wanted());
        let mut text = format!("; wanted {wanted} of CPU, had {had}");
        if let Some(share) = self.parts.share() {
            text += &format!(" ({share} %");
            if let Some(median) = self.median {
                text += &format!("; its suite's median {median} %");
            }
            text.push(')');
        }
        text
    }
}
