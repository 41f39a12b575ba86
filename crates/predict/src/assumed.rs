//! Writes the assumptions of a forecast as sentences.

use super::predictor::{Predictor, COLD_CACHES};

impl Predictor {
    pub(super) fn assumed(&self) -> Vec<String> {
        let mut assumed = self.assumed_of_all();
        if let Some(jobs) = self.jobs() {
            assumed.insert(1, jobs);
        }
        assumed
    }

    fn others(&self) -> String {
        match (self.load.others, self.wanted.alone) {
            (_, true) => "no other task takes CPU time".to_owned(),
            (0, _) => "other tasks take no CPU time, as in the recording".to_owned(),
            (others, _) if self.load.grouped => format!(
                "other tasks have {}.{} times the run's share of the CPUs, however many of its tasks run at once",
                others / 1000,
                others % 1000 / 100
            ),
            (others, _) => format!(
                "other tasks take as much of the CPUs as {}.{} tasks that never sleep",
                others / 1000,
                others % 1000 / 100
            ),
        }
    }

    /// The sentence about the assumed number of jobs of the build tools; `None` if no tool's jobs are known.
    fn jobs(&self) -> Option<String> {
        if self.tools.jobs.is_empty() {
            return None;
        }
        let Some(jobs) = self.wanted.jobs else {
            let jobs = if self.starts_more(self.cpus()) {
                "cargo and go start as many jobs as there are CPUs, other tools as many as in the recording"
            } else {
                "the jobs at once are those of the recording"
            };
            return Some(jobs.to_owned());
        };
        let unknown = self
            .tools
            .jobs
            .iter()
            .filter(|tool| tool.released.is_some());
        let order = if self.wanted.longest_first {
            ""
        } else {
            ", in the recorded order"
        };
        Some(match unknown.count() {
            0 => format!("of each build tool's jobs at most {jobs} run at once{order}"),
            n => format!(
                "of each build tool's jobs at most {jobs} run at once; for {n} of {} the recording does not tell whether they waited for another job or for a slot",
                self.tools.jobs.len()
            ),
        })
    }

    /// The sentences about those assumptions of a forecast that apply to any number of jobs.
    pub(super) fn assumed_of_all(&self) -> Vec<String> {
        let mut assumed = vec![self.others()];
        if self.other_load.is_some() {
            let groups = "the recording does not show whether the run shares the CPUs with other tasks one by one, or as a session or cgroup of its own: the forecast of a change is the middle of both, and its interval covers both";
            assumed.push(groups.to_owned());
        }
        if self.wanted.longest_first {
            let first = "of the jobs that can start, the longest recorded one starts first";
            assumed.push(first.to_owned());
        }
        if let Some(shards) = self.wanted.shards {
            assumed.push(format!(
                "{} tests are split among {shards} machines by their recorded times, the longest first; all else runs on each of them, and the slowest one decides",
                self.tests
            ));
        }
        if !self.wanted.cached.is_empty() {
            let cached = "at best what is cached are the longest processes, at worst the shortest; a look into the cache takes no time";
            assumed.push(cached.to_owned());
        }
        if self.follows(self.cpus()) && self.wanted.jobs.is_none() {
            let tools: Vec<_> = self.follow.iter().map(String::as_str).collect();
            assumed.push(format!(
                "jobs of {} that start because there are more CPUs are not simulated: at best they divide all of the time",
                tools.join(", ")
            ));
        }
        if self.shared {
            let server = "a server answers in the recorded order";
            assumed.push(server.to_owned());
        }
        assumed.push(self.waits());
        assumed
    }

    /// The sentence that says which waits (for disks, for the network) and which work the forecast assumes to be as
    /// recorded, and which as the user requested.
    fn waits(&self) -> String {
        let mut same = Vec::new();
        let mut other = Vec::new();
        for (name, by) in [
            ("disks", self.wanted.disk),
            ("the network", self.wanted.network),
        ] {
            match by {
                None => same.push(name),
                Some(by) => other.push(format!("waits for {name} are {by} times as fast")),
            }
        }
        let same = if same.is_empty() {
            "timers".to_owned()
        } else {
            format!("{} and timers", same.join(", "))
        };
        let work = if self.wanted.faster.is_empty() {
            "work takes the same CPU time"
        } else {
            "other work takes the same CPU time"
        };
        other.push(format!("waits for {same} last as long"));
        other.push(work.to_owned());
        if self.schedule.has_large() {
            let (least, likely, most) = COLD_CACHES;
            other.push(format!(
                "while tasks are in run queues, that of processes with more than 8 MiB takes {} % more ({} to {} %), for others' use of the caches",
                likely / 10, least / 10, most / 10,
            ));
        }
        other.join("; ")
    }
}
