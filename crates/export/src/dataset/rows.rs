//! The tables of a dataset. Lengths of time are in ns; an unknown value is null.
//!
//! Columns are added, never renamed, and never get another meaning: old files stay readable.

use super::table::rows;

rows! {
    /// The run; the table has one row for each run.
    Run = "runs" {
        /// The id of the run, which is also the name of its files.
        run: String,
        /// The version of the `tr` that recorded the run.
        tool: String,
        /// The way in which the run was recorded.
        method: String,
        /// The project of the run, from which the partition `repo` is made.
        project: String,
        /// The identifiers of the run and its job in the CI system. The next columns are of this kind as well.
        ci_run: Option<String>,
        attempt: Option<String>,
        job: Option<String>,
        commit: Option<String>,
        branch: Option<String>,
        /// The command line of COMMAND, without the parts that differ between runs of the same build.
        command: String,
        /// A hash of the whole command line.
        command_key: String,
        exit_code: Option<u64>,
        exit_signal: Option<u64>,
        start_unix_ns: u64,
        /// The number of CPUs that the run could use. The table of machines has the number of all CPUs.
        cpus: u64,
        wall_ns: u64,
        processes: u64,
        threads: u64,
        execs: u64,
        failed: u64,
        on_cpu_ns: Option<u64>,
        /// The part of `on_cpu_ns` that the hypervisor did not take.
        work_ns: Option<u64>,
        run_queue_ns: Option<u64>,
        sleep_ns: Option<u64>,
        blocked_ns: Option<u64>,
        unknown_ns: u64,
        max_rss_bytes: Option<u64>,
        /// An upper bound of the memory of all processes together, in bytes.
        resident_peak_bytes: Option<u64>,
        /// The disk space that the run used, in bytes: the free space at the start less the least free space
        /// of the file system that the run began in.
        disk_used_peak_bytes: Option<u64>,
        /// The number of CPUs that suffice for the run during 90 % of its time without other tasks.
        cpus_p90: Option<u64>,
        /// The length of the critical path in ns. The next columns have its parts by use.
        path_ns: Option<u64>,
        path_on_cpu_ns: Option<u64>,
        path_run_queue_ns: Option<u64>,
        path_disk_ns: Option<u64>,
        path_network_ns: Option<u64>,
        path_sleep_ns: Option<u64>,
        path_other_ns: Option<u64>,
        path_unknown_ns: Option<u64>,
        /// Whether events were lost or the trace is truncated.
        incomplete: bool,
        lost_events: Option<u64>,
        /// The number of steps that the limit of the table left out. The next column has the number of processes.
        steps_left_out: u64,
        processes_left_out: u64,
        /// The address of the run's page in the CI system. The next columns have the machine or agent, the
        /// kind of runner and its image, as the CI system names them.
        page: Option<String>,
        runner: Option<String>,
        label: Option<String>,
        image: Option<String>,
        /// The time in ns that the job waited for a runner, if the job recorded the beginning of the wait.
        queued_ns: Option<u64>,
    }
}

rows! {
    /// All steps of a kind and name in a run, as one row.
    Step = "steps" {
        run: String,
        kind: String,
        name: String,
        count: u64,
        failed: u64,
        wall_ns: u64,
        longest_ns: u64,
        on_cpu_ns: Option<u64>,
        run_queue_ns: Option<u64>,
        /// The time of the run's critical path in these steps, in ns.
        path_ns: u64,
        /// The part of the steps' wall time on a CPU, in ns, along each step's own critical path. The next
        /// columns have the other uses.
        spent_on_cpu_ns: Option<u64>,
        spent_run_queue_ns: Option<u64>,
        spent_disk_ns: Option<u64>,
        spent_network_ns: Option<u64>,
        spent_sleep_ns: Option<u64>,
        spent_other_ns: Option<u64>,
        spent_unknown_ns: Option<u64>,
        /// The number of steps that failed or were slow while something held them back; null without scheduling
        /// events.
        held_back: Option<u64>,
        /// The verdict on the longest held-back step, or else on the longest step; null if nothing stands out.
        verdict: Option<String>,
        verdict_ns: Option<u64>,
        /// The wall time in ns along each step's own critical path that was spent on a CPU. The next column
        /// has the time able to run.
        had_cpu_ns: Option<u64>,
        wanted_cpu_ns: Option<u64>,
    }
}

rows! {
    /// A program in a run; the table has one row for each.
    Program = "programs" {
        run: String,
        program: String,
        processes: u64,
        failed: u64,
        wall_ns: u64,
        on_cpu_ns: Option<u64>,
        run_queue_ns: Option<u64>,
        sleep_ns: Option<u64>,
        blocked_ns: Option<u64>,
        unknown_ns: u64,
        max_rss_bytes: Option<u64>,
    }
}

rows! {
    /// One of the longest processes of a run.
    Process = "processes" {
        run: String,
        program: String,
        label: String,
        /// A hash of the process's arguments, without the parts that differ between runs.
        argv_key: String,
        pid: u64,
        start_ns: u64,
        wall_ns: u64,
        on_cpu_ns: Option<u64>,
        run_queue_ns: Option<u64>,
        sleep_ns: Option<u64>,
        blocked_ns: Option<u64>,
        unknown_ns: u64,
        path_ns: Option<u64>,
        max_rss_bytes: Option<u64>,
        exit_code: Option<u64>,
        exit_signal: Option<u64>,
        /// The container of the process, by its name or id and its image.
        container: Option<String>,
    }
}

rows! {
    /// The time of the critical path in one program and use.
    Path = "path" {
        run: String,
        program: String,
        kind: String,
        ns: u64,
        segments: u64,
    }
}

rows! {
    /// The machine of a run and the counters during the run; the table has one row for each run.
    Machine = "machine" {
        run: String,
        host: String,
        kernel: String,
        arch: String,
        cpus: u64,
        /// The CPU time of all tasks and interrupts of the machine, in ns.
        busy_ns: Option<u64>,
        /// The CPU time in ns of tasks that do not belong to the run.
        others_ns: Option<u64>,
        stolen_ns: Option<u64>,
        throttled_ns: Option<u64>,
        iowait_ns: Option<u64>,
        /// The time in ns in which at least one task of the machine waited for a CPU.
        cpu_some_ns: Option<u64>,
        memory_some_ns: Option<u64>,
        io_some_ns: Option<u64>,
        recorder_ns: Option<u64>,
        /// The least amount of available memory during the run, in bytes.
        available_memory_bytes: Option<u64>,
        /// The mean frequency of the CPUs in the samples during the run, in kHz.
        frequency_khz: Option<u64>,
        /// The model of the machine's first CPU.
        cpu_model: Option<String>,
        cpu_stepping: Option<String>,
        microcode: Option<String>,
        memory_bytes: Option<u64>,
        /// The kind of virtualization of the machine; `none` on bare metal.
        virtualization: Option<String>,
    }
}
