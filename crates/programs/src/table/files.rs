//! The rows of the table of known programs for tools that create, copy, move, remove and compress files.

use crate::tools::{Compression, KnownProgram, PROGRAM};

/// The arguments with which programs such as gzip do not compress.
const DECOMPRESS_OPTIONS: &str =
    "-d -dc -cd -dk -df --decompress --uncompress -t --test -l --list -V --version -h --help";

pub(super) const ROWS: &[KnownProgram] = &[
    KnownProgram {
        names: "rm cp mv ln mkdir rmdir touch chmod chown chgrp truncate unlink \
                grm gcp gmv gln gmkdir grmdir gtouch gchmod",
        handles_files: true,
        ..PROGRAM
    },
    KnownProgram {
        names: "gzip pigz zip",
        compression: compression(6, 7),
        ..PROGRAM
    },
    KnownProgram {
        names: "xz lzma pixz lzip plzip",
        compression: compression(6, 4),
        ..PROGRAM
    },
    // All levels of bzip2 take about as long.
    KnownProgram {
        names: "bzip2 pbzip2 lbzip2",
        compression: compression(9, 1),
        ..PROGRAM
    },
    KnownProgram {
        names: "zstd pzstd",
        compression: compression(3, 10),
        ..PROGRAM
    },
    KnownProgram {
        names: "brotli",
        compression: compression(11, 7),
        ..PROGRAM
    },
    KnownProgram {
        names: "7z 7za 7zr 7zz",
        compression: Some(Compression {
            with: "a u",
            without: "",
            level: 5,
            slow: 4,
        }),
        ..PROGRAM
    },
    // dpkg-deb compresses like xz unless an option says otherwise.
    KnownProgram {
        names: "dpkg-deb",
        compression: Some(Compression {
            with: "-b --build",
            without: "-Znone -Zgzip -Zzstd",
            level: 6,
            slow: 4,
        }),
        ..PROGRAM
    },
];

/// How programs such as gzip compress: their level if no argument sets one, and the lowest slow level.
const fn compression(level: u8, slow: u8) -> Option<Compression> {
    Some(Compression {
        with: "",
        without: DECOMPRESS_OPTIONS,
        level,
        slow,
    })
}
