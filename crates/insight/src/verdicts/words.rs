//! Puts the verdict on a step into words.

use super::{StepVerdict, WallPart};
use tr_text::units;

impl StepVerdict {
    /// The name of the part of a step's wall time that the verdict names, for JSON, CSV and exports.
    pub fn name(&self) -> String {
        self.part.key()
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

    /// The words for the CPU time that the step wanted and the CPU time that it had, with the share in percent.
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
