//! Knows the name by which the user has called the program, for the command lines and messages that name it.

use std::ffi::OsStr;
use std::fmt::{self, Display, Formatter};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

/// The second name of the program. The program called by it does the same, but passes nothing on to the system's `tr`.
pub const SECOND: &str = "tr-trace";

static BY_SECOND: AtomicBool = AtomicBool::new(false);

/// The name by which the program was called, for messages: `format!("{TR} record")`.
pub const TR: Called = Called;

/// The type of [`TR`].
#[derive(Clone, Copy, Debug)]
pub struct Called;

impl Called {
    /// Whether the program was called by its second name.
    pub fn is_second(self) -> bool {
        BY_SECOND.load(Ordering::Relaxed)
    }

    /// The name by which the program was called: `tr`, or its second name.
    pub fn name(self) -> &'static str {
        if self.is_second() {
            SECOND
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

/// Notes the program's first argument, its own name or path. Without this call, or for any other
/// name than [`SECOND`], the program is `tr`.
pub fn set(program: Option<&OsStr>) {
    let name = program.and_then(|path| Path::new(path).file_name());
    BY_SECOND.store(name == Some(OsStr::new(SECOND)), Ordering::Relaxed);
}
