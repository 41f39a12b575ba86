//! Divides the time of the CPUs among the build, other tasks, the hypervisor and idle time.

use tr_analyze::machine::{samples_are_of_recorded_cpus, Samples};
use tr_analyze::model::Analysis;
use tr_analyze::own::Own;
use tr_format::meta::Scope;

use crate::recordings::warnings;
use crate::resources::loads::{Load, Loads};
use tr_text::units;

/// The division of the time of all CPUs in the analyzed span among the build, other tasks, the hypervisor and idle
/// time, in nanoseconds. CPUs that the build was not allowed to use are included. A part is `None` if it is not known.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CpuShares {
    whole: u64,
    /// The CPU time in nanoseconds of the recorded tasks; in a recording of the whole machine, of COMMAND and its
    /// descendants, if there is a COMMAND.
    pub build: Option<u64>,
    /// The CPU time in nanoseconds of tasks that do not belong to the build.
    pub others: Option<u64>,
    /// The CPU time in nanoseconds that the hypervisor gave to other guests.
    pub stolen: Option<u64>,
    /// The sum over all CPUs of the time in nanoseconds in which no task wanted to run on the CPU.
    pub idle: Option<u64>,
    /// Whether the CPU time of the build (`build`) is only a lower bound.
    least: bool,
}

impl CpuShares {
    pub fn of(analysis: &Analysis) -> CpuShares {
        let span = analysis.wall();
        let whole = span.saturating_mul(analysis.meta.cpus.len() as u64);
        let loads = Loads::of(analysis);
        let stolen = loads.load(Load::Stolen);
        let known = CpuShares {
            whole,
            build: analysis.totals.times.on_cpu_known(),
            stolen,
            least: warnings::is_lower_bound(analysis),
            ..CpuShares::default()
        };
        if analysis.meta.scope == Scope::All {
            return known.of_all(analysis);
        }
        // If the build's CPU time is only a lower bound, the time of other tasks and the idle time cannot be derived
        // from the build's time.
        if known.least {
            return known;
        }
        // The CPU time of other tasks, as the kernel counts it, includes the hypervisor's part, so this part is
        // subtracted. The kernel counts in coarse ticks, so the sum of all parts is limited to the time that the CPUs
        // had.
        let resolved = Samples::of(analysis).resolve((analysis.start, analysis.end));
        let others = loads.load(Load::Others).filter(|_| resolved);
        let own = known.build.unwrap_or(0).saturating_add(stolen.unwrap_or(0));
        let others = others.map(|ns| ns.saturating_sub(stolen.unwrap_or(0)));
        let others = others.map(|ns| ns.min(whole.saturating_sub(own)));
        let used = |others| {
            let build = known.build?.saturating_add(others);
            Some(build.saturating_add(stolen.unwrap_or(0)))
        };
        let idle = others.and_then(used).map(|used| whole.saturating_sub(used));
        CpuShares {
            others,
            idle,
            ..known
        }
    }

    /// The division of the CPU time in a recording of all tasks of the machine. In such a recording, the CPU time of
    /// other tasks and the idle time are known, too.
    fn of_all(self, analysis: &Analysis) -> CpuShares {
        let own = Own::of(analysis);
        let (mut build, mut others) = (0u64, 0u64);
        let mut unknown = 0u64;
        for ix in analysis.process_ids() {
            let sum = if own.has(ix) { &mut build } else { &mut others };
            let times = &analysis.process(ix).times;
            *sum = sum.saturating_add(times.on_cpu);
            if own.has(ix) {
                unknown = unknown.saturating_add(times.unknown);
            }
        }
        let idle = idle_by_events(analysis).or_else(|| {
            // The counters of the machine are coarse, so they say nothing about a short span.
            let span = (analysis.start, analysis.end);
            let samples = Samples::of(analysis);
            let resolved = samples.resolve(span) && samples_are_of_recorded_cpus(analysis);
            let used = samples.used(span, build.saturating_add(others));
            used.filter(|_| resolved)
                .map(|used| self.whole.saturating_sub(used.all))
        });
        CpuShares {
            build: self.build.map(|_| build),
            others: self.build.filter(|_| own.is_part()).map(|_| others),
            idle,
            least: self.least && (!own.is_part() || warnings::is_much(unknown, build)),
            ..self
        }
    }

    /// The words that stand before the build's CPU time if it is only a lower bound; otherwise empty.
    fn least(&self) -> &'static str {
        if self.least {
            "at least "
        } else {
            ""
        }
    }

    /// The build's CPU time, and the mean number of CPUs that the build used, in words.
    pub fn used(&self, analysis: &Analysis) -> [String; 2] {
        let cpus = units::cpus(analysis.cpus_of_build());
        let online = match analysis.machine.limited_to {
            Some(_) => format!(
                " ({} online)",
                units::count(analysis.meta.cpus.len() as u64)
            ),
            None => String::new(),
        };
        if warnings::is_blank(analysis) {
            return [
                "? of CPU".to_owned(),
                format!("? of {cpus} utilized{online}"),
            ];
        }
        let (wall, cpu) = (analysis.wall(), self.build.unwrap_or(0));
        let busy = match wall {
            0 => 0.0,
            wall => cpu as f64 / wall as f64,
        };
        let least = self.least();
        [
            format!("{least}{} of CPU", units::time(cpu)),
            format!("{least}{busy:.2} of {cpus} utilized{online}"),
        ]
    }

    /// The words for how the time of all CPUs was shared among the build, other tasks, the hypervisor and idle time, in
    /// percent. An unknown share is `?`. A hypervisor's share below 1 % is left out.
    pub fn words(&self, analysis: &Analysis) -> Vec<String> {
        let own = match analysis.meta.root {
            Some(_) => "this build",
            None => "recorded tasks",
        };
        let share = |name: &str, ns: Option<u64>| {
            let share = ns.map_or("?".to_owned(), |ns| units::share(ns, self.whole));
            format!("{name} {share}")
        };
        if self.whole == 0 {
            return Vec::new();
        }
        let own = if self.least {
            format!("{own} at least")
        } else {
            own.to_owned()
        };
        let mut words = vec![share(&own, self.build)];
        let all = analysis.meta.scope == Scope::All && analysis.meta.root.is_none();
        if !all {
            words.push(share("others", self.others));
        }
        if self
            .stolen
            .is_some_and(|ns| ns.saturating_mul(100) >= self.whole)
        {
            words.push(share("hypervisor", self.stolen));
        }
        words.push(share("idle", self.idle));
        if analysis.machine.limited_to.is_some() {
            let all = units::cpus(analysis.meta.cpus.len() as u64);
            words.push(format!("shares of all {all}"));
        }
        words
    }
}

/// The sum over all CPUs of the idle time in nanoseconds, as scheduling events show it; `None` if the recording has no
/// such events of all CPUs.
fn idle_by_events(analysis: &Analysis) -> Option<u64> {
    let cpus = &analysis.machine.cpus;
    let known = !cpus.is_empty() && cpus.iter().all(|(_, cpu)| cpu.idle_known);
    let all = analysis.meta.options.cpus.is_empty();
    let idle = cpus.iter().map(|(_, cpu)| cpu.idle);
    (all && known).then(|| idle.fold(0, u64::saturating_add))
}
