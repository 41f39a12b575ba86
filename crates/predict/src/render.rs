//! Writes a forecast of a recorded run's time as text, JSON and CSV.

use rayon::iter::{IntoParallelIterator, ParallelIterator};
use serde_json::{json, Value};
use tr_analyze::Analysis;

use crate::forecast::{parts, Forecast, Interval, ProgramOnPath, Row, MOST_CPUS};
use crate::predictor::Predictor;
use tr_text::page::Page;
use tr_text::style::Paint;
use tr_text::table::{Cell, Table};
use tr_text::units;

/// The numbers of CPUs for which a forecast has table rows: the powers of two from 1 to [`MOST_CPUS`].
pub(super) fn powers() -> impl Iterator<Item = u64> {
    (0..)
        .map(|exponent| 1u64 << exponent)
        .take_while(|cpus| *cpus <= MOST_CPUS)
}

/// The rows of a forecast's table, for the numbers of CPUs by [`powers`]. If the number of jobs can be changed and the
/// user requests none, there are rows for several numbers of jobs, up to twice the CPUs.
pub(super) fn table(predictor: &Predictor, analysis: &Analysis) -> Vec<Row> {
    let all = powers().flat_map(|cpus| {
        // If the number of jobs is above twice the number of CPUs, more jobs only help jobs that wait. So the table has
        // no such rows.
        let counts: Vec<Option<u64>> = match (predictor.wanted.jobs, predictor.has_jobs()) {
            (Some(jobs), true) => vec![Some(jobs)],
            (None, true) => powers()
                .filter(|power| *power <= cpus * 2)
                .map(Some)
                .collect(),
            (_, false) => vec![None],
        };
        counts.into_iter().map(move |jobs| (cpus, jobs))
    });
    let all: Vec<_> = all.collect();
    all.into_par_iter()
        .map(|(cpus, jobs)| {
            let (wall, done) = predictor.interval(cpus, jobs);
            let parts = parts(analysis, &done);
            let memory = predictor.memory(analysis, &done);
            Row {
                memory,
                cpus,
                jobs,
                wall,
                cost: predictor.cost(wall.likely, cpus),
                decides: longest_parts(&parts, 1),
            }
        })
        .collect()
}

/// The row of a forecast's table with the lowest price. Among equally cheap rows it is the fastest one.
pub(super) fn cheapest(rows: &[Row]) -> Option<Row> {
    let costs = rows.iter().filter_map(|row| Some((row.cost?, row)));
    let least = costs.min_by(|(a, row), (b, other)| {
        a.total_cmp(b).then(row.wall.likely.cmp(&other.wall.likely))
    });
    least.map(|(_, row)| row.clone())
}

impl Row {
    /// The sentence about a row of a forecast's table: its machine, its time and its price; `None` without a price.
    fn costs(&self) -> Option<String> {
        let jobs = self.jobs.map(|jobs| format!(" with {jobs} jobs"));
        Some(format!(
            "{}{}, {} ({} to {}), {:.4}",
            units::cpus(self.cpus),
            jobs.unwrap_or_default(),
            units::time(self.wall.likely),
            units::time(self.wall.low),
            units::time(self.wall.high),
            self.cost?
        ))
    }
}

fn columns<'a>() -> Table<'a, Row> {
    Table::new("DECIDES", |row: &Row| row.decides.clone())
        .named("decides")
        .fact("CPUS", "cpus", |row| Cell::Count(row.cpus))
        .fact("JOBS", "jobs", |row| {
            row.jobs.map_or(Cell::Note("as recorded"), Cell::Count)
        })
        .fact("TIME", "wall_ns", |row| Cell::Time(row.wall.likely))
        .fact("LOW", "low_ns", |row| Cell::Time(row.wall.low))
        .fact("HIGH", "high_ns", |row| Cell::Time(row.wall.high))
        .fact("MEMORY ≤", "memory_at_most_bytes", |row| {
            row.memory.map_or(Cell::Unknown, Cell::Bytes)
        })
        .data("cost", |row| json!(row.cost))
}

fn interval(wall: Interval) -> Value {
    json!({"low_ns": wall.low, "likely_ns": wall.likely, "high_ns": wall.high})
}

/// The longest parts of a forecast's critical path, at most `most`, as text.
pub(super) fn longest_parts(parts: &[ProgramOnPath], most: usize) -> String {
    let parts = parts.iter().take(most);
    let parts = parts.map(|part| {
        format!(
            "{} {}",
            units::shorten(part.name.short(), 30),
            units::time(part.ns)
        )
    });
    parts.collect::<Vec<_>>().join(", ")
}

impl Forecast {
    pub fn json(&self) -> Value {
        let knee = self.knee.as_ref();
        let cheapest = self.cheapest.as_ref().map(|row| {
            json!({"cpus": row.cpus, "jobs": row.jobs, "wall": interval(row.wall), "cost": row.cost})
        });
        json!({
            "schema": "tr.predict/1",
            "recorded": {"wall_ns": self.recorded, "cpus": self.recorded_cpus},
            "cpus": self.cpus,
            "jobs": self.jobs,
            "unchanged_ns": self.unchanged,
            "wall": interval(self.wall),
            "on_cpu_ns": self.on_cpu,
            "shards": self.shards,
            "cost": self.cost,
            "cheapest": cheapest,
            "path": self.path,
            "knee": knee.map(|knee| json!({"cpus": knee.cpus, "path": knee.because})),
            "assumed": self.assumed,
            "warnings": self.warnings,
            "table": columns().rows(self.table.iter().cloned()),
        })
    }

    pub fn page(&self) -> Page {
        let mut out = Page::new();
        let wall = units::interval(self.wall.likely, self.wall.low, self.wall.high);
        let from = match self.unchanged {
            Some(unchanged) => format!("unchanged {}", units::time(unchanged)),
            None => units::time(self.recorded),
        };
        let first = format!("{from} → {wall}");
        out.painted(Paint::Bold, &first);
        for text in &self.warnings {
            out.wrapped(Paint::Bad, "! ", text);
        }
        let line = |out: &mut Page, lead: &str, text: &str| {
            out.wrapped(Paint::Plain, lead, text);
        };
        line(&mut out, "  path: ", &longest_parts(&self.path, 4));
        let most = self.wall.likely.saturating_mul(self.cpus);
        let used = units::share(self.on_cpu, most);
        line(
            &mut out,
            "  CPUs: ",
            &format!("{used} of {} in use", units::cpus(self.cpus)),
        );
        if let Some(knee) = &self.knee {
            let more = format!(
                "more than {} would gain nothing: {} decide",
                units::cpus(knee.cpus),
                longest_parts(&knee.because, 2)
            );
            line(&mut out, "  ", &more);
        }
        if let Some(cost) = self.cost {
            let cheapest = self.cheapest.as_ref().and_then(Row::costs);
            let cheapest = cheapest.map_or(String::new(), |row| format!("; cheapest: {row}"));
            line(&mut out, "  cost: ", &format!("{cost:.4}{cheapest}"));
        }
        for assumed in &self.assumed {
            out.wrapped(Paint::Dim, "  assumed: ", assumed);
        }
        if !self.table.is_empty() {
            out.blank();
            let table = columns().column("COST", |row| {
                row.cost
                    .map_or(Cell::Empty, |cost| format!("{cost:.4}").into())
            });
            let table = table.shown(self.cost.is_some());
            out.table(&table, self.table.iter().cloned());
        }
        out
    }

    /// The forecast as CSV: the table of machines, or one row if the user requested no table.
    pub fn csv(&self) -> Result<Vec<u8>, csv::Error> {
        let own = Row {
            cpus: self.cpus,
            jobs: self.jobs,
            wall: self.wall,
            memory: self.memory,
            cost: self.cost,
            decides: longest_parts(&self.path, 1),
        };
        let rows = match self.table.as_slice() {
            [] => std::slice::from_ref(&own),
            rows => rows,
        };
        columns().sheet(rows.iter().cloned()).csv()
    }
}
