//! Finds the parts of a build that end at a set time by the clock. Such parts take as long on free CPUs as on busy
//! ones.

use super::deadlines::{deadline, measurement, Deadline, Measurement};
use super::facts::BuildFacts;
use super::open;
use super::verdict::OpenPoint;

/// The parts of a build that end by the clock.
pub(super) struct Clocks {
    deadline: Option<Deadline>,
    measurement: Option<Measurement>,
}

impl Clocks {
    pub fn of(facts: &BuildFacts<'_>) -> Clocks {
        Clocks {
            deadline: deadline(facts),
            measurement: measurement(facts),
        }
    }

    /// The time in nanoseconds for which the critical path waited for a CPU while a part of the build ran that ends by
    /// the clock. Without these waits, the build would take just as long.
    pub fn queued(&self) -> u64 {
        let deadline = self.deadline.as_ref().map(|deadline| deadline.queued);
        let measurement = self.measurement.as_ref().map(|own| own.queued);
        deadline.max(measurement).unwrap_or(0)
    }

    /// The open point of the verdict for the part that ends by the clock. A program that measures for a set time has
    /// timers for that time, so they have no point of their own.
    pub fn open_point(&self, facts: &BuildFacts<'_>) -> Option<OpenPoint> {
        match (&self.measurement, &self.deadline) {
            (Some(measurement), _) => Some(open::measurement(facts, measurement)),
            (None, Some(deadline)) => open::deadline(facts, deadline),
            (None, None) => None,
        }
    }
}
