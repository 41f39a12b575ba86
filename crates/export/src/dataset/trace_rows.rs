//! The tables of one recording ([`super::trace`]). Times are in ns since the beginning of the recording (`*_ns` without a
//! length of time: `from_ns`, `to_ns`, `at_ns`), lengths in ns; an unknown value is null. `process`, `thread` and `step` are
//! numbers that join the tables of one recording and mean nothing in another.
//!
//! Columns are added, never renamed, and never get another meaning.

use super::table::rows;

rows! {
    /// The recording; the table has one row.
    Recording = "recording" {
        command: String,
        host: String,
        kernel: String,
        method: String,
        cpus: u64,
        start_unix_ns: Option<u64>,
        wall_ns: u64,
        exit_code: Option<u64>,
        exit_signal: Option<u64>,
        /// Whether events were lost or the trace is truncated.
        incomplete: bool,
    }
}

rows! {
    Process = "processes" {
        process: u64,
        parent: Option<u64>,
        pid: u64,
        /// The pid in the process's own pid namespace.
        ns_pid: u64,
        program: String,
        label: String,
        command: String,
        from_ns: u64,
        to_ns: u64,
        /// Whether the process began before the recording, and whether it lived at its end.
        started_before: bool,
        alive: bool,
        exit_code: Option<u64>,
        exit_signal: Option<u64>,
        on_cpu_ns: Option<u64>,
        run_queue_ns: Option<u64>,
        sleep_ns: Option<u64>,
        blocked_ns: Option<u64>,
        unknown_ns: u64,
        /// The time of the critical path in the process.
        path_ns: Option<u64>,
        max_rss_bytes: Option<u64>,
        container: Option<String>,
        /// The innermost step in which the process began.
        step: Option<u64>,
    }
}

rows! {
    /// The programs that processes executed, one after the other.
    Exec = "execs" {
        process: u64,
        from_ns: u64,
        to_ns: u64,
        file: String,
        command: String,
        directory: Option<String>,
        on_cpu_ns: Option<u64>,
        run_queue_ns: Option<u64>,
    }
}

rows! {
    Thread = "threads" {
        thread: u64,
        process: u64,
        tid: u64,
        name: String,
        from_ns: u64,
        to_ns: u64,
        on_cpu_ns: Option<u64>,
        run_queue_ns: Option<u64>,
        sleep_ns: Option<u64>,
        blocked_ns: Option<u64>,
        unknown_ns: u64,
        migrations: u64,
    }
}

rows! {
    /// The stays of threads on CPUs.
    OnCpu = "on_cpu" {
        thread: u64,
        process: u64,
        cpu: Option<u64>,
        from_ns: u64,
        to_ns: u64,
    }
}

rows! {
    /// The times in which threads were not on a CPU.
    Wait = "waits" {
        thread: u64,
        process: u64,
        from_ns: u64,
        to_ns: u64,
        ns: u64,
        /// `run_queue`, `preempted`, `sleep`, `stopped`, `disk`, `vfork`, `blocked` or `unknown`.
        state: String,
        /// The class of the system call in which the thread waited, as in `tr dump`.
        call: Option<String>,
        /// The end of the wait, as far as it is proven: `timer`, `packet`, `child`, `task`, `block_io`, `signal` or `unknown`;
        /// null for a wait for a CPU.
        ended_by: Option<String>,
        /// The thread and the process that ended the wait, or preempted the thread.
        by_thread: Option<u64>,
        by_process: Option<u64>,
        /// The name of that thread, also of one that is not recorded.
        by_name: Option<String>,
        /// The CPU on which a wait for a CPU ended.
        cpu: Option<u64>,
    }
}

rows! {
    /// The critical path from its beginning to its end.
    PathPart = "path" {
        thread: u64,
        process: u64,
        step: Option<u64>,
        /// As in JSON: `on_cpu`, `run_queue`, `disk`, `network`, `sleep`, …
        kind: String,
        from_ns: u64,
        to_ns: u64,
        ns: u64,
        /// Whether the kind is only the likeliest one.
        inferred: bool,
    }
}

rows! {
    Step = "steps" {
        step: u64,
        parent: Option<u64>,
        depth: u64,
        kind: String,
        name: String,
        process: Option<u64>,
        from_ns: u64,
        to_ns: u64,
        ns: u64,
        failed: bool,
        result: Option<String>,
        /// The sum over all threads in the step, with the steps inside it.
        on_cpu_ns: Option<u64>,
        run_queue_ns: Option<u64>,
        path_ns: u64,
        processes: u64,
        /// The most by which the place of another tool's span is wrong; null if it is not proven.
        place_error_ns: Option<u64>,
        verdict: Option<String>,
        verdict_ns: Option<u64>,
    }
}

rows! {
    /// The marks that programs wrote to the recorder.
    Mark = "marks" {
        at_ns: u64,
        name: String,
        kind: Option<String>,
        /// `moment`, `begin` or `end`.
        point: String,
        result: Option<String>,
        pid: Option<u64>,
    }
}

rows! {
    /// The tasks that are not part of the build and had CPUs for which it waited, by name.
    Other = "others" {
        name: Option<String>,
        ns: u64,
    }
}
