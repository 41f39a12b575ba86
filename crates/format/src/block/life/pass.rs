//! Passes the texts of an event to a mask, which replaces secrets.

use crate::codec::{Bytes, Codec, Col, FrameState, Step, Text, TextColumns};
use crate::event::{Argv, CgroupId, LifeEvent, Mark, Tgid, Tid};
use crate::mask::{Mask, Texts};

/// Passes the texts of an event to a mask, which replaces secrets. The event is treated as the first of a frame,
/// because such an event has all of its texts in full, and none as a reference to an earlier text.
struct Pass<'a, M> {
    mask: &'a mut M,
    /// The state of a frame, which some kinds of events need when their fields are passed to the mask. It is created
    /// only for an event of such a kind.
    known: Option<FrameState>,
}

impl Texts for LifeEvent {
    fn pass(&mut self, mask: &mut impl Mask) -> Step {
        let LifeEvent { time, cpu: _, kind } = self;
        kind.write(&mut Pass { mask, known: None }, *time)
    }
}

impl<M: Mask> Pass<'_, M> {
    fn masked<T: Bytes>(&mut self, value: &mut T) -> Step {
        if let Some(masked) = self.mask.text(value.bytes()) {
            *value = T::fitted(&masked);
        }
        Ok(())
    }
}

impl<M: Mask> Codec for Pass<'_, M> {
    const WRITES: bool = true;

    fn known(&mut self) -> &mut FrameState {
        self.known.get_or_insert_with(|| {
            let mut known = FrameState::new(0);
            // Marks are passed in their long form (`MORE`), which has all fields, so that the mask sees every text of a
            // mark.
            known.kind = Mark::MORE;
            known
        })
    }

    fn task(&mut self, _: &mut Tid, _: &mut Tgid) -> Step {
        Ok(())
    }

    fn new_task(&mut self, _: &mut Tid, _: &mut Tgid) -> Step {
        Ok(())
    }

    fn own_task(&mut self, _: Col, _: Col, _: &mut Tid, _: &mut Tgid) -> Step {
        Ok(())
    }

    fn cgroup(&mut self, _: &mut CgroupId) -> Step {
        Ok(())
    }

    fn byte(&mut self, _: Col, _: &mut u8) -> Step {
        Ok(())
    }

    fn int(&mut self, _: Col, _: &mut u64) -> Step {
        Ok(())
    }

    fn wide(&mut self, _: Col, _: &mut u64) -> Step {
        Ok(())
    }

    fn bytes<T: Bytes>(&mut self, _: TextColumns, _: usize, value: &mut T) -> Step {
        self.masked(value)
    }

    fn opaque<T: Bytes>(&mut self, _: TextColumns, _: usize, _: &mut T) -> Step {
        Ok(())
    }

    fn text<T: Bytes>(&mut self, _: Text, value: &mut T) -> Step {
        self.masked(value)
    }

    fn argv(&mut self, argv: &mut Argv) -> Step {
        self.mask.argv(argv);
        Ok(())
    }
}
