//! Unit tests of `host`.

use super::*;

#[test]
fn a_cpu_list_is_parsed() {
    assert_eq!(cpu_list("0-3,8\n"), [0, 1, 2, 3, 8]);
    assert_eq!(cpu_list("0"), [0]);
    assert_eq!(cpu_list(""), [0u16; 0]);
}

#[test]
fn the_affinity_is_that_of_all_processes_if_it_is_narrower() {
    let status = b"Name:\tCpus_allowed_list:\nCpus_allowed:\t5\nCpus_allowed_list:\t0,2-3\nX:\t1\n";
    assert_eq!(allowed_in(status), Some(vec![0, 2, 3]));
    assert_eq!(allowed_in(b"Name:\tx\n"), None);
    let own = allowed_in(&fs::read("/proc/self/status").unwrap()).unwrap();
    let own: Vec<CpuId> = own.into_iter().map(CpuId).collect();
    let pid = std::process::id();
    assert_eq!(allowed_cpus([pid], &own), None, "all of them are allowed");
    let more: Vec<CpuId> = own.iter().copied().chain([CpuId(u16::MAX)]).collect();
    assert_eq!(allowed_cpus([pid], &more), Some(own.clone()));
    assert_eq!(allowed_cpus([pid, 0], &more), None, "one is not known");
    assert_eq!(allowed_cpus([], &more), None, "no process");
}

#[test]
fn a_long_argv_is_cut_while_it_is_read() {
    struct Endless(usize);
    impl Read for Endless {
        fn read(&mut self, out: &mut [u8]) -> std::io::Result<usize> {
            self.0 += out.len();
            assert!(self.0 < 100_000, "the read is not bounded");
            out.fill(b'x');
            Ok(out.len())
        }
    }
    assert_eq!(read_at_most(Endless(0), 1000), (vec![b'x'; 1000], true));
    assert_eq!(read_at_most(&b"abc"[..], 3), (b"abc".to_vec(), false));
    assert_eq!(read_at_most(&b"abcd"[..], 3), (b"abc".to_vec(), true));
}

#[test]
fn a_time_namespace_adds_to_the_clocks() {
    let text = "monotonic        1000         5\nboottime          -7         0\n";
    let offsets = Offsets::parse(text);
    assert_eq!(offsets.monotonic, 1_000_000_000_005);
    assert_eq!(offsets.boot, -7_000_000_000);
    assert_eq!(Offsets::parse(""), Offsets::default());
}

#[test]
fn hardware_is_recorded_as_the_kernel_reports_it() {
    let x86 =
        "processor\t: 0\ncpu family\t: 25\nmodel\t\t: 17\nmodel name\t: AMD EPYC\nstepping\t: 1\n\
               microcode\t: 0x1000065\ncpu MHz\t\t: 2596.138\nflags\t\t: fpu hypervisor sse\n";
    let of = |text: &str, product: &str| {
        let all = hardware_of(text, "MemTotal:       24000000 kB\n", product);
        let all = all
            .into_iter()
            .map(|(fact, value)| format!("{}={value}", fact.name()));
        all.collect::<Vec<_>>().join(", ")
    };
    assert_eq!(
        of(x86, "Amazon EC2 m7a.large"),
        "cpu model=AMD EPYC, cpu stepping=25 17 1, microcode=0x1000065, memory bytes=24576000000, \
         virtualization=Amazon EC2 m7a.large"
    );
    assert!(of(x86, "").ends_with("virtualization=a hypervisor"));
    assert!(of(&x86.replace("hypervisor", "x"), "Dell R640").ends_with("virtualization=none"));
    let arm = "processor\t: 0\nCPU implementer\t: 0x41\nCPU variant\t: 0x3\nCPU part\t: 0xd0c\nCPU revision\t: 1\n";
    assert_eq!(
        of(arm, ""),
        "cpu model=implementer 0x41 part 0xd0c, cpu stepping=0x3 1, memory bytes=24576000000"
    );
    // The recorded CPU model of this machine must be the one in /proc/cpuinfo.
    let here = std::fs::read_to_string("/proc/cpuinfo").unwrap();
    if let Some((_, model)) = here
        .lines()
        .find_map(|line| line.strip_prefix("model name")?.split_once(": "))
    {
        assert!(hardware().contains(&("cpu model".to_owned(), model.to_owned())));
    }
}

#[test]
fn ids_of_spans_differ() {
    assert_ne!(random(), random());
}

#[test]
fn another_namespaces_limit_of_ids_is_not_taken() {
    let largest = |namespace: Option<&str>, set| largest_ids(namespace.map(Path::new), set);
    let first = Some("pid:[4026531836]");
    assert_eq!(largest(first, Some(32_768)), 32_768);
    assert_eq!(largest(first, Some(1 << 23)), MOST_IDS);
    assert_eq!(largest(first, None), MOST_IDS);
    for other in [Some("pid:[4026532211]"), None] {
        assert_eq!(largest(other, Some(400)), MOST_IDS, "{other:?}");
    }
}
