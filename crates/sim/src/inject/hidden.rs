//! Leaves switches out of a simulated recording, like the kernel of a virtual machine that does not
//! report all of them.

use tr_format::event::SchedKind;

use super::injected::Injected;
use crate::draw::Draw;
use crate::recording::Recording;

/// Leaves some switches out of a simulated recording. A switch is the switch-out of one task and the switch-in of
/// another. All wakings stay.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hidden {
    /// The share of switches that are left out of the simulated recording, in 1/1000.
    pub per_mille: u16,
}

impl Hidden {
    pub(crate) fn apply(&self, recording: &mut Recording, draw: &mut Draw) -> Option<Injected> {
        let mut switches = 0;
        for ring in &mut recording.cpus {
            ring.retain(|written| {
                let switch = matches!(written.event.kind, SchedKind::Switch(_));
                let hide = switch && draw.chance(self.per_mille);
                switches += u64::from(hide);
                !hide
            });
        }
        (switches > 0).then_some(Injected::Hidden { switches })
    }
}
