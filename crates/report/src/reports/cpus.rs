//! What the machine did, CPU by CPU: how long this build ran there, how long
//! others did, how long nobody.
//!
//! A recording of COMMAND holds only the switches from and to COMMAND's tasks:
//! between two of them a CPU was idle or ran others, and nobody knows which. A
//! recording of the whole machine (`tr record -a`) knows.

use std::collections::{BTreeMap, HashMap};

use serde::Serialize;
use serde_json::Value;
use tr_analyze::model::{Analysis, CpuFigures, ThreadIx};
use tr_analyze::timeline::{Actor, Bucket};
use tr_format::event::CpuId;
use tr_format::meta::Scope;

use crate::reports::{Report, View};
use crate::style::{Paint, Style};
use crate::table::{Cell, Table};
use crate::{label, units};

/// What one CPU did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Cpu {
    /// Its number; `None` for what ran from before the span to after it: on
    /// which CPU, nobody saw.
    pub cpu: Option<u16>,
    /// How long this build ran there, in ns.
    pub build_ns: u64,
    /// How long others ran there, kernel threads included.
    pub others_ns: Option<u64>,
    /// How long nobody ran there.
    pub idle_ns: Option<u64>,
    /// The rest of the span.
    pub unknown_ns: u64,
    /// Switches away from recorded threads.
    pub switches: u64,
    /// Of them, those that a thread did not ask for.
    pub involuntary: u64,
    /// How often a recorded thread came from another CPU.
    pub migrations: u64,
    /// How often others pushed a thread of this build off.
    pub pushed_off: u64,
    /// How long those threads then waited, in ns.
    pub pushed_off_wait_ns: u64,
}

/// The report.
pub struct Cpus {
    span: u64,
    cpus: Vec<Cpu>,
    /// What others ran, by program: ns.
    others: Vec<(String, u64)>,
    /// Who "this build" is.
    build: &'static str,
    all: bool,
    shown: usize,
}

impl Cpus {
    /// Sums up the timeline.
    pub fn new(view: &View) -> Cpus {
        let analysis = view.analysis;
        let all = analysis.meta.scope == Scope::All && analysis.meta.options.cpus.is_empty();
        let (own, build) = own(view);
        let is_own = |thread: ThreadIx| {
            let thread = analysis.threads.get(thread.0 as usize);
            let process = thread.map(|thread| thread.process.0 as usize);
            process.is_some_and(|at| own.get(at).copied().unwrap_or(false))
        };
        let mut cpus: BTreeMap<Option<CpuId>, Cpu> = BTreeMap::new();
        let mut others: HashMap<usize, u64> = HashMap::new();
        for at in 0..analysis.threads.len() {
            let thread = ThreadIx(u32::try_from(at).unwrap_or(u32::MAX));
            let own = is_own(thread);
            let mut last = None;
            let stretches = analysis.timeline.iter();
            for stretch in stretches.flat_map(|timeline| timeline.of(thread)) {
                match stretch.doing {
                    Bucket::OnCpu(cpu) => {
                        last = cpu;
                        let entry = cpus.entry(cpu).or_default();
                        if own {
                            entry.build_ns += stretch.length();
                            continue;
                        }
                        *entry.others_ns.get_or_insert(0) += stretch.length();
                        let process = analysis.threads.get(at).map(|t| t.process.0 as usize);
                        if let Some(process) = process {
                            *others.entry(process).or_default() += stretch.length();
                        }
                    }
                    Bucket::RunQueue { preempted: true } if own => {
                        let by_others = match stretch.who {
                            Actor::Outside(_) => true,
                            Actor::Thread(thread) => !is_own(thread),
                            Actor::Unknown | Actor::Interrupt => false,
                        };
                        if by_others && last.is_some() {
                            let entry = cpus.entry(last).or_default();
                            entry.pushed_off += 1;
                            entry.pushed_off_wait_ns += stretch.length();
                        }
                    }
                    _ => {}
                }
            }
        }
        let span = analysis.end.since(analysis.start);
        let mut figures: BTreeMap<Option<CpuId>, CpuFigures> = BTreeMap::new();
        let known = analysis.cpus.iter();
        figures.extend(known.map(|(cpu, figures)| (Some(*cpu), *figures)));
        if let Some(only) = view.ask.cpu {
            figures.retain(|cpu, _| *cpu == Some(only));
            cpus.retain(|cpu, _| *cpu == Some(only));
        }
        for cpu in figures.keys() {
            cpus.entry(*cpu).or_default();
        }
        let rows = cpus.into_iter().map(|(cpu, mut row)| {
            let figures = figures.get(&cpu).copied().unwrap_or_default();
            row.cpu = cpu.map(|cpu| cpu.0);
            row.idle_ns = (all && figures.idle_known).then_some(figures.idle);
            row.others_ns = if all {
                Some(row.others_ns.unwrap_or(0))
            } else {
                None
            };
            row.switches = figures.switches.voluntary + figures.switches.involuntary;
            row.involuntary = figures.switches.involuntary;
            row.migrations = figures.migrations;
            let known = row.build_ns + row.others_ns.unwrap_or(0) + row.idle_ns.unwrap_or(0);
            row.unknown_ns = match cpu {
                Some(_) => span.saturating_sub(known),
                None => 0,
            };
            row
        });
        Cpus {
            span,
            cpus: rows.collect(),
            others: by_program(analysis, others),
            build,
            all,
            shown: view.ask.top,
        }
    }

    /// All CPUs together.
    fn sum(&self) -> Cpu {
        let add = |a: Option<u64>, b: Option<u64>| Some(a? + b?);
        let zero = Cpu {
            others_ns: Some(0),
            idle_ns: Some(0),
            ..Cpu::default()
        };
        self.cpus.iter().fold(zero, |sum, cpu| Cpu {
            cpu: None,
            build_ns: sum.build_ns + cpu.build_ns,
            others_ns: add(sum.others_ns, cpu.others_ns),
            idle_ns: match cpu.cpu {
                Some(_) => add(sum.idle_ns, cpu.idle_ns),
                None => sum.idle_ns,
            },
            unknown_ns: sum.unknown_ns + cpu.unknown_ns,
            switches: sum.switches + cpu.switches,
            involuntary: sum.involuntary + cpu.involuntary,
            migrations: sum.migrations + cpu.migrations,
            pushed_off: sum.pushed_off + cpu.pushed_off,
            pushed_off_wait_ns: sum.pushed_off_wait_ns + cpu.pushed_off_wait_ns,
        })
    }

    fn cells(cpu: &Cpu) -> Vec<Cell> {
        vec![
            Cell::Time(cpu.build_ns),
            Cell::known(cpu.others_ns, Cell::Time),
            Cell::known(cpu.idle_ns, Cell::Time),
            Cell::Time(cpu.unknown_ns),
            Cell::Count(cpu.switches),
            Cell::Count(cpu.involuntary),
            Cell::Count(cpu.migrations),
            Cell::Count(cpu.pushed_off),
            Cell::Time(cpu.pushed_off_wait_ns),
        ]
    }
}

/// Whose time is this build's, and what that is called: what was asked for; of a
/// recording of the whole machine COMMAND and its descendants; otherwise all.
fn own(view: &View) -> (Vec<bool>, &'static str) {
    let analysis = view.analysis;
    let mut own = vec![false; analysis.processes.len()];
    if view.chosen.len() < own.len() {
        for at in view.chosen {
            if let Some(own) = own.get_mut(*at) {
                *own = true;
            }
        }
        return (own, "the chosen processes");
    }
    let root = analysis
        .meta
        .root
        .filter(|_| analysis.meta.scope == Scope::All);
    let all = analysis.processes.iter().enumerate();
    let root = root.and_then(|root| all.clone().find(|(_, process)| process.pid == root));
    let Some((root, _)) = root else {
        return (vec![true; own.len()], "what was recorded");
    };
    let mut open = vec![root];
    while let Some(at) = open.pop() {
        match own.get_mut(at) {
            Some(own) if !*own => *own = true,
            _ => continue,
        }
        let children = analysis.processes.get(at).map(|p| p.children.iter());
        open.extend(children.into_iter().flatten().map(|child| child.0 as usize));
    }
    (own, "COMMAND and its descendants")
}

/// What the processes with these times ran, the longest first.
fn by_program(analysis: &Analysis, times: HashMap<usize, u64>) -> Vec<(String, u64)> {
    let mut programs: BTreeMap<String, u64> = BTreeMap::new();
    for (at, ns) in times {
        let process = analysis.processes.get(at);
        let name = process.map(label::program).unwrap_or_default();
        *programs.entry(name).or_default() += ns;
    }
    let mut programs: Vec<(String, u64)> = programs.into_iter().collect();
    programs.sort_by(|a, b| b.1.cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
    programs
}

impl Report for Cpus {
    fn text(&self, style: &Style) -> String {
        let mut out = String::new();
        let title = format!(
            "What the CPUs did in {}; \"build\" is {}",
            units::time(self.span),
            self.build
        );
        style.line(&mut out, &title);
        let rest = if self.all {
            "unknown"
        } else {
            "idle or others"
        };
        let bars = style.width >= 110;
        let mut table = Table::new().words("CPU", "").column("build", "");
        table = table.column("", "");
        if bars {
            table = table.words("", "");
        }
        if self.all {
            table = table.column("others", "").column("idle", "");
        }
        let mut table = table
            .column(rest, "")
            .column("switches", "")
            .column("moves", "")
            .column("pushed off", "")
            .name("then waited", "");
        let mut rows: Vec<(String, Cpu)> = Vec::new();
        for cpu in &self.cpus {
            let name = cpu.cpu.map_or("?".into(), |cpu| cpu.to_string());
            rows.push((name, *cpu));
        }
        if rows.len() > 1 {
            rows.push(("all".into(), self.sum()));
        }
        let single = self.cpus.iter().filter(|cpu| cpu.cpu.is_some()).count();
        for (name, cpu) in rows {
            let of = if name == "all" {
                self.span.saturating_mul(single as u64)
            } else {
                self.span
            };
            let mut row = vec![
                Cell::Text(name),
                Cell::Time(cpu.build_ns),
                Cell::Share(cpu.build_ns, of),
            ];
            if bars {
                row.push(Cell::Text(style.bar(cpu.build_ns, of, 16)));
            }
            if self.all {
                row.push(Cell::known(cpu.others_ns, Cell::Time));
                row.push(Cell::known(cpu.idle_ns, Cell::Time));
            }
            row.extend([
                Cell::Time(cpu.unknown_ns),
                Cell::Count(cpu.switches),
                Cell::Count(cpu.migrations),
                Cell::Count(cpu.pushed_off),
            ]);
            let waited = units::time(cpu.pushed_off_wait_ns);
            table.row(row, waited, Paint::Plain);
        }
        out.push_str(&table.text(style, 0));
        if self.all {
            let parts: Vec<String> = self
                .others
                .iter()
                .take(self.shown)
                .map(|(name, ns)| format!("{name} {}", units::time(*ns)))
                .collect();
            if !parts.is_empty() {
                style.items(&mut out, "others   ", &parts, " · ");
            }
        } else {
            let hint = "whether a CPU was idle or ran others is known from: tr record -a";
            style.line(&mut out, hint);
        }
        out
    }

    fn json(&self) -> serde_json::Result<Option<Value>> {
        #[derive(Serialize)]
        struct All<'a> {
            span_ns: u64,
            build: &'a str,
            cpus: &'a [Cpu],
            others: Vec<Other<'a>>,
        }
        #[derive(Serialize)]
        struct Other<'a> {
            program: &'a str,
            on_cpu_ns: u64,
        }
        serde_json::to_value(All {
            span_ns: self.span,
            build: self.build,
            cpus: &self.cpus,
            others: self
                .others
                .iter()
                .map(|(program, ns)| Other {
                    program,
                    on_cpu_ns: *ns,
                })
                .collect(),
        })
        .map(Some)
    }

    fn csv(&self) -> Result<Vec<u8>, csv::Error> {
        let mut table = Table::keyed([
            "cpu",
            "build_ns",
            "others_ns",
            "idle_ns",
            "unknown_ns",
            "switches",
            "involuntary",
            "migrations",
            "pushed_off",
            "pushed_off_wait_ns",
        ]);
        for cpu in &self.cpus {
            let mut row = vec![Cell::known(cpu.cpu, |cpu| Cell::Id(u32::from(cpu)))];
            row.extend(Cpus::cells(cpu));
            table.record(row);
        }
        table.csv()
    }
}
