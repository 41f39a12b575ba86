//! Keeps the time of the next action of each actor in a simulation, and finds the earliest of them.
//! Actors are the simulated CPUs and the recorder.

/// The number of bits for the actor in a key of the simulation's agenda. The other bits are the
/// time: 2⁵⁴ ns are 208 days.
const ACTOR_BITS: u32 = 10;

/// The time of the next action of an actor that has none planned: it only waits for other actors of the simulation.
pub(crate) const NEVER: u64 = u64::MAX >> ACTOR_BITS;

/// A winner tree over the times of the next actions in a simulation. For equal times the actor with
/// the lowest number comes first, so that a run is repeatable.
#[derive(Debug)]
pub(crate) struct Agenda {
    /// The nodes of the winner tree: `nodes[1]` is the winner, and the second half are the leaves.
    nodes: Vec<u64>,
}

impl Agenda {
    /// An agenda for the simulation's actors 0 to `actors` - 1, of which there are at most 1024.
    pub(crate) fn new(actors: usize) -> Agenda {
        let leaves = actors.next_power_of_two().max(2);
        Agenda {
            nodes: vec![u64::MAX; 2 * leaves],
        }
    }

    /// The time of the earliest next action in the simulation, and the actor that acts then.
    #[inline]
    pub(crate) fn first(&self) -> (u64, usize) {
        let key = self.nodes[1];
        (key >> ACTOR_BITS, (key & ((1 << ACTOR_BITS) - 1)) as usize)
    }

    /// Sets the time of the next action of `actor` in the simulation.
    #[inline]
    pub(crate) fn set(&mut self, actor: usize, time: u64) {
        let mut at = self.nodes.len() / 2 + actor;
        self.nodes[at] = (time.min(NEVER) << ACTOR_BITS) | actor as u64;
        while at > 1 {
            let winner = self.nodes[at].min(self.nodes[at ^ 1]);
            at /= 2;
            if self.nodes[at] == winner {
                break;
            }
            self.nodes[at] = winner;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_earliest_wins_and_ties_go_to_the_lower_number() {
        let mut agenda = Agenda::new(5);
        for (actor, time) in [(0, 50), (1, 20), (2, 20), (3, 90), (4, 30)] {
            agenda.set(actor, time);
        }
        assert_eq!(agenda.first(), (20, 1));
        agenda.set(1, NEVER);
        assert_eq!(agenda.first(), (20, 2));
        agenda.set(2, 100);
        assert_eq!(agenda.first(), (30, 4));
        agenda.set(3, 1);
        assert_eq!(agenda.first(), (1, 3));
    }
}
