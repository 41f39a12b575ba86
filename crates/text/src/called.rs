//! Stores the name by which the user has called the program. Command lines and messages show it.

use std::ffi::OsStr;
use std::fmt::{self, Display, Formatter};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

/// The second name by which the program `tr` can be called. Under this name, the program never passes a call on to the
/// system's `tr`, which translates characters. There is no other difference.
pub const SECOND_NAME: &str = "tr-trace";

static BY_SECOND: AtomicBool = AtomicBool::new(false);

/// The name by which the program was called, for messages: `format!("{TR} record")`.
pub const TR: Called = Called;

/// The type of the constant [`TR`], which is displayed as the name by which the program was called.
#[derive(Clone, Copy, Debug)]
pub struct Called;

impl Called {
    /// Whether the program was called by its second name, `tr-trace`.
    pub fn is_second(self) -> bool {
        BY_SECOND.load(Ordering::Relaxed)
    }

    /// The name by which the program was called: `tr`, or its second name `tr-trace`.
    pub fn name(self) -> &'static str {
        if self.is_second() {
            SECOND_NAME
        } else {
            "tr"
        }
    }
}

impl Display for Called {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// Notes the name or path by which the program was called (its argument 0). If this function is not called, or the
/// name is not [`SECOND_NAME`], the program calls itself `tr`.
pub fn set(program: Option<&OsStr>) {
    let name = program.and_then(|path| Path::new(path).file_name());
    BY_SECOND.store(name == Some(OsStr::new(SECOND_NAME)), Ordering::Relaxed);
}
