//! Runs every subcommand that reads a recording, with its options, on recordings with false contents that would take
//! much memory and time: very many spans, and times up to the largest one.
#![allow(clippy::unwrap_used, clippy::indexing_slicing)]

use std::io::{sink, Write};

use regex::bytes::Regex;
use tr_analyze::Options;
use tr_compare::diff::benchmarks::Service;
use tr_compare::diff::{self, Ask as DiffAsk, Run};
use tr_compare::pipeline::{Job, Pipeline};
use tr_export::dataset;
use tr_export::dataset::Place;
use tr_export::perfetto::TrackOptions;
use tr_export::{Format, Settings, Weight};
use tr_format::event::{CpuId, Tgid};
use tr_format::reader::Trace;
use tr_format::source::Source;
use tr_insight::views::query::{By, Filter, Group, Sort};
use tr_insight::Recording;
use tr_predict::{page, Predictor, Wanted};
use tr_programs::outline::{Child, Outline, ScriptPart};
use tr_report::reports::ci_tracer;
use tr_report::reports::{Ask, ReportKind, View};
use tr_report::summary::{Links, Summary};
use tr_report::{html, json, warnings};
use tr_text::escape;
use tr_text::style::Style;

use crate::lying::mass_file;
use crate::targets::Input;

/// Checks that a text is escaped as it must be for a terminal or a log.
fn log(text: &str) {
    let shown = escape::page(text).into_owned();
    assert_eq!(escape::page(&shown), shown);
}

pub fn commands(data: &[u8]) {
    let script = ScriptPart::new(Outline::read(data).into(), Default::default());
    let children = [Some(1), Some(0), None].map(|status| Child {
        status,
        ..Child::default()
    });
    script.course(&children, 1, &mut 1_000_000);
    let mut input = Input(data);
    let way = input.byte();
    let (from, length) = (input.number(), input.number());
    let options = Options {
        from: Some(from).filter(|from| *from != 0),
        to: Some(from.saturating_add(length)).filter(|_| length != 0),
        cpu: Some(CpuId(u16::from(way >> 6))).filter(|_| way & 0x20 != 0),
        timeline: true,
        scratch: None,
        samples: true,
        without_fast_path: false,
    };
    let (filter, ask) = (filter(&mut input), ask(&mut input));
    let wanted = wanted(&mut input);
    let style = Style {
        width: usize::from(input.byte()),
        color: way & 0x10 != 0,
        markdown: false,
        ascii: way & 0x20 != 0,
    };
    let trace = Trace::open(Source::bytes(mass_file(&mut input))).unwrap();
    let recording = Recording::from(tr_analyze::analyze(&trace, &options));
    let chosen = filter.apply(&recording);
    let view = View::new(&recording, &chosen, "x", &ask);
    match way & 0xf {
        0 => drop(html::render(&recording, "x").unwrap()),
        1 => compare(&recording, &ask, &style),
        2 | 3 => exports(&view, &trace, way),
        4 => summary(&view, &style),
        5..=8 => predict(&recording, wanted, &style),
        9 => pipeline(&recording),
        10 => {
            let place = Place::of(trace.meta(), None, None);
            for table in dataset::tables(&recording, &chosen, &place) {
                dataset::file(&table).unwrap();
            }
            ci_tracer::render(&view).unwrap();
        }
        11 => json::lines(&view, &mut sink()).unwrap(),
        _ => reports(&view, &style, usize::from(way >> 4)),
    }
}

fn filter(input: &mut Input) -> Filter {
    let what = input.byte();
    Filter {
        argv: (what & 1 != 0).then(|| Regex::new("x|a.*b").unwrap()),
        pid: (what & 2 != 0).then(|| Tgid(input.number() as u32)),
        failed: what & 4 != 0,
        min: if what & 8 != 0 { input.number() } else { 0 },
        step: (what & 0x10 != 0).then(|| "0".to_owned()),
        ..Filter::default()
    }
}

fn one<T: Copy>(all: &[T], number: u8) -> Option<T> {
    all.get(usize::from(number)).copied()
}

fn ask(input: &mut Input) -> Ask {
    let what = input.byte();
    Ask {
        top: (what & 1 != 0).then(|| usize::from(input.byte())),
        sort: one(&Sort::ALL, input.byte()),
        by: one(&By::ALL, input.byte()),
        functions: what & 2 != 0,
        groups: vec![Group::parse("a=argv:x").unwrap()],
        // The command line accepts no shorter interval than 1,000 ns.
        interval: (what & 4 != 0).then(|| input.number().max(1_000)),
        cpu: (what & 8 != 0).then(|| CpuId(u16::from(input.byte()))),
        failed: what & 0x10 != 0,
        min: if what & 0x20 != 0 { input.number() } else { 0 },
        pid: (what & 0x40 != 0).then(|| Tgid(input.number() as u32)),
        step: (what & 0x80 != 0).then(|| "0".to_owned()),
    }
}

/// Makes options of `tr predict` from the input.
fn wanted(input: &mut Input) -> Wanted {
    let (what, more) = (input.byte(), input.byte());
    let regex = || Regex::new("x").unwrap();
    let factor = |byte: u8| (f64::from(byte) + 1.0) / 32.0;
    Wanted {
        cpus: (what & 1 != 0).then(|| input.number().clamp(1, 4096)),
        jobs: (what & 2 != 0).then(|| input.number().clamp(1, 65536)),
        quota: (what & 4 != 0).then(|| input.number().clamp(10, 10_000_000)),
        faster: if what & 8 != 0 {
            vec![("x".to_owned(), factor(input.byte()))]
        } else {
            Vec::new()
        },
        without: if what & 0x10 != 0 {
            vec![regex()]
        } else {
            Vec::new()
        },
        cached: if what & 0x20 != 0 {
            vec![(regex(), f64::from(input.byte()) / 255.0)]
        } else {
            Vec::new()
        },
        disk: (what & 0x40 != 0).then(|| factor(input.byte())),
        network: (what & 0x80 != 0).then(|| factor(input.byte())),
        alone: more & 1 != 0,
        longest_first: more & 2 != 0,
        shards: (more & 4 != 0).then(|| u64::from(input.byte() % 15) + 2),
        table: more & 8 != 0,
        price: (more & 0x10 != 0).then_some(0.004),
    }
}

fn predict(recording: &Recording, wanted: Wanted, style: &Style) {
    let predictor = match Predictor::new(recording, wanted) {
        Ok(predictor) => predictor,
        Err(why) => return log(&why.to_string()),
    };
    let forecast = predictor.forecast(recording);
    log(&forecast.page().text(style));
    forecast.json();
    forecast.csv().unwrap();
    page(&predictor, &recording.analysis, &forecast).unwrap();
}

fn pipeline(recording: &Recording) {
    let jobs = ["a", "b"].map(|name| Job::of(recording, name));
    let jobs = jobs.into_iter().flatten().collect();
    if let Ok(pipeline) = Pipeline::new(jobs, None, &[]) {
        log(&pipeline.page().text(&Style::PLAIN));
        tr_text::json::document(&pipeline.json(), true).unwrap();
        pipeline.html();
    }
}

fn summary(view: &View<'_>, style: &Style) {
    let summary = Summary::new(view);
    let links = Links {
        page: Some("https://x/y"),
        artifact: None,
    };
    log(&summary.page(style, links).text(style));
    summary.markdown(links);
    assert!(summary.json(view.analysis).unwrap().len() <= 8 << 10);
    summary.github();
    summary.metrics(view.analysis);
}

fn compare(recording: &Recording, ask: &Ask, style: &Style) {
    let runs = |count| (0..count).map(|_| Run::new("x", recording)).collect();
    let ask = DiffAsk {
        top: ask.rows(),
        least: ask.min,
        gate: None,
        strict: ask.failed,
    };
    let diff = diff::compare(runs(1), runs(2), ask);
    log(&diff::text::page(&diff, style).text(style));
    diff::markdown::render(&diff);
    diff::json::render(&diff).unwrap();
    diff::html::render(&diff);
    diff::benchmarks::render(&diff, Service::Action);
    diff::benchmarks::render(&diff, Service::Bencher);
    let _ = diff::explain::folded(&diff);
}

/// Makes a quarter of the reports, chosen by `part`, and renders them in every format.
fn reports(view: &View<'_>, style: &Style, part: usize) {
    let kinds = ReportKind::ALL.into_iter().skip(part % 4).step_by(4);
    let reports: Vec<_> = kinds.map(|kind| (kind.key(), kind.make(view))).collect();
    let markdown = Style {
        markdown: true,
        ..*style
    };
    log(&warnings::page(view.recording).text(style));
    for (_, report) in &reports {
        report.warning(true);
        log(&report.text(style));
        report.page(&markdown).markdown("title", &markdown);
        report.sheet().csv().unwrap();
    }
    json::render(view, &reports, true, &mut sink()).unwrap();
}

/// Counts the bytes that are written. Output from a small trace must stay small, whatever times and numbers the trace
/// claims.
struct Few(usize);

impl Write for Few {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0 += bytes.len();
        assert!(self.0 < 64 << 20, "{} bytes", self.0);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// Writes half of the export formats, chosen by `way`, with every weight.
fn exports(view: &View<'_>, trace: &Trace, way: u8) {
    let some = Format::ALL
        .into_iter()
        .skip(usize::from(way & 1))
        .step_by(2);
    for format in some {
        let weights = if format.has_weights() {
            &Weight::ALL[..]
        } else {
            &Weight::ALL[..1]
        };
        for weight in weights {
            let settings = Settings {
                format,
                weight: *weight,
                shown: TrackOptions {
                    flows: way & 0x10 != 0,
                    detail: if way & 0x20 != 0 { 1_000_000 } else { 0 },
                },
                resource: &[],
                ids: &tr_export::otlp::ids::Ids::recorded(trace.meta()),
            };
            tr_export::write(settings, view, trace, &mut Few(0)).unwrap();
        }
    }
}
