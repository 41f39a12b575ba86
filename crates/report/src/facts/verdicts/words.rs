//! A verdict in words.

use serde_json::{json, Value};

use super::Verdict;
use crate::facts::parts::Part;
use crate::units;

impl Verdict {
    /// What most of the time went to: `starved by other tasks`.
    pub fn title(&self) -> &'static str {
        match self.part {
            Part::Work => "its own work",
            Part::Own => "starved by this build's own tasks",
            Part::Others => "starved by other tasks",
            Part::Quota => "starved by the CPU quota",
            Part::Hypervisor => "starved by the hypervisor",
            Part::Nobody => "starved, by whom is not known",
            part => part.title(),
        }
    }

    /// Its name in JSON, CSV and exports.
    pub fn name(&self) -> String {
        self.part.name().replace('-', "_")
    }

    /// In JSON.
    pub fn json(&self) -> Value {
        let by = self.by.iter();
        let by: Vec<Value> = by
            .map(|(name, ns)| json!({ "name": name, "ns": ns }))
            .collect();
        json!({
            "is": self.name(),
            "ns": self.ns,
            "had_cpu_ns": self.had,
            "wanted_cpu_ns": self.wanted,
            "suite_percent": self.median,
            "by": by,
            "held_back": self.told,
        })
    }

    /// The verdict with its evidence, in one sentence.
    pub fn text(&self) -> String {
        let share = units::share(self.ns, self.wall);
        let wall = units::time(self.wall);
        let mut text = format!("{} for {share} of its {wall}", self.title());
        if !self.by.is_empty() {
            let by = self.by.iter();
            let by = by.map(|(name, ns)| format!("{name} {}", units::time(*ns)));
            text += &format!(" ({})", by.collect::<Vec<_>>().join(", "));
        }
        if self.part.is_starved() {
            text += &self.cpu();
        }
        text
    }

    /// What it had of the CPU time that it wanted.
    fn cpu(&self) -> String {
        let (had, wanted) = (units::time(self.had), units::time(self.wanted));
        let mut text = format!("; wanted {wanted} of CPU, had {had}");
        if let Some(share) = self.share() {
            text += &format!(" ({share} %");
            if let Some(median) = self.median {
                text += &format!("; its suite's median {median} %");
            }
            text.push(')');
        }
        text
    }
}
