//! Unit tests of `normal`.

use super::*;

fn normal(arg: &str, paths: Paths) -> String {
    argument(arg.as_bytes(), "/home/ci/w/17/proj", &[4711, 1], paths)
}

#[test]
fn run_specific_parts_are_left_out() {
    let cases = [
        ("/tmp/ccniXNmC.s", "/tmp/#.s"),
        ("tmp.Xq3k1PzR9a", "#"),
        (
            "--jobserver-auth=fifo:/tmp/GMfifo4711",
            "--jobserver-auth=fifo:/tmp/#",
        ),
        ("/home/ci/w/17/proj/src/a.c", "src/a.c"),
        ("-I/home/ci/w/17/proj/inc", "-Iinc"),
        ("/home/ci/w/17/proj", "."),
        ("out.4711", "out.#"),
        ("out.4712", "out.4712"),
        ("libfoo-0123456789abcdef.rlib", "libfoo-#.rlib"),
        (
            "e83c5163316f89bfbde7d9ab23ca2e25604af290:Makefile",
            "#:Makefile",
        ),
        ("--seed=1700000000", "--seed=#"),
        ("/tmp/go-build3159143680/b001/exe", "/tmp/go-#/b001/exe"),
        ("report20261201.csv", "report20261201.csv"),
        ("-O2", "-O2"),
        ("deadbeef", "deadbeef"),
        ("feedback", "feedback"),
        ("x86_64-linux-gnu", "x86_64-linux-gnu"),
        ("1", "1"),
    ];
    for (arg, is) in cases {
        assert_eq!(normal(arg, Paths::Whole), is, "{arg}");
    }
}

#[test]
fn directories_of_other_checkouts_count_less_and_less() {
    let both = |arg| (normal(arg, Paths::Two), normal(arg, Paths::Name));
    let is = |two: &str, name: &str| (two.to_owned(), name.to_owned());
    assert_eq!(both("/b/x/src/a.c"), is("/src/a.c", "/a.c"));
    assert_eq!(both("-I/b/x/src"), is("-I/x/src", "-I/src"));
    assert_eq!(both("--o=/b/x/y,/b/z"), is("--o=/x/y,/b/z", "--o=/y,/z"));
    assert_eq!(
        both("/usr/include/a/b"),
        is("/usr/include/a/b", "/usr/include/a/b")
    );
    assert_eq!(both("src/sub/a.c"), is("src/sub/a.c", "src/sub/a.c"));
    assert_eq!(both("s/a/b/"), is("s/a/b/", "s/a/b/"));
    // A build may run in a directory of its own (`out-1`) below the working directory that it shares with other builds.
    assert_eq!(
        both("/home/ci/w/17/proj/out-1/bin/gen > /home/ci/w/17/proj/out-1/inc/a.h"),
        is("/bin/gen > /inc/a.h", "/gen > /a.h")
    );
}

/// Checks `identity_key`, the least specific key by which processes of two recordings are matched. The key is equal for
/// command lines that differ only in facts of one run, and for scripts that were edited in the middle.
#[test]
fn processes_are_recognized_by_their_words() {
    let key = |words: &[&str]| {
        let mut words = words.iter().copied();
        let program = ProgramName::new(words.next().unwrap_or_default());
        let identity = Identity::Program(program, words.map(str::to_owned).collect());
        identity_key(&identity, false, "/home/ci/w/17/proj", &[4711])
    };
    for (one, other, want) in [
        (&["sh", "/tmp/a1/x.sh"], &["sh", "/var/b2/x.sh"], true),
        (&["gcc", "-I/tmp/a/inc"], &["gcc", "-I/var/b/inc"], true),
        (&["make", "out.4711"], &["make", "out.4712"], false),
    ] {
        assert_eq!(key(one) == key(other), want, "{one:?} {other:?}");
    }
    let script = |middle: &str| {
        format!("cd /home/ci/w/17/proj/src && make --no-print-directory {middle}CFLAGS=-O2 all install check")
    };
    let edited = script("--jobs=8 --keep-going ");
    assert!(key(&["sh", "-c", &script("")]) == key(&["sh", "-c", &edited]));
    assert!(key(&["sh", "-c", &script("")]) != key(&["sh", "-c", "make"]));
    let by = |identity| identity_key(&identity, false, "/", &[]);
    let server = Identity::Server(ProgramName::new("postgres"));
    assert!(by(server) != by(Identity::KernelThread("postgres".to_owned())));
}
