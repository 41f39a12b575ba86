//! Parses the account that `fixtures/programs/load.c` prints of its own run.

/// The kernel's figures about a process at its exit.
#[derive(Clone, Copy, Debug)]
pub struct Task {
    pub pid: u32,
    /// The exit status as `wait` returns it.
    pub status: u32,
    pub voluntary: u64,
    pub involuntary: u64,
    /// The time in ns for which the process ran on a CPU, from /proc/PID/schedstat.
    pub run: u64,
}

/// Counters of the whole machine, read at some time between `since` and `until`.
#[derive(Clone, Copy, Debug)]
pub struct Machine {
    pub since: u64,
    pub until: u64,
    pub switches: u64,
    pub processes: u64,
}

#[derive(Debug, Default)]
pub struct Account {
    pub tasks: Vec<Task>,
    pub machine: Vec<Machine>,
    pub forks: u64,
    pub execs: u64,
    pub exits: u64,
}

impl Account {
    pub fn parse(text: &str) -> Account {
        let mut account = Account::default();
        let mut complete = false;
        for line in text.lines() {
            let mut words = line.split(' ');
            let what = words.next().unwrap();
            let n: Vec<u64> = words.map(|word| word.parse().expect(line)).collect();
            match (what, n.as_slice()) {
                ("task", [pid, status, voluntary, involuntary, run]) => account.tasks.push(Task {
                    pid: u32::try_from(*pid).unwrap(),
                    status: u32::try_from(*status).unwrap(),
                    voluntary: *voluntary,
                    involuntary: *involuntary,
                    run: *run,
                }),
                ("machine", [since, until, switches, processes]) => {
                    account.machine.push(Machine {
                        since: *since,
                        until: *until,
                        switches: *switches,
                        processes: *processes,
                    });
                }
                ("own", [forks, execs, exits]) => {
                    (account.forks, account.execs, account.exits) = (*forks, *execs, *exits);
                    complete = true;
                }
                _ => panic!("{line}"),
            }
        }
        assert!(complete && account.machine.len() == 2, "{text}");
        account
    }

    /// Checks that a kernel counter grew between its two readings by the number of recorded events. `times` has the
    /// sorted times of the events. A reading of the counter takes a while, so only a lower and an upper bound of the
    /// number of events in between are known. Each bound is widened by `ahead` events, because the kernel does not
    /// count an event exactly at its timestamp.
    pub fn between(&self, times: &[u64], counter: fn(&Machine) -> u64, ahead: u64, name: &str) {
        let [first, second] = self.machine[..] else {
            panic!("two readings");
        };
        let up_to = |time: u64| times.partition_point(|t| *t <= time) as u64;
        let least = up_to(second.since).saturating_sub(up_to(first.until));
        let most = up_to(second.until) - up_to(first.since);
        let grown = counter(&second) - counter(&first);
        assert!(
            least <= grown + ahead && grown <= most + ahead && least > 0,
            "{name}: {least} to {most} events, the kernel counted {grown}"
        );
    }
}
