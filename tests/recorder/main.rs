//! Tests that the recorder does not disturb COMMAND, masks secrets, and reports losses. Without the right to trace,
//! these tests are reported as ignored, with the reason.

#![allow(clippy::expect_used, clippy::indexing_slicing)] // a JSON value indexes to null

mod caller;
mod chain;
#[path = "../common/mod.rs"]
mod common;
mod containers;
mod cost;
mod daemons;
mod directories;
mod disk;
mod doctor;
mod failures;
mod follow;
mod functions;
mod hangs;
mod harm;
#[cfg(target_arch = "x86_64")]
mod inject;
mod install;
mod kinds;
mod light;
mod limits;
mod machine;
mod memory;
mod network;
mod options;
mod others;
mod ptrace;
mod redact;
mod rights;
mod scripts;
mod servers;
mod signals;
mod stacks;
mod stacks_beside_perf;
#[cfg(target_arch = "x86_64")]
mod start;
mod storm;
mod sudo;
mod support;
mod symbolize;
mod syscalls;
mod terminal;
mod under_way;
#[path = "../common/usages.rs"]
mod usages;
mod waits;
#[cfg(target_arch = "x86_64")]
mod writes;

use libtest_mimic::Arguments;

/// Tests that wait or look at outputs. Several of them may run at a time, also while other test programs run.
const BESIDE: &[&[support::Test]] = &[
    // The longest tests come first, so that none of them is left alone at the end.
    #[cfg(target_arch = "x86_64")]
    start::TESTS,
    #[cfg(target_arch = "x86_64")]
    writes::TESTS,
    chain::TESTS,
    storm::TINY,
    machine::BESIDE,
    sudo::SILENT,
    hangs::TESTS,
    harm::TESTS,
    redact::TESTS,
    scripts::TESTS,
    terminal::TESTS,
    under_way::TESTS,
    options::TESTS,
    failures::TESTS,
    rights::TESTS,
    doctor::TESTS,
    signals::TESTS,
    limits::TESTS,
    network::TESTS,
    light::TESTS,
    ptrace::TESTS,
    kinds::TESTS,
    terminal::OTHER_METHODS,
    chain::KILLED,
    containers::TESTS,
    install::TESTS,
    disk::TESTS,
    syscalls::TESTS,
    symbolize::TESTS,
    functions::TESTS,
    memory::TESTS,
    servers::TESTS,
    waits::TESTS,
];

/// Tests that run one after the other. These are tests that measure times, load the machine or choose process ids, and
/// tests of sudo, because a user may have only one loader at a time. During the tests in the first entry there must be
/// no other recording.
const ALONE: &[&[support::Test]] = &[
    harm::COUNTED,
    sudo::TESTS,
    daemons::TESTS,
    ptrace::BESIDE,
    follow::TESTS,
    machine::TESTS,
    stacks::TESTS,
    stacks_beside_perf::TESTS,
    cost::TESTS,
    storm::TESTS,
    others::TESTS,
    directories::TESTS,
];

fn main() {
    // With this variable the test program plays the role of a recorded program.
    if let Some(role) = std::env::var_os(network::ROLE) {
        let role = role.to_string_lossy();
        if &*role == "calls" {
            return syscalls::play();
        }
        return match role.strip_prefix("memory ") {
            Some(role) => memory::play(role),
            None => network::play(&role),
        };
    }
    let args = Arguments::from_args();
    let reason = support::why_not();
    let groups = [
        ("beside", BESIDE, args.test_threads.or(Some(6))),
        // The tests of this group have the machine for themselves, because they measure times or count the kernel's
        // objects.
        ("alone", ALONE, Some(1)),
    ];
    // `scripts/test.py` runs the two groups separately.
    let group = std::env::var_os("TR_TESTS");
    let mut failed = false;
    for (_, tests, test_threads) in groups
        .into_iter()
        .filter(|(name, ..)| group.as_ref().is_none_or(|group| group == name))
    {
        let args = Arguments {
            test_threads,
            ..args.clone()
        };
        let trials = tests.iter().copied().flatten();
        let trials = trials.map(|(name, test)| {
            let reason = why_skipped(name, reason.clone());
            common::trial(name, reason, test)
        });
        failed |= libtest_mimic::run(&args, trials.collect()).has_failed();
    }
    std::process::exit(if failed { 101 } else { 0 });
}

/// The reason to skip a test, if any. `rights` is the reason for all tests that need the right to trace.
fn why_skipped(name: &str, rights: Option<String>) -> Option<String> {
    let needs_none = |tests: &[support::Test]| tests.iter().any(|(other, _)| *other == name);
    let needs_none = [
        ptrace::TESTS,
        kinds::TESTS,
        terminal::OTHER_METHODS,
        chain::TESTS,
        containers::TESTS,
        install::TESTS,
    ]
    .into_iter()
    .any(needs_none)
        || [rights::GETENT, rights::REFUSALS].contains(&name);
    let rights = rights.filter(|_| !needs_none);
    rights.or_else(|| match name {
        "cgroup_follows_who_is_in_it_and_who_comes" => options::no_cgroup(),
        options::PINNED => common::lacks("perf"),
        "a_process_that_joins_the_cgroup_is_recorded" => {
            options::no_cgroup().or_else(|| common::lacks("python3"))
        }
        follow::DEEP => options::no_cgroup(),
        follow::BORN => options::no_cgroup().or_else(|| common::lacks("gcc")),
        follow::MANY => options::no_cgroup().or_else(|| common::lacks("python3")),
        scripts::OF_ROOT => rights::not_root(),
        scripts::MOUNTED => rights::not_root().or_else(common::no_mount_namespace),
        follow::V1 => rights::not_root().or_else(follow::no_v1),
        follow::WORKERS => follow::no_workers().or_else(|| common::lacks("gcc")),
        follow::SIBLINGS => common::lacks("gcc"),
        follow::REUSED | follow::SKIPPED => rights::not_root().or_else(|| common::lacks("gcc")),
        "capabilities_will_do_and_the_command_gets_none" => rights::no_capabilities(),
        "a_recorder_starved_by_real_time_hogs_loses_nothing" => storm::no_real_time(),
        "a_storm_of_stress_ng_loses_nothing" => common::lacks("stress-ng"),
        "a_signal_to_tr_alone_is_passed_on"
        | "a_signal_to_the_group_comes_once"
        | "memory_is_of_the_program_alone"
        | "a_signal_to_the_group_and_then_to_tr_comes_twice" => common::lacks("python3"),
        "ptrace_follows_an_exec_from_a_thread" | "ptrace_follows_threads_and_vfork" => {
            common::lacks("python3")
        }
        ptrace::FALLBACK | "namespaces_nest_under_ptrace" => common::no_user_namespace(),
        "ptrace_makes_room_for_strace" => common::lacks("strace"),
        "ptrace_makes_room_for_gdb" => common::lacks("gdb"),
        "ptrace_records_in_bubblewrap" => containers::no_bubblewrap(),
        "ptrace_records_in_a_container_of_runc" => common::lacks("runc")
            .or_else(rights::not_root)
            .or_else(common::no_mount_namespace),
        "programs_see_what_they_see_without_tr" | "a_program_of_32_bits_runs_under_ptrace" => {
            common::lacks("gcc")
        }
        "ptrace_makes_room_for_leak_checkers"
        | ptrace::KILLED_FORKS
        | ptrace::TRACES_TR
        | ptrace::UNTRACED
        | ptrace::MANY => common::lacks("gcc"),
        "ptrace_has_the_kernels_figures" => common::lacks("make"),
        "the_command_finds_everything_as_without_tr" => common::lacks("ps"),
        harm::REAPED => common::lacks("strace").or_else(storm::no_real_time),
        "the_command_runs_once_whatever_the_limits_are" => common::lacks("prlimit"),
        "a_cgroup_without_memory_does_not_kill_the_command" | limits::HALF => {
            limits::no_memory_cgroup()
        }
        rights::JOBS => rights::not_root().or_else(|| common::lacks("gcc")),
        follow::NAMESPACE => rights::not_root().or_else(common::no_mount_namespace),
        syscalls::STRACE => common::lacks("strace"),
        syscalls::SMALL
        | stacks::SHARES
        | stacks::KERNEL
        | stacks::FORK
        | stacks::GONE
        | stacks::WAITS
        | stacks::DEEP
        | functions::PATH
        | functions::REASONS
        | functions::DIFF
        | symbolize::LATER
        | symbolize::MOVED
        | symbolize::DEBUG
        | symbolize::RELATIVE
        | symbolize::BYTES => common::lacks("gcc"),
        symbolize::STALE => common::lacks("python3"),
        name if stacks_beside_perf::TESTS.iter().any(|test| test.0 == name) => {
            stacks_beside_perf::lacks(name)
        }
        name if install::TESTS.iter().any(|(other, _)| *other == name) => install::lacking(name),
        machine::THROTTLED => machine::no_quota(),
        "a_time_namespace_changes_no_time" => options::no_time_namespace(),
        name if sudo::TESTS
            .iter()
            .chain(sudo::SILENT)
            .any(|(other, _)| *other == name) =>
        {
            rights::not_root()
                .or_else(|| common::lacks("sudo"))
                .or_else(common::no_mount_namespace)
        }
        name if chain::TESTS.iter().any(|(other, _)| *other == name) => {
            rights::not_root().or_else(common::no_mount_namespace)
        }
        doctor::DOCTOR | rights::REFUSALS => {
            rights::not_root().or_else(|| common::lacks("setpriv"))
        }
        network::LOOKUPS => rights::not_root(),
        writes::FULL => rights::not_root().or_else(common::no_mount_namespace),
        terminal::TIOCSTI => rights::not_root().or_else(|| common::lacks("python3")),
        "a_signal_that_would_end_tr_is_passed_on" => common::lacks("python3"),
        "the_command_runs_as_another_user" | "a_planted_link_or_fifo_is_refused" => {
            rights::not_root()
        }
        "the_cost_that_is_printed_is_the_cost_that_the_kernel_counts" => cost::no_statistics(),
        _ => None,
    })
}
