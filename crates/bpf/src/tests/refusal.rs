//! Unit tests of `refusal`.

use super::*;

const BOTH: u64 = 0b11 << 38;
const ALL: u64 = (1 << 41) - 1;

/// The facts about an ordinary user on a machine where tracing is possible with more rights.
fn user() -> (RefusalFacts, Status) {
    let status = Status {
        bounding: ALL,
        ..Status::default()
    };
    let facts = RefusalFacts {
        status: None,
        initial_user_namespace: true,
        sysfs: true,
        btf: true,
        release: "6.1.0-42-amd64".into(),
        bpf: libc::EPERM,
        locked: None,
    };
    (facts, status)
}

/// Changes the facts about this user, and returns the reason for the refusal that follows from the changed facts.
fn after(change: impl FnOnce(&mut RefusalFacts, &mut Status)) -> Option<Refusal> {
    let (mut facts, mut status) = user();
    change(&mut facts, &mut status);
    facts.status = Some(status);
    facts.refusal()
}

const NEITHER: Missing = Missing {
    bpf: true,
    perfmon: true,
};

#[test]
fn nothing_is_refused_when_the_program_loads() {
    assert_eq!(after(|facts, _| facts.bpf = 0), None);
    // The error EINVAL is not about rights, so that more rights would not help.
    assert_eq!(after(|facts, _| facts.bpf = libc::EINVAL), None);
}

#[test]
fn capabilities_are_missing() {
    let lacks = |missing, root| Some(Refusal::Capabilities { missing, root });
    assert_eq!(after(|_, _| ()), lacks(NEITHER, false));
    assert_eq!(after(|_, s| s.root = true), lacks(NEITHER, true));
    let only = |capability: u64| after(|_, s| s.effective = 1 << capability);
    let bpf = Missing {
        bpf: true,
        perfmon: false,
    };
    let perfmon = Missing {
        bpf: false,
        perfmon: true,
    };
    assert_eq!(only(38), lacks(bpf, false));
    assert_eq!(only(39), lacks(perfmon, false));
    assert_eq!(only(0), lacks(NEITHER, false));
    // CAP_SYS_ADMIN (21) implies CAP_BPF and CAP_PERFMON, so no capability is missing.
    assert_eq!(only(21), Some(Refusal::SecurityModule(libc::EPERM)));
}

/// Tests kernels before 5.11, where BPF maps count as locked memory.
#[test]
fn locked_memory_is_limited() {
    let with = |effective, bounding, limit| {
        after(|f, s| {
            (f.bpf, f.locked) = (0, limit);
            (s.effective, s.bounding) = (effective, bounding);
        })
    };
    let limit = 64 << 10;
    let exceeded = |confined| Some(Refusal::LockedMemory { limit, confined });
    assert_eq!(with(BOTH, ALL, Some(limit)), exceeded(false));
    assert_eq!(with(BOTH, BOTH, Some(limit)), exceeded(true));
    // With CAP_SYS_RESOURCE the process has raised its limit, so the limit is not the reason.
    assert_eq!(with(ALL, ALL, Some(limit)), None);
    assert_eq!(with(BOTH, ALL, None), None);
    let refusal = exceeded(false).unwrap();
    assert!(refusal.to_string().contains("locked memory (64 KiB)"));
    let remedies = refusal.remedies("tr", "record -- true");
    assert!(remedies[0].command.contains("cap_sys_resource"));
    assert!(remedies[1].command.ends_with("tr record -- true"));
    let confined = exceeded(true).unwrap().remedies("tr", "record");
    assert!(confined[0].command.contains("--ulimit memlock=-1"));
}

/// On kernels from 5.11 on, BPF maps do not count as locked memory. The tracer recognizes such a kernel by a BPF helper
/// function. Tests that it recognizes this kernel, if the version is 5.11 or later and programs may be loaded.
#[test]
fn a_new_kernel_counts_no_locked_memory() {
    let release = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap();
    if load_least_program() == 0 && version(&release).is_some_and(|version| version >= (5, 11)) {
        assert!(!counts_as_locked());
    }
}

#[test]
fn capabilities_cannot_be_had() {
    assert_eq!(
        after(|_, s| s.bounding = 0xa804_25fb),
        Some(Refusal::Container(NEITHER))
    );
    assert_eq!(
        after(|_, s| s.no_new_privs = true),
        Some(Refusal::NoNewPrivs(NEITHER))
    );
    let inside = |effective| {
        after(|f, s| {
            f.initial_user_namespace = false;
            s.effective = effective;
        })
    };
    assert_eq!(inside(ALL), Some(Refusal::UserNamespace));
    assert_eq!(inside(0), Some(Refusal::UserNamespace));
}

#[test]
fn filters_refuse_whatever_the_capabilities() {
    let filtered = |errno| {
        after(|f, s| {
            f.bpf = errno;
            s.effective = BOTH;
            s.seccomp = true;
        })
    };
    for errno in [libc::EPERM, libc::ENOSYS] {
        assert_eq!(filtered(errno), Some(Refusal::Seccomp(errno)));
    }
    // The missing capabilities are the reason here, and not the seccomp filter: Docker's filter allows bpf(2) to a
    // container that has CAP_BPF.
    let both = after(|_, s| {
        s.seccomp = true;
        s.bounding = 0xa804_25fb;
    });
    assert_eq!(both, Some(Refusal::Container(NEITHER)));
    assert_eq!(after(|f, _| f.bpf = libc::ENOSYS), Some(Refusal::NoBpf));
    assert_eq!(
        after(|_, s| s.effective = BOTH),
        Some(Refusal::SecurityModule(libc::EPERM))
    );
}

#[test]
fn the_kernel_and_its_file_systems_come_first() {
    let (facts, _) = user();
    assert_eq!(facts.refusal(), Some(Refusal::NoProc));
    assert_eq!(after(|f, _| f.sysfs = false), Some(Refusal::NoSysfs));
    assert_eq!(after(|f, _| f.btf = false), Some(Refusal::NoBtf));
    let release = "5.4.0-216-generic";
    let old = after(|f, _| {
        f.btf = false;
        f.release = release.into();
    });
    assert_eq!(
        old,
        Some(Refusal::OldKernel {
            release: release.into()
        })
    );
    assert_eq!(version("5.10.0-8"), Some((5, 10)));
    assert_eq!(version("?"), None);
}

#[test]
fn status_is_read_as_the_kernel_writes_it() {
    let status = Status::parse(
        "Name:\tcat\nUid:\t1000\t0\t0\t0\nCapInh:\t0000000000000000\n\
         CapPrm:\t000000c000000000\nCapEff:\t000000c000000000\nCapBnd:\t000001ffffffffff\n\
         NoNewPrivs:\t1\nSeccomp:\t2\nSeccomp_filters:\t1\n",
    );
    assert_eq!((status.effective, status.bounding), (BOTH, ALL));
    assert!(status.root && status.no_new_privs && status.seccomp);
    let status = Status::parse("Uid:\t0\t1000\t1000\t1000\nSeccomp:\t0\n");
    assert!(!status.root && !status.no_new_privs && !status.seccomp);
}

/// Tests that a remedy that helps only this one recording repeats its command line, and that other remedies do not.
#[test]
fn remedies_that_record_repeat_the_command_line() {
    let (missing, limit) = (NEITHER, 64 << 10);
    let confined = false;
    for refusal in [
        Refusal::NoProc,
        Refusal::NoBtf,
        Refusal::Seccomp(libc::EPERM),
        Refusal::UserNamespace,
        Refusal::NoNewPrivs(missing),
        Refusal::Container(missing),
        Refusal::Capabilities {
            missing,
            root: false,
        },
        Refusal::LockedMemory { limit, confined },
        Refusal::SecurityModule(libc::EPERM),
    ] {
        for remedy in refusal.remedies("tr", "record -- true") {
            let repeats = remedy.command.contains("record -- true");
            assert_eq!(remedy.kind == RemedyKind::Record, repeats, "{remedy:?}");
        }
    }
}

#[test]
fn root_is_not_sent_to_root() {
    let refusals = [
        Refusal::Capabilities {
            missing: NEITHER,
            root: true,
        },
        Refusal::Container(NEITHER),
        Refusal::NoProc,
    ];
    for refusal in refusals {
        let said = format!("{refusal} {:?}", refusal.remedies("/bin/tr", "record -- x"));
        assert!(!said.contains("sudo") && !said.contains("root"), "{said}");
    }
}
