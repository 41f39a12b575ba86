//! The rows of the table of known programs for tools that create, copy, move and remove files.

use crate::tools::{KnownProgram, PROGRAM};

pub(super) const ROWS: &[KnownProgram] = &[KnownProgram {
    names: "rm cp mv ln mkdir rmdir touch chmod chown chgrp truncate unlink \
            grm gcp gmv gln gmkdir grmdir gtouch gchmod",
    handles_files: true,
    ..PROGRAM
}];
