//! Files of `perf sched record`, built here record by record, and damaged ones.
#![allow(clippy::unwrap_used, clippy::indexing_slicing)] // in a test

use proptest::prelude::*;
use tr_analyze::model::Analysis;
use tr_format::event::{LifeKind, SchedKind, Stream};
use tr_format::reader::Trace;
use tr_format::sched::SchedBlock;
use tr_format::source::Source;
use tr_import::perf::Perf;

/// TID, TIME, CPU, RAW, IDENTIFIER.
const SAMPLE_TYPE: u64 = 1 << 1 | 1 << 2 | 1 << 7 | 1 << 10 | 1 << 16;
const SWITCH: u64 = 372;
const WAKING: u64 = 375;
const EXEC: u16 = 1 << 13;

fn common(name: &str, id: u64) -> String {
    format!(
        "name: {name}\nID: {id}\nformat:\n\
         \tfield:unsigned char common_flags;\toffset:2;\tsize:1;\tsigned:0;\n\
         \tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;\n\n"
    )
}

fn tracing() -> Vec<u8> {
    let switch = common("sched_switch", SWITCH)
        + "\tfield:pid_t prev_pid;\toffset:8;\tsize:4;\tsigned:1;\n\
           \tfield:long prev_state;\toffset:16;\tsize:8;\tsigned:1;\n\
           \tfield:pid_t next_pid;\toffset:12;\tsize:4;\tsigned:1;\n\n\
           print fmt: \"\", __print_flags(REC->prev_state, \"|\", { 0x1, \"S\" }, { 0x2, \"D\" }, \
           { 0x10, \"X\" }, { 0x20, \"Z\" }, { 0x40, \"P\" }, { 0x80, \"I\" }) : \"R\"\n";
    let waking = common("sched_waking", WAKING)
        + "\tfield:pid_t pid;\toffset:8;\tsize:4;\tsigned:1;\n\nprint fmt: \"\"\n";
    let mut out = b"\x17\x08\x44tracing0.6\0\x00\x08".to_vec();
    out.extend(4096_u32.to_le_bytes());
    for name in ["header_page", "header_event"] {
        out.extend(name.as_bytes());
        out.push(0);
        out.extend(0_u64.to_le_bytes());
    }
    out.extend(0_u32.to_le_bytes());
    out.extend(1_u32.to_le_bytes());
    out.extend(b"sched\0");
    out.extend(2_u32.to_le_bytes());
    for format in [switch, waking] {
        out.extend((format.len() as u64).to_le_bytes());
        out.extend(format.as_bytes());
    }
    out
}

/// A file of one attribute a tracepoint, with the ids 1 and 2.
#[derive(Default)]
struct Builder {
    data: Vec<u8>,
}

impl Builder {
    fn record(&mut self, kind: u32, misc: u16, body: &[u8]) -> &mut Builder {
        self.data.extend(kind.to_le_bytes());
        self.data.extend(misc.to_le_bytes());
        self.data.extend((body.len() as u16 + 8).to_le_bytes());
        self.data.extend(body);
        self
    }

    /// A record with its trailer: tid, time, CPU, id.
    fn side(&mut self, kind: u32, misc: u16, body: &[u8], time: u64, cpu: u32) -> &mut Builder {
        let mut body = body.to_vec();
        for part in [0, time, u64::from(cpu), 1] {
            body.extend(part.to_le_bytes());
        }
        self.record(kind, misc, &body)
    }

    fn task(&mut self, kind: u32, ids: [u32; 4], time: u64, cpu: u32) -> &mut Builder {
        let mut body: Vec<u8> = ids.iter().flat_map(|id| id.to_le_bytes()).collect();
        body.extend(time.to_le_bytes());
        self.side(kind, 0, &body, time, cpu)
    }

    /// `ids`: process, task, the parent's process, the parent.
    fn fork(&mut self, [pid, tid, ppid, ptid]: [u32; 4], time: u64) -> &mut Builder {
        self.task(7, [pid, ppid, tid, ptid], time, 0)
    }

    fn exit(&mut self, pid: u32, tid: u32, time: u64, cpu: u32) -> &mut Builder {
        self.task(4, [pid, 1, tid, 1], time, cpu)
    }

    fn comm(&mut self, pid: u32, tid: u32, name: &str, exec: bool, time: u64) -> &mut Builder {
        let mut body = [pid.to_le_bytes(), tid.to_le_bytes()].concat();
        body.extend(name.as_bytes());
        body.resize(body.len() / 8 * 8 + 8, 0);
        // The child of `build` runs on CPU 1.
        let cpu = u32::from(pid == 11);
        self.side(3, if exec { EXEC } else { 0 }, &body, time, cpu)
    }

    fn map(&mut self, pid: u32, file: &str, time: u64) -> &mut Builder {
        let mut body = [pid.to_le_bytes(), pid.to_le_bytes()].concat();
        body.extend([0; 48]);
        body.extend(5_u32.to_le_bytes()); // PROT_READ, PROT_EXEC
        body.extend(2_u32.to_le_bytes());
        body.extend(file.as_bytes());
        body.resize(body.len() / 8 * 8 + 8, 0);
        self.side(10, 0, &body, time, 0)
    }

    fn lost(&mut self, count: u64, time: u64, cpu: u32) -> &mut Builder {
        let body = [0_u64.to_le_bytes(), count.to_le_bytes()].concat();
        self.side(2, 0, &body, time, cpu)
    }

    fn sample(&mut self, id: u64, time: u64, cpu: u32, raw: &[u8]) -> &mut Builder {
        let mut body = Vec::new();
        for part in [id, 0, time, u64::from(cpu)] {
            body.extend(part.to_le_bytes());
        }
        body.extend((raw.len() as u32).to_le_bytes());
        body.extend(raw);
        self.record(9, 0, &body)
    }

    fn switch(&mut self, time: u64, cpu: u32, prev: u32, state: u64, next: u32) -> &mut Builder {
        let mut raw = vec![0; 4];
        for part in [prev, prev, next] {
            raw.extend(part.to_le_bytes());
        }
        raw.extend(state.to_le_bytes());
        self.sample(1, time, cpu, &raw)
    }

    fn waking(&mut self, time: u64, cpu: u32, waker: u32, wakee: u32, flags: u8) -> &mut Builder {
        let mut raw = vec![0, 0, flags, 0];
        raw.extend(waker.to_le_bytes());
        raw.extend(wakee.to_le_bytes());
        self.sample(2, time, cpu, &raw)
    }

    /// The file: header, ids, attributes, data, features.
    fn file(&self) -> Vec<u8> {
        let mut out = b"PERFILE2".to_vec();
        let (ids, attrs, data) = (104_u64, 120_u64, 120 + 2 * 112_u64);
        let size = self.data.len() as u64;
        // TRACING_DATA, CMDLINE.
        let features = 1_u64 << 1 | 1 << 11;
        for part in [
            104,
            112,
            attrs,
            2 * 112,
            data,
            size,
            0,
            0,
            features,
            0,
            0,
            0,
        ] {
            out.extend(u64::to_le_bytes(part));
        }
        out.extend([1_u64.to_le_bytes(), 2_u64.to_le_bytes()].concat());
        for (at, tracepoint) in [SWITCH, WAKING].into_iter().enumerate() {
            let mut attr = vec![0; 96];
            attr[0..8].copy_from_slice(&(2_u64 | 96 << 32).to_le_bytes());
            attr[8..16].copy_from_slice(&tracepoint.to_le_bytes());
            attr[24..32].copy_from_slice(&SAMPLE_TYPE.to_le_bytes());
            attr[40..48].copy_from_slice(&(1_u64 << 18).to_le_bytes());
            out.extend(attr);
            for part in [ids + at as u64 * 8, 8] {
                out.extend(part.to_le_bytes());
            }
        }
        out.extend(&self.data);
        let tracing = tracing();
        let mut cmdline = 5_u32.to_le_bytes().to_vec();
        for arg in ["perf", "sched", "record", "/bin/make", "-j2"] {
            cmdline.extend((arg.len() as u32 + 1).to_le_bytes());
            cmdline.extend(arg.as_bytes());
            cmdline.push(0);
        }
        let mut at = data + size + 32;
        for section in [&tracing, &cmdline] {
            out.extend(at.to_le_bytes());
            out.extend((section.len() as u64).to_le_bytes());
            at += section.len() as u64;
        }
        out.extend(tracing);
        out.extend(cmdline);
        out
    }
}

/// The imported trace.
fn import(file: &[u8]) -> Result<Trace, String> {
    let perf = Perf::read(file, "0").map_err(|error| error.to_string())?;
    let (bytes, _) = perf.write(Vec::new()).map_err(|error| error.to_string())?;
    Ok(Trace::open(Source::bytes(bytes)).unwrap())
}

fn analysis(builder: &Builder) -> Analysis {
    let trace = import(&builder.file()).unwrap();
    tr_analyze::analyze(&trace, &tr_analyze::Options::default())
}

fn lives(trace: &Trace) -> Vec<(u64, LifeKind)> {
    let (mut all, mut events) = (Vec::new(), Vec::new());
    for frame in trace.frames() {
        if !matches!(frame.stream, Stream::Cpu(_)) {
            trace.read_life(frame, &mut events).unwrap();
            all.extend(events.drain(..).map(|event| (event.time.0, event.kind)));
        }
    }
    all
}

/// ```text
/// cpu0  perf-exec=|make ====|__idle__|==make==|        10: COMMAND
/// cpu1  __________|==child====|_____                   11: forked at 200, runs 300 to 700
/// ```
fn build() -> Builder {
    let mut file = Builder::default();
    file.fork([1, 1, 0, 0], 0).comm(1, 1, "init", false, 0);
    file.fork([10, 10, 1, 1], 0)
        .comm(10, 10, "perf-exec", false, 0);
    file.switch(100, 0, 0, 0, 10);
    file.comm(10, 10, "make", true, 150)
        .map(10, "/usr/bin/make", 151);
    file.map(10, "/usr/lib/ld.so", 152);
    file.fork([11, 11, 10, 10], 200);
    file.switch(300, 1, 0, 0, 11);
    file.comm(11, 11, "sh", true, 310)
        .map(11, "/usr/bin/dash", 311);
    file.switch(400, 0, 10, 1, 0);
    file.exit(11, 11, 600, 1);
    file.waking(650, 1, 11, 10, 0);
    file.switch(700, 1, 11, 0x20, 0);
    file.switch(710, 0, 0, 0, 10);
    file.exit(10, 10, 800, 0);
    file.switch(900, 0, 10, 0x10, 0);
    file
}

#[test]
fn times_and_lives_are_those_of_the_records() {
    let analysis = analysis(&build());
    assert!(
        analysis.quality.anomalies.is_empty(),
        "{:?}",
        analysis.quality
    );
    let meta = &analysis.meta;
    assert_eq!((meta.start.0, meta.root.unwrap().0), (150, 10));
    assert_eq!(meta.command, [b"/bin/make".to_vec(), b"-j2".to_vec()]);
    assert_eq!((meta.start_unix(), meta.recorded_by()), (None, "perf"));
    let process = |pid: u32| {
        analysis
            .processes
            .iter()
            .find(|it| it.pid.0 == pid)
            .unwrap()
    };
    let make = process(10);
    let times = (make.times.on_cpu, make.times.run_queue, make.times.sleep);
    assert_eq!(times, (900 - 150 - (710 - 400), 710 - 650, 650 - 400));
    assert_eq!((make.end.0, make.status), (900, None));
    let exec = &make.execs[0];
    assert_eq!(
        (&*exec.filename, exec.argv.args().count()),
        (&b"/usr/bin/make"[..], 2)
    );
    let child = process(11);
    assert_eq!((child.times.on_cpu, child.times.run_queue), (400, 100));
    assert_eq!(
        (child.start.0, child.end.0, child.times.unknown),
        (200, 700, 0)
    );
    // What runs as `sh` is another file.
    assert_eq!(&*child.execs[0].filename, b"sh");
    assert!(child.execs[0].argv.truncated());
    assert_eq!(analysis.totals.exits, 1, "that of COMMAND is the end");
    // init did nothing: nothing is known of it.
    assert_eq!(analysis.processes.len(), 2);
}

#[test]
fn wakings_tell_interrupts_apart() {
    let mut file = build();
    file.waking(905, 0, 0, 11, 0x08).waking(906, 0, 0, 11, 0x10);
    let trace = import(&file.file()).unwrap();
    let (mut block, mut interrupts) = (SchedBlock::default(), 0);
    for frame in trace
        .frames()
        .iter()
        .filter(|it| matches!(it.stream, Stream::Cpu(_)))
    {
        trace.read_sched(frame, &mut block).unwrap();
        interrupts += block
            .iter()
            .filter(|event| matches!(event.kind, SchedKind::Waking { context, .. } if context.is_interrupt()))
            .count();
    }
    assert_eq!(interrupts, 2);
}

#[test]
fn a_thread_that_executes_a_program_takes_over_its_process() {
    let mut file = build();
    file.fork([20, 20, 1, 1], 910).fork([20, 21, 20, 20], 920);
    file.exit(20, 20, 930, 0).comm(20, 20, "new", true, 940);
    let trace = import(&file.file()).unwrap();
    let old = lives(&trace)
        .into_iter()
        .find_map(|(time, kind)| match kind {
            LifeKind::Exec(exec) if time == 940 => Some((exec.old_tid.0, exec.tid.0)),
            _ => None,
        });
    assert_eq!(old, Some((21, 20)));
}

#[test]
fn lost_records_are_a_loss_of_their_cpu_since_its_record_before() {
    let mut file = Builder::default();
    file.switch(100, 0, 0, 0, 10).switch(200, 0, 10, 1, 0);
    file.lost(7, 500, 0).switch(600, 0, 0, 0, 10);
    let analysis = analysis(&file);
    let lost = &analysis.quality.lost;
    let on_cpu = lost
        .iter()
        .find(|span| matches!(span.stream, Stream::Cpu(_)))
        .unwrap();
    assert_eq!(
        (on_cpu.since.0, on_cpu.until.0, on_cpu.count),
        (200, 500, Some(7))
    );
    // Forks may be among them.
    assert!(lost.iter().any(|span| span.stream == Stream::Lifecycle));
}

#[test]
fn an_end_without_its_switch_out_is_at_the_next_switch_of_the_cpu() {
    let mut file = Builder::default();
    file.fork([5, 5, 1, 1], 100).switch(110, 0, 0, 0, 5);
    file.exit(5, 5, 200, 0)
        .switch(300, 0, 0, 0, 6)
        .switch(400, 0, 6, 1, 0);
    let trace = import(&file.file()).unwrap();
    let ends = lives(&trace).into_iter();
    let ends: Vec<u64> = ends
        .filter(|(_, kind)| matches!(kind, LifeKind::End(_)))
        .map(|(time, _)| time)
        .collect();
    assert_eq!(ends, [301]);
}

#[test]
fn what_cannot_be_read_is_refused_with_its_reason() {
    let whole = build().file();
    let refuse = |file: &[u8], why: &str| {
        let said = import(file).map(|_| ()).unwrap_err();
        assert!(said.contains(why), "{said}");
    };
    refuse(b"", "not a file of perf record");
    refuse(b"\x89tr", "not a file of perf record");
    refuse(&[b"2ELIFREP", &whole[8..]].concat(), "big-endian");
    refuse(b"PERFILE2\x10\0\0\0\0\0\0\0rest", "to a pipe");
    refuse(
        &whole[..200],
        "the attributes from byte 120 to 344, the file has 200",
    );
    refuse(&whole[..500], "the data from byte 344 to");
    let mut changed = whole.clone();
    changed[48..56].fill(0); // the data's size
    refuse(&changed, "did not end properly");
    let mut changed = whole.clone();
    changed[72] &= !2; // the feature
    refuse(&changed, "without the tracepoints' formats");
    let mut changed = whole.clone();
    changed[120 + 24] &= !4; // the times
    refuse(&changed, "events without time and CPU");
    let mut none = Builder::default();
    none.waking(1, 0, 1, 2, 0);
    refuse(&none.file(), "no switches");
    let mut alone = Builder::default();
    for at in 0..200 {
        alone.switch(at + 1, 0, 7, 1, 0);
    }
    refuse(&alone.file(), "record with perf sched record, or with -a");
}

/// The file that perf has written here; its tests are in `tests/perf.rs`.
fn recorded() -> Vec<u8> {
    let file = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../fixtures/imports/sched.data"
    );
    std::fs::read(file).unwrap()
}

/// Writes the seed of the fuzz target.
#[test]
#[ignore = "writes into the checkout"]
fn seeds() {
    let corpus = concat!(env!("CARGO_MANIFEST_DIR"), "/../../fuzz/corpus/perf");
    std::fs::create_dir_all(corpus).unwrap();
    std::fs::write(format!("{corpus}/build.data"), build().file()).unwrap();
}

#[test]
fn a_file_cut_off_anywhere_is_refused() {
    let file = recorded();
    for len in (0..file.len()).step_by(997) {
        assert!(import(&file[..len]).is_err(), "{len}");
    }
}

#[test]
fn a_section_beyond_the_file_takes_no_memory() {
    let mut file = recorded();
    let data = u64::from_le_bytes(file[40..48].try_into().unwrap());
    let size = u64::from_le_bytes(file[48..56].try_into().unwrap());
    let features = (data + size) as usize;
    file[features + 8..features + 16].copy_from_slice(&(1_u64 << 60).to_le_bytes());
    assert!(import(&file).is_err());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    /// Any bytes are imported or refused, and what is imported can be analyzed.
    #[test]
    fn damaged_files_do_no_harm(
        built in any::<bool>(),
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..20),
    ) {
        let mut file = if built { build().file() } else { recorded() };
        for (at, byte) in changes {
            let at = at.index(file.len());
            file[at] = byte;
        }
        if let Ok(trace) = import(&file) {
            tr_analyze::analyze(&trace, &tr_analyze::Options::default());
        }
    }
}
