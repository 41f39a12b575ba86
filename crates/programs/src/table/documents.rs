//! The rows of the table of known programs for programs that typeset documents.

use crate::tools::{KnownProgram, PROGRAM};

pub(super) const ROWS: &[KnownProgram] = &[
    // References, indexes and bibliographies are only right when a further run changes none of them, so scripts repeat
    // these programs.
    KnownProgram {
        names: "pdflatex latex lualatex xelatex platex uplatex pdftex xetex luatex luahbtex \
                bibtex biber makeindex xindy context texi2dvi tectonic",
        converges: true,
        ..PROGRAM
    },
];
