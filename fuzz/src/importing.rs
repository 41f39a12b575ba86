//! Reads a file of another tool. All its spans must be placed inside of their processes.
#![allow(clippy::expect_used)] // of our own files

use std::sync::LazyLock;

use tr_analyze::{analyze, Analysis, Options};
use tr_format::reader::Trace;
use tr_format::source::Source;
use tr_insight::steps::Steps;
use tr_placing::{File, ToolFile};

/// The file of another tool. The file has no time of modification, so the analysis cannot use such a time to find the
/// file's place in the recording.
fn tool_file(path: &[u8], file: File) -> ToolFile {
    ToolFile {
        path: path.to_vec(),
        written: None,
        file,
    }
}

/// The recording of the tools whose files are the seeds of this target.
static RECORDING: LazyLock<Analysis> = LazyLock::new(|| {
    let bytes = include_bytes!("../../fixtures/imports/all.bin").to_vec();
    let trace = Trace::open(Source::bytes(bytes)).expect("a trace");
    analyze(&trace, &Options::default())
});

pub fn imports(data: &[u8]) {
    let Ok(Some(file)) = tr_import::read(data) else {
        return;
    };
    let imports = tr_placing::place(&[tool_file(b"tests.xml", file)], &RECORDING);
    for span in &imports.spans {
        let process = RECORDING.process(span.process);
        assert!(process.start <= span.from && span.from <= span.to && span.to <= process.end);
    }
    let _ = Steps::new(&RECORDING, &imports.spans);
}
