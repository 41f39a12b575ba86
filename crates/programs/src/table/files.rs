//! The rows of the table of known programs for tools that create, copy, move and remove files.

use crate::tools::{Tool, TOOL};

pub(super) const ROWS: &[Tool] = &[Tool {
    names: "rm cp mv ln mkdir rmdir touch chmod chown chgrp truncate unlink \
            grm gcp gmv gln gmkdir grmdir gtouch gchmod",
    handles_files: true,
    ..TOOL
}];
