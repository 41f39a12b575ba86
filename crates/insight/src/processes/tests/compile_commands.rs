//! Unit tests of `compile_commands`.

use tr_analyze::arena::Ix;
use tr_format::event::Argv;

use super::*;

/// A process that executes one program. `parent` is the index of its parent process.
fn process(parent: Option<usize>, line: &str) -> Process {
    let args: Vec<&str> = line.split(' ').collect();
    let path = match args.first() {
        Some(name) if !name.contains('/') => format!("/usr/bin/{name}"),
        Some(name) => (*name).to_owned(),
        None => String::new(),
    };
    let argv = Argv::from_args(args);
    let exec = ExecSpan {
        filename: path.as_bytes().into(),
        argv: argv.clone(),
        directory: (*b"/w").into(),
        ..ExecSpan::default()
    };
    Process {
        parent: parent.map(ProcessIx::new),
        status: Some(0),
        argv,
        execs: vec![exec],
        ..Process::default()
    }
}

fn found(mut processes: Vec<Process>) -> CompileCommands {
    for child in 0..processes.len() {
        if let Some(parent) = processes[child].parent {
            processes[parent.place()]
                .children
                .push(ProcessIx::new(child));
        }
    }
    let analysis = Analysis {
        processes,
        ..Analysis::default()
    };
    let all: Vec<ProcessIx> = analysis.process_ids().collect();
    CompileCommands::of(&analysis, &all)
}

/// The source file and the output of each entry of the compilation database.
fn files(found: &CompileCommands) -> Vec<(&str, Option<&str>)> {
    let entries = found.entries.iter();
    entries
        .map(|entry| (entry.file.as_str(), entry.output.as_deref()))
        .collect()
}

#[test]
fn an_entry_has_a_directory_and_absolute_names() {
    let found = found(vec![process(None, "gcc -c -o a.o ./src/a.c")]);
    let entry = CompileCommand {
        directory: "/w".into(),
        arguments: ["/usr/bin/gcc", "-c", "-o", "a.o", "./src/a.c"]
            .map(str::to_owned)
            .into(),
        file: "/w/src/a.c".into(),
        output: Some("a.o".into()),
    };
    assert_eq!(found.entries, [entry]);
    assert!(found.left_out.is_empty());
}

#[test]
fn parts_of_a_call_are_no_entries() {
    let found = found(vec![
        process(None, "make"),
        process(Some(0), "ccache gcc -c -o a.o a.c"),
        process(Some(1), "gcc -E a.c"),
        process(Some(1), "gcc -c -o /tmp/a.o.1 a.c"),
        process(Some(3), "/usr/lib/cc1 a.c -o /tmp/cc.s"),
        // The server of a compiler cache runs compilers for its clients. Only the clients' own calls become entries, so
        // these runs do not.
        process(Some(0), "sccache"),
        process(Some(5), "gcc -c -o /tmp/b.o b.c"),
        // libtool runs the compiler twice: for the shared library and for the static one.
        process(Some(0), "/bin/sh ./libtool --mode=compile gcc -c c.c"),
        process(Some(7), "gcc -c c.c -fPIC -o .libs/c.o"),
        process(Some(7), "gcc -c c.c -o c.o"),
    ]);
    let want = [
        ("/w/a.c", Some("a.o")),
        ("/w/c.c", Some(".libs/c.o")),
        ("/w/c.c", Some("c.o")),
    ];
    assert_eq!(files(&found), want);
    assert_eq!(found.entries[0].arguments[0], "gcc");
    assert!(found.left_out.is_empty(), "{:?}", found.left_out);
}

#[test]
fn a_script_that_becomes_the_compiler_has_one_entry() {
    let mut wrapper = process(None, "/bin/sh /opt/musl-gcc -c a.c");
    let inner = process(None, "gcc -c a.c -specs /opt/musl.specs");
    wrapper.execs.extend(inner.execs);
    let found = found(vec![wrapper]);
    assert_eq!(files(&found), [("/w/a.c", Some("a.o"))]);
    assert_eq!(found.entries[0].arguments[0], "/opt/musl-gcc");
}

#[test]
fn what_is_left_out_is_counted_by_its_reason() {
    let mut failed = process(None, "gcc -c a.c b.c");
    failed.status = Some(256);
    let mut unfinished = process(None, "gcc -c a.c");
    unfinished.status = None;
    let mut nowhere = process(None, "gcc -c a.c");
    nowhere.execs[0].directory = (*b"").into();
    let mut cut = process(None, "gcc -c a.c");
    cut.execs[0].argv.full_len = Some(1000);
    let mut foreign = process(None, "gcc -c a.c");
    foreign.execs[0].argv = Argv::from_args([&b"gcc"[..], b"-c", b"\xff.c"]);
    let found = found(vec![
        failed,
        unfinished,
        nowhere,
        cut,
        foreign,
        process(None, "gcc -xc -"),
        process(None, "gcc -c @sources"),
        process(None, "gcc -c -o conftest.o conftest.c"),
        process(None, "gcc -c -O1 x.c"),
        process(None, "gcc -c -O2 x.c"),
        process(None, "gcc -c -MD -MF /dev/null y.c"),
        process(None, "gcc -c -o /dev/null z.c"),
    ]);
    let want = [
        (LeftOut::Failed, 2),
        (LeftOut::Unfinished, 1),
        (LeftOut::Probe, 2),
        (LeftOut::NoDirectory, 1),
        (LeftOut::Cut, 1),
        (LeftOut::Input, 1),
        (LeftOut::ResponseFile, 1),
        (LeftOut::NotText, 1),
        (LeftOut::Repeated, 1),
    ];
    assert_eq!(found.left_out, BTreeMap::from(want));
    assert_eq!(
        files(&found),
        [("/w/x.c", Some("x.o")), ("/w/y.c", Some("y.o"))]
    );
    assert!(found.entries[0].arguments.contains(&"-O2".to_owned()));
}

#[test]
fn checks_of_a_configuration_are_no_entries() {
    let found = found(vec![
        process(None, "cmake -S . -B build"),
        process(
            Some(0),
            "make -f Makefile cmTC_1/fast -C CMakeFiles/CMakeScratch/TryCompile-1",
        ),
        process(Some(1), "cc -c -o cmTC_1.o test.c"),
        process(None, "cmake --build build"),
        process(Some(3), "make"),
        process(Some(4), "cc -c -o a.o a.c"),
    ]);
    assert_eq!(files(&found), [("/w/a.c", Some("a.o"))]);
    assert_eq!(found.left_out, BTreeMap::from([(LeftOut::Probe, 1)]));
}

#[test]
fn a_masked_argument_is_noticed() {
    let found = found(vec![
        process(None, "gcc -c -DTOKEN=*** a.c"),
        process(None, "gcc -c b.c"),
    ]);
    let masked: Vec<bool> = found
        .entries
        .iter()
        .map(CompileCommand::is_masked)
        .collect();
    assert_eq!(masked, [true, false]);
}
