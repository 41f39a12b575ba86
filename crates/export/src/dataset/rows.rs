//! The tables of a dataset. Lengths of time are in ns; an unknown value is null.
//!
//! Columns are added, never renamed, and never get another meaning: old files stay readable.

use super::table::rows;

rows! {
    /// A recorded run of a build; the table has one row for each run.
    Run = "runs" {
        /// The id of the recorded run, which is also the name of its files in the dataset.
        run: String,
        /// The version of the `tr` that recorded the run.
        tool: String,
        /// The method by which the run was recorded, such as `bpf`.
        method: String,
        /// The name of the project that the run built, from which the partition `repo` is made.
        project: String,
        /// The identifier of the run in the CI system.
        ci_run: Option<String>,
        /// The number of the attempt to run the job, by the CI system.
        attempt: Option<String>,
        job: Option<String>,
        commit: Option<String>,
        branch: Option<String>,
        /// The command line of COMMAND, without the parts that differ between runs of the same build, and shortened.
        command: String,
        /// A hash of that command line before it was shortened, by which equal commands are found.
        command_key: String,
        exit_code: Option<u64>,
        exit_signal: Option<u64>,
        start_unix_ns: u64,
        /// The number of CPUs that the run could use. The table `machine` has the number of all CPUs.
        cpus: u64,
        wall_ns: u64,
        processes: u64,
        threads: u64,
        execs: u64,
        failed: u64,
        on_cpu_ns: Option<u64>,
        /// The part of the run's CPU time in ns that a hypervisor did not take.
        work_ns: Option<u64>,
        run_queue_ns: Option<u64>,
        sleep_ns: Option<u64>,
        blocked_ns: Option<u64>,
        unknown_ns: u64,
        max_rss_bytes: Option<u64>,
        /// An upper bound in bytes of the memory that all processes of the run together used at any time.
        resident_peak_bytes: Option<u64>,
        /// The disk space in bytes that the run used at most: the free space at the start minus the least free
        /// space, of the file system that the run began in.
        disk_used_peak_bytes: Option<u64>,
        /// The smallest number of CPUs that the run, simulated without other tasks on the machine, does not exceed for
        /// 90 % of its time.
        cpus_p90: Option<u64>,
        /// The length of the run's critical path in ns. The columns `path_*_ns` divide it by kind of work or wait.
        path_ns: Option<u64>,
        path_on_cpu_ns: Option<u64>,
        path_run_queue_ns: Option<u64>,
        path_disk_ns: Option<u64>,
        path_network_ns: Option<u64>,
        path_sleep_ns: Option<u64>,
        path_other_ns: Option<u64>,
        path_unknown_ns: Option<u64>,
        /// Whether the recording of the run is incomplete: events were lost, or the trace is truncated or has no
        /// summary.
        incomplete: bool,
        lost_events: Option<u64>,
        /// The number of rows of the table `steps` that are missing for this run because of a limit. The column
        /// `processes_left_out` has the number of missing rows of the table `processes`.
        steps_left_out: u64,
        processes_left_out: u64,
        /// The URL of the job's page in the CI system or, if it is not known, that of the run's page. The columns
        /// `runner`, `label` and `image` have the machine or agent, the kind of runner and its image, as the CI system
        /// names them.
        page: Option<String>,
        runner: Option<String>,
        label: Option<String>,
        image: Option<String>,
        /// The time in ns for which the run's CI job waited for a runner; null if it is not known.
        queued_ns: Option<u64>,
    }
}

rows! {
    /// All steps of one kind and name in a run, as one row.
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
        /// The time in ns that the steps of this kind and name have on the run's critical path.
        path_ns: u64,
        /// The time in ns that the steps of this kind and name spent on a CPU, along each step's own critical path. The
        /// other columns `spent_*_ns` have the rest of their wall time by kind of wait.
        spent_on_cpu_ns: Option<u64>,
        spent_run_queue_ns: Option<u64>,
        spent_disk_ns: Option<u64>,
        spent_network_ns: Option<u64>,
        spent_sleep_ns: Option<u64>,
        spent_other_ns: Option<u64>,
        spent_unknown_ns: Option<u64>,
        /// The number of steps of this kind and name that failed or were slow, and that something other than their own
        /// work delayed; null without scheduling events.
        held_back: Option<u64>,
        /// The verdict on one step of this kind and name: the part of its wall time that stands out, such as a wait
        /// for CPUs. The step is the longest one that something delayed or, if nothing delayed any, the longest one.
        /// Null if nothing stands out.
        verdict: Option<String>,
        verdict_ns: Option<u64>,
        /// The CPU time in ns on the critical paths of the steps of this kind and name, which are the chains of work
        /// and waits that set each step's length. The column `wanted_cpu_ns` has the time in which the threads on these
        /// paths were able to run, with or without a CPU.
        had_cpu_ns: Option<u64>,
        wanted_cpu_ns: Option<u64>,
    }
}

rows! {
    /// A program in a run, summed up over its processes. The table has one row for each program of a run.
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
    /// One of the longest processes of a run, with its times.
    Process = "processes" {
        run: String,
        program: String,
        label: String,
        /// A hash of the process's arguments, without the parts that differ between runs of the same build.
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
        /// The container in which the process ran: its name or id, and its image.
        container: Option<String>,
    }
}

rows! {
    /// The time that the run's critical path spends in one program with one kind of work or wait, such as `disk`.
    Path = "path" {
        run: String,
        program: String,
        kind: String,
        ns: u64,
        segments: u64,
    }
}

rows! {
    /// The machine of a run and its counters during the run. The table has one row for each run.
    Machine = "machine" {
        run: String,
        host: String,
        kernel: String,
        arch: String,
        cpus: u64,
        /// The CPU time in ns of all tasks and interrupts of the machine during the run.
        busy_ns: Option<u64>,
        /// The CPU time in ns of tasks that do not belong to the recorded build.
        others_ns: Option<u64>,
        stolen_ns: Option<u64>,
        throttled_ns: Option<u64>,
        iowait_ns: Option<u64>,
        /// The time in ns in which at least one task of the machine waited for a CPU (PSI).
        cpu_some_ns: Option<u64>,
        memory_some_ns: Option<u64>,
        io_some_ns: Option<u64>,
        recorder_ns: Option<u64>,
        /// The least amount of memory, in bytes, that was available on the machine during the run.
        available_memory_bytes: Option<u64>,
        /// The mean frequency of the machine's CPUs in kHz, over the samples during the run.
        frequency_khz: Option<u64>,
        /// The model name of the first CPU of the run's machine.
        cpu_model: Option<String>,
        cpu_stepping: Option<String>,
        microcode: Option<String>,
        memory_bytes: Option<u64>,
        /// The kind of virtualization of the machine; `none` on bare metal.
        virtualization: Option<String>,
    }
}
