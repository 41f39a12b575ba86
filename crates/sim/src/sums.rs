//! The sums of the times and switches of a simulated task or process.

/// The sums over the life of a simulated task in the recorded span, or over the ended threads of a
/// simulated process. Times are in ns.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Sums {
    /// The times of the simulated task or process in each state, in ns, in the order of
    /// [`crate::task::Bucket`].
    pub(crate) times: [u64; 4],
    /// The times of the simulated task or process by their cause, in ns, in the order of
    /// [`crate::task::StateCause`].
    pub(crate) causes: [u64; 4],
    pub(crate) voluntary: u64,
    pub(crate) involuntary: u64,
}

impl Sums {
    pub(crate) fn add(&mut self, other: &Sums) {
        let own = self.times.iter_mut().chain(&mut self.causes);
        for (own, other) in own.zip(other.times.iter().chain(&other.causes)) {
            *own += other;
        }
        self.voluntary += other.voluntary;
        self.involuntary += other.involuntary;
    }
}
