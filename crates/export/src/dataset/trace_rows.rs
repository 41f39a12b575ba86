//! The tables of one recording ([`super::trace`]). The columns `from_ns`, `to_ns` and `at_ns` are points in time, in
//! ns since the beginning of the recording, and `start_unix_ns` is one in ns since 1970. Other columns `*_ns` are
//! lengths of time in ns. An unknown value is null. `process`, `thread` and `step` are numbers that join the tables of
//! one recording and mean nothing in another.
//!
//! Columns are added, never renamed, and never get another meaning.

use super::table::rows;

rows! {
    /// The exported recording as a whole; the table has one row.
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
        /// Whether the recording is incomplete: events were lost, or the trace is truncated or has no summary.
        incomplete: bool,
    }
}

rows! {
    Process = "processes" {
        process: u64,
        parent: Option<u64>,
        pid: u64,
        /// The pid that the process has in its own pid namespace, such as that of a container.
        ns_pid: u64,
        program: String,
        label: String,
        command: String,
        from_ns: u64,
        to_ns: u64,
        /// Whether the process began before the recording. The column `alive` says whether it was still alive at the
        /// recording's end.
        started_before: bool,
        alive: bool,
        exit_code: Option<u64>,
        exit_signal: Option<u64>,
        on_cpu_ns: Option<u64>,
        run_queue_ns: Option<u64>,
        sleep_ns: Option<u64>,
        blocked_ns: Option<u64>,
        unknown_ns: u64,
        /// The time in ns that the process has on the critical path.
        path_ns: Option<u64>,
        max_rss_bytes: Option<u64>,
        container: Option<String>,
        /// The number of the innermost step that the process's main thread was in when the process began; null if
        /// there was none.
        step: Option<u64>,
    }
}

rows! {
    /// A program that a process executed, from its exec to the next exec or to the process's end in the recording.
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
    /// A stay of a thread on a CPU, from switch-in to switch-out.
    OnCpu = "on_cpu" {
        thread: u64,
        process: u64,
        cpu: Option<u64>,
        from_ns: u64,
        to_ns: u64,
    }
}

rows! {
    /// A time in which a thread was off CPU: asleep, blocked, or waiting for a CPU.
    Wait = "waits" {
        thread: u64,
        process: u64,
        from_ns: u64,
        to_ns: u64,
        ns: u64,
        /// The state of the thread while it was off CPU: `run_queue`, `preempted`, `sleep`, `stopped`, `disk`, `vfork`,
        /// `blocked` or `unknown`.
        state: String,
        /// The class of the system call in which the thread waited, by the words of `tr dump`.
        call: Option<String>,
        /// The event that is proven to have ended the wait: `timer`, `packet`, `child`, `task`, `block_io` or
        /// `signal`; `unknown` if none is proven. Null for a wait for a CPU, and for a time of which nothing is known.
        ended_by: Option<String>,
        /// The number of the thread that ended this thread's wait or preempted it. The column `by_process` has the
        /// process of that thread.
        by_thread: Option<u64>,
        by_process: Option<u64>,
        /// The name of the thread that ended this thread's wait or preempted it, even if that thread is not recorded.
        by_name: Option<String>,
        /// The number of the CPU on which a wait for a CPU ended.
        cpu: Option<u64>,
    }
}

rows! {
    /// A part of the critical path in one thread and one kind of time.
    PathPart = "path" {
        thread: u64,
        process: u64,
        step: Option<u64>,
        /// The kind of time that the thread spends in this part of the critical path, by the words of the JSON, for
        /// example `on_cpu`, `run_queue`, `disk`, `network` or `sleep`.
        kind: String,
        from_ns: u64,
        to_ns: u64,
        ns: u64,
        /// Whether the kind of this part of the critical path is only the likeliest one, because no event proves it.
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
        /// The CPU time in ns of all threads in the step, including the steps inside it.
        on_cpu_ns: Option<u64>,
        run_queue_ns: Option<u64>,
        path_ns: u64,
        processes: u64,
        /// A bound in ns of the error of the step's place in time; 0 if the step was recorded and is no span from
        /// another tool's file. Null if the place is not known.
        place_error_ns: Option<u64>,
        verdict: Option<String>,
        verdict_ns: Option<u64>,
    }
}

rows! {
    /// A mark that a program of the build wrote to the recorder: the name of a moment, or of the begin or end of a
    /// span.
    Mark = "marks" {
        at_ns: u64,
        name: String,
        kind: Option<String>,
        /// Whether the mark names a `moment`, or the `begin` or the `end` of a span.
        point: String,
        result: Option<String>,
        pid: Option<u64>,
    }
}

rows! {
    /// The tasks of one name that do not belong to the build and that had CPUs for which the build waited.
    Other = "others" {
        name: Option<String>,
        ns: u64,
    }
}
