//! Masks the texts of a trace before they are written: [`Writer`](crate::writer::Writer) accepts only
//! [`Masked`] values.
//!
//! A mask sees every text that is stored, because one description of the stored fields serves for writing and for
//! masking. So a new field cannot be left unmasked by mistake.

use std::ops::Deref;

use crate::event::{Clock, CpuId, Ktime, Tgid};
use crate::ids::Argv;
use crate::meta::{
    EndReason, EndedByLimit, Full, Machine, Metadata, Missing, Origin, Scope, StateName, Usage,
};
use crate::scripts::RecordedScript;
use crate::tally::Suspend;
use crate::{Error, Fault};

/// The result of passing the texts of a value to a mask. It is an error if the value cannot be stored at all.
type Step = Result<(), Fault>;

/// A mask, which replaces the secrets in the texts of a trace.
pub trait Mask {
    /// Informs the mask that the next texts belong to this field of the metadata, or to this environment
    /// variable.
    fn field(&mut self, _name: &str) {}

    /// Returns the text with its secrets replaced; `None` if the text has no secrets.
    fn text(&mut self, text: &[u8]) -> Option<Vec<u8>>;

    /// Replaces the secrets in the argument vector of a program.
    fn argv(&mut self, argv: &mut Argv);

    /// Replaces the secrets in a command and its arguments.
    fn command(&mut self, command: &mut Vec<Vec<u8>>);

    /// Replaces the secrets in the text of a shell script, as in the argument of `sh -c`.
    fn script(&mut self, script: &mut Vec<u8>) {
        let mut command = [&b"sh"[..], b"-c", script].map(<[u8]>::to_vec).into();
        self.command(&mut command);
        *script = command.pop().unwrap_or_default();
    }
}

/// A value whose texts were passed to a mask, or whose texts need no mask.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Masked<T>(T);

impl<T: Texts> Masked<T> {
    /// Passes the texts of a value to a mask, which replaces secrets.
    ///
    /// # Errors
    /// The value cannot be stored at all.
    pub fn new(mut value: T, mask: &mut impl Mask) -> Result<Masked<T>, Error> {
        value.pass(mask).map_err(|fault| fault.at(0, 0))?;
        Ok(Masked(value))
    }
}

impl Masked<Metadata> {
    /// Sets the time at which the recording begins in metadata that was masked. Times are no texts, so the
    /// metadata remains masked.
    #[must_use]
    pub fn beginning(mut self, start: Ktime, start_clock: Clock) -> Masked<Metadata> {
        self.0.start = start;
        self.0.start_clock = start_clock;
        self
    }
}

impl<T> Masked<T> {
    /// Declares that the texts of a value need no mask. The texts of a copied trace, for example, were masked
    /// before, and the texts of a simulation belong to no real program.
    pub fn trusted(value: T) -> Masked<T> {
        Masked(value)
    }

    /// Returns the value without the proof that it was masked. Without this proof, the value can no longer be written
    /// to a trace.
    pub fn into_inner(self) -> T {
        self.0
    }
}

impl<T> Deref for Masked<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.0
    }
}

/// A value that can be stored in a trace and whose texts can be passed to a mask, which replaces secrets.
pub trait Texts {
    /// Passes each text of the value to the mask.
    ///
    /// # Errors
    /// The value cannot be stored at all.
    fn pass(&mut self, mask: &mut impl Mask) -> Step;
}

impl Texts for Vec<u8> {
    fn pass(&mut self, mask: &mut impl Mask) -> Step {
        if let Some(masked) = mask.text(self) {
            *self = masked;
        }
        Ok(())
    }
}

impl Texts for String {
    fn pass(&mut self, mask: &mut impl Mask) -> Step {
        if let Some(masked) = mask.text(self.as_bytes()) {
            *self = String::from_utf8_lossy(&masked).into_owned();
        }
        Ok(())
    }
}

impl<T: Texts> Texts for Option<T> {
    fn pass(&mut self, mask: &mut impl Mask) -> Step {
        self.iter_mut().try_for_each(|value| value.pass(mask))
    }
}

impl<T: Texts> Texts for Vec<T> {
    fn pass(&mut self, mask: &mut impl Mask) -> Step {
        self.iter_mut().try_for_each(|value| value.pass(mask))
    }
}

/// Passes a value together with the name of the field or variable that has the value. The mask gets the name first,
/// because the name can show that the value is a secret.
impl<T: Texts> Texts for (String, T) {
    fn pass(&mut self, mask: &mut impl Mask) -> Step {
        self.0.pass(mask)?;
        mask.field(&self.0);
        self.1.pass(mask)
    }
}

impl Texts for Missing {
    fn pass(&mut self, mask: &mut impl Mask) -> Step {
        let Missing { fact: _, why } = self;
        why.pass(mask)
    }
}

impl Texts for Scope {
    fn pass(&mut self, mask: &mut impl Mask) -> Step {
        match self {
            Scope::Cgroup(path) => path.pass(mask),
            Scope::Command | Scope::All | Scope::Pids(_) => Ok(()),
        }
    }
}

impl Texts for RecordedScript {
    fn pass(&mut self, mask: &mut impl Mask) -> Step {
        let RecordedScript { path, text } = self;
        path.pass(mask)?;
        if let Some(text) = text {
            mask.script(text);
        }
        Ok(())
    }
}

impl Texts for StateName {
    fn pass(&mut self, mask: &mut impl Mask) -> Step {
        let StateName {
            bit: _,
            letter: _,
            name,
        } = self;
        name.pass(mask)
    }
}

/// Implements [`Texts`] for types that consist only of numbers, so that a mask has nothing to do.
macro_rules! no_text {
    ($($kind:ty),*) => {
        $(impl Texts for $kind {
            fn pass(&mut self, _: &mut impl Mask) -> Step {
                Ok(())
            }
        })*
    };
}

no_text! {
    bool, u32, u64, (u32, u64),
    Clock, CpuId, EndReason, EndedByLimit, Full, Ktime, Machine, Origin, Suspend, Tgid, Usage
}

#[cfg(test)]
#[path = "tests/mask.rs"]
mod tests;
