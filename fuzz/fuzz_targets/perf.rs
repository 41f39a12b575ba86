#![no_main]

use tr_analyze::{analyze, Options};
use tr_format::reader::{End, Trace};
use tr_format::source::Source;
use tr_import::perf::Perf;

// A file of `perf sched record`. What is imported is an intact trace.
libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    let Ok(perf) = Perf::read(data, "0") else {
        return;
    };
    let Ok((bytes, _)) = perf.write(Vec::new()) else {
        return;
    };
    let trace = Trace::open(Source::bytes(bytes)).expect("a trace");
    assert_eq!(trace.end(), &End::Complete);
    let _ = analyze(&trace, &Options::default());
});
