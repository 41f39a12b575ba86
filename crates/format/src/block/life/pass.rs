//! Passes the texts of an event to a mask.

use crate::codec::{Bytes, Codec, Col, FrameState, Step, Text, TextColumns};
use crate::event::{Argv, CgroupId, LifeEvent, Mark, Tgid, Tid};
use crate::mask::{Mask, Texts};

/// Goes over the fields of an event as if the event were the first one of a frame, because such an event
/// has all of its texts in full.
struct Pass<'a, M> {
    mask: &'a mut M,
    /// The facts that are remembered of the frame's earlier events. It is created on demand, because few kinds of events
    /// need it.
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
            // A mark with all of its fields.
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
