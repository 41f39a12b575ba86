//! Makes valid frames with false contents: any events at any times, of tasks that do not exist, with any figures. The
//! checksums are right, so the analysis and every report must cope with them.
#![allow(clippy::unwrap_used, clippy::indexing_slicing)]

use tr_analyze::critical_path;
use tr_analyze::model::Process;
use tr_analyze::Options;
use tr_compare::diff::{self, Ask as DiffAsk, Run};
use tr_export::dataset;
use tr_export::dataset::Place;
use tr_export::perfetto::TrackOptions;
use tr_export::{Format, Settings, Weight};
use tr_format::event::*;
use tr_format::mask::Masked;
use tr_format::meta::{Metadata, Scope, StateName, Summary};
use tr_format::reader::Trace;
use tr_format::source::Source;
use tr_format::writer::Writer;
use tr_insight::recordings::untraced;
use tr_insight::views::query::Filter;
use tr_insight::Recording;
use tr_report::reports::ci_tracer;
use tr_report::reports::View;
use tr_report::reports::{Ask, ReportKind};
use tr_report::summary::{Links, Summary as TenLines};
use tr_report::{html, json};
use tr_text::escape;
use tr_text::style::Style;

use crate::targets::{life_event, sched_event, Input};

/// The largest number of CPUs in a trace.
const CPUS: u16 = 4;

fn meta(input: &mut Input) -> Metadata {
    let state = |bit, name: &str| StateName {
        bit,
        name: name.into(),
        letter: 'X',
    };
    Metadata {
        cpus: (0..CPUS).map(CpuId).collect(),
        page_size: input.number() as u32,
        start: Ktime(input.number()),
        start_clock: Clock {
            boot: input.number(),
            real: input.number(),
        },
        scope: match input.byte() & 1 {
            0 => Scope::Command,
            _ => Scope::All,
        },
        root: Some(Tgid(input.number() as u32)).filter(|root| root.0 != 0),
        states: vec![
            state(1, "TASK_INTERRUPTIBLE"),
            state(2, "TASK_UNINTERRUPTIBLE"),
            state(4, "__TASK_STOPPED"),
            state(0x80, "TASK_DEAD"),
        ],
        ..Metadata::default()
    }
}

/// The largest number of events that [`Masses`] adds to a file.
const MASS: u64 = 8_000;

/// Adds very many events to a file, or moves the time on by much, while using only a few bytes of the input.
struct Masses {
    /// The number of events that may still be added.
    left: u64,
}

impl Masses {
    fn add(&mut self, input: &mut Input, time: &mut u64, writer: &mut Writer<Vec<u8>>) {
        let what = input.byte();
        if what & 1 == 0 {
            *time = time.saturating_add(1 << (what >> 1 & 63));
            return;
        }
        let (step, count) = (u64::from(what >> 6), input.number().min(self.left / 2));
        self.left -= 2 * count;
        let pid = Tid(input.number() as u32);
        let mut add = |kind: LifeKind| {
            *time = time.saturating_add(step);
            let event = LifeEvent {
                time: Ktime(*time),
                cpu: None,
                kind,
            };
            writer
                .life(Stream::Lifecycle, Masked::trusted(event))
                .unwrap();
        };
        let mark = |point, at: u64| {
            LifeKind::Mark(Mark {
                name: format!("{}", if what & 0x20 == 0 { at } else { 0 })
                    .into_bytes()
                    .into(),
                point,
                pid: Some(pid),
                tid: Some(pid).filter(|_| what & 0x10 != 0),
                id: at.to_string().into_bytes().into(),
                ..Mark::default()
            })
        };
        match what >> 1 & 7 {
            // Marks make spans: without an end (0), each inside of the one before it (1), overlapping (2), one after
            // the other (3).
            0 => (0..count).for_each(|at| add(mark(Point::Begin, at))),
            1 => {
                (0..count).for_each(|at| add(mark(Point::Begin, at)));
                (0..count).rev().for_each(|at| add(mark(Point::End, at)));
            }
            2 => {
                (0..count).for_each(|at| add(mark(Point::Begin, at)));
                (0..count).for_each(|at| add(mark(Point::End, at)));
            }
            3 => (0..count).for_each(|at| {
                add(mark(Point::Begin, at));
                add(mark(Point::End, at));
            }),
            // Marks of moments (4). Otherwise new processes, as siblings (5) or in a chain of parents (6), each of
            // which sets a mark by `tr mark`, or new threads (7).
            4 => (0..count).for_each(|at| add(mark(Point::Moment, at))),
            kind => (0..count).for_each(|at| {
                let tid = |number: u64| Tid(pid.0.wrapping_add(number as u32) & 0x3f_ffff);
                let parent = if kind == 6 { tid(at) } else { pid };
                let own = tid(at + 1);
                add(LifeKind::Fork(Fork {
                    parent_tid: parent,
                    parent_tgid: Tgid(parent.0),
                    tid: own,
                    tgid: if kind == 7 {
                        Tgid(parent.0)
                    } else {
                        Tgid(own.0)
                    },
                    ns_tid: own,
                    ..Fork::default()
                }));
                if kind != 7 {
                    let word: &[u8] = if at * 2 < count { b"--begin" } else { b"--end" };
                    add(LifeKind::Exec(Exec {
                        tid: own,
                        tgid: Tgid(own.0),
                        old_tid: own,
                        argv: Argv::from_args([b"tr".as_slice(), b"mark", word, b"x"]),
                        ..Exec::default()
                    }));
                }
            }),
        }
    }
}

/// A file of valid frames with the events that the input describes.
fn file(input: &mut Input) -> Vec<u8> {
    with_masses(input, &mut None)
}

/// Like [`file`], but with very many further events.
pub fn mass_file(input: &mut Input) -> Vec<u8> {
    with_masses(input, &mut Some(Masses { left: MASS }))
}

fn with_masses(input: &mut Input, masses: &mut Option<Masses>) -> Vec<u8> {
    let meta = meta(input);
    let mut writer = Writer::new(Vec::new(), &Masked::trusted(meta.clone())).unwrap();
    let mut time = meta.start.0;
    let mut running = [0; CPUS as usize];
    let mut blocks = 0;
    while !input.0.is_empty() {
        match input.byte() {
            what @ 0..=0xaf => {
                let cpu = u16::from(what) % CPUS;
                let event = sched_event(input, &mut time, &mut running[usize::from(cpu)]);
                writer.sched(CpuId(cpu), event).unwrap();
            }
            what @ 0xb0..=0xf7 => {
                let event = life_event(input, &mut time);
                let stream = match what & 7 {
                    0 => Stream::Recorder,
                    _ => Stream::Lifecycle,
                };
                writer.life(stream, Masked::trusted(event)).unwrap();
            }
            what => match masses {
                Some(masses) if what < 0xff => masses.add(input, &mut time, &mut writer),
                _ if blocks < 64 => {
                    blocks += 1;
                    writer.flush().unwrap();
                }
                _ => {}
            },
        }
    }
    let summary = Summary {
        end: Ktime(time),
        status: Some(0),
        ..Summary::default()
    };
    match time & 7 {
        0 => writer.finish_cut(1, 2, Masked::trusted("why".to_owned())),
        _ => writer.finish(&Masked::trusted(summary)),
    }
    .unwrap()
    .0
}

/// Analyzes the file, and renders the results.
pub fn analysis(data: &[u8]) {
    let mut input = Input(data);
    let (from, length, interval, width) =
        (input.number(), input.number(), input.number(), input.byte());
    let bytes = file(&mut input);
    let trace = Trace::open(Source::bytes(bytes)).unwrap();
    let options = Options {
        from: Some(from).filter(|from| *from != 0),
        to: Some(from.saturating_add(length)).filter(|_| length != 0),
        timeline: true,
        samples: true,
        ..Options::default()
    };
    let analysis = tr_analyze::analyze(&trace, &options);
    for process in &analysis.processes {
        assert!(process.end >= process.start, "{process:?}");
        assert!(process.execs.is_sorted_by_key(|exec| exec.start));
        // No process is its own ancestor.
        let parent = |of: &&Process| of.parent.map(|ix| analysis.process(ix));
        let above = std::iter::successors(Some(process), parent);
        assert!(above.count() <= analysis.processes.len());
    }
    if let Ok(root) = critical_path::root(&analysis) {
        let _ = critical_path::critical_path(&analysis, root);
    }
    let recording = Recording::from(analysis);
    let chosen = Filter::default().apply(&recording);
    // The report over time may have a million rows if the interval is short, which takes seconds. So only one of 64
    // inputs may have an interval shorter than a fiftieth of the recording.
    let least = match width >> 2 {
        0 => 0,
        _ => recording.analysis.wall() / 50,
    };
    let interval = interval.max(least);
    let ask = Ask {
        interval: Some(interval),
        functions: width & 4 != 0,
        ..Ask::default()
    };
    let view = View::new(&recording, &chosen, "x", &ask);
    let style = Style {
        width: usize::from(width),
        color: false,
        markdown: false,
        ascii: false,
    };
    // The renderers take most of the time, so each input uses one of the four groups.
    match width & 3 {
        0 => drop(html::render(&recording, "x").unwrap()),
        1 => compare(&recording, &style),
        2 => exports(&view, &trace),
        _ => {
            reports(&view, &style);
            ten_lines(&view, &style);
        }
    }
}

/// Renders each report of `tr analyze` in each format.
fn reports(view: &View<'_>, style: &Style) {
    let reports: Vec<_> = ReportKind::ALL
        .into_iter()
        .map(|kind| (kind.key(), kind.make(view)))
        .collect();
    for (name, report) in &reports {
        // The text is escaped as when it is written, because a line may begin with a hostile name.
        let text = escape::page(&report.text(style)).into_owned();
        assert_eq!(escape::page(&text), text, "{name}");
        report.sheet().csv().unwrap();
    }
    json::render(view, &reports, true, &mut std::io::sink()).unwrap();
    json::lines(view, &mut std::io::sink()).unwrap();
}

/// Renders `tr summary`, and the page that replaces the reports of an untraced run.
fn ten_lines(view: &View<'_>, style: &Style) {
    let summary = TenLines::new(view);
    let links = Links {
        page: None,
        artifact: None,
    };
    summary.page(style, links).text(style);
    summary.markdown(links);
    if untraced::reason(view.analysis).is_some() {
        tr_report::untraced::page(view.analysis, "x").text(style);
        json::untraced(view.recording, &mut std::io::sink()).unwrap();
    }
}

/// Counts the bytes that are written. Output from a small trace must stay small, whatever times and numbers the trace
/// claims.
struct Few(usize);

impl std::io::Write for Few {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0 += bytes.len();
        assert!(self.0 < 64 << 20, "{} bytes", self.0);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// Writes each format of `tr export` with each weight, the tables of a dataset, and the stream `ci-tracer` of `tr
/// analyze`.
fn exports(view: &View<'_>, trace: &Trace) {
    for format in Format::ALL {
        let weights = if format.has_weights() {
            &Weight::ALL[..]
        } else {
            &Weight::ALL[..1]
        };
        for (weight, detail) in weights
            .iter()
            .flat_map(|weight| [(weight, 0), (weight, 1_000_000)])
        {
            let settings = Settings {
                format,
                weight: *weight,
                shown: TrackOptions {
                    flows: true,
                    detail,
                },
                resource: &[],
                ids: &tr_export::otlp::ids::Ids::recorded(trace.meta()),
            };
            tr_export::write(settings, view, trace, &mut Few(0)).unwrap();
        }
    }
    let place = Place::of(trace.meta(), None, None);
    for table in dataset::tables(view.recording, view.chosen, &place) {
        dataset::file(&table).unwrap();
    }
    ci_tracer::render(view).unwrap();
}

fn compare(recording: &Recording, style: &Style) {
    let run = || vec![Run::new("x", recording)];
    let ask = DiffAsk {
        top: 10,
        least: 0,
        gate: None,
        strict: false,
    };
    let diff = diff::compare(run(), run(), ask);
    diff::text::page(&diff, style).text(style);
    diff::markdown::render(&diff);
    diff::json::render(&diff).unwrap();
    diff::html::render(&diff);
    let _ = diff::explain::folded(&diff);
}
