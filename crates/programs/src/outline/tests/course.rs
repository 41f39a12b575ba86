use super::super::*;

/// A child process in a test of scripts: its command line, which is empty for a fork that executes
/// nothing, and its exit status.
fn child<'a>(line: &'a str, status: u32) -> Child<'a> {
    let args: Vec<&[u8]> = line.split(' ').map(str::as_bytes).collect();
    Child {
        args: Some(args).filter(|_| !line.is_empty()),
        is_cut: false,
        status: Some(status),
    }
}

fn course(shell: &str, script: &str, children: &[(&str, u32)], status: u32) -> Option<Course> {
    course_of(shell, Outline::read(script.as_bytes()), children, status)
}

fn course_of(
    shell: &str,
    outline: Outline,
    children: &[(&str, u32)],
    status: u32,
) -> Option<Course> {
    let args: Vec<&[u8]> = shell.split(' ').map(str::as_bytes).collect();
    let options = Options::of(&args)?;
    let part = ScriptPart::new(outline.into(), options);
    let children: Vec<Child<'_>> = children
        .iter()
        .map(|(line, status)| child(line, *status))
        .collect();
    part.course(&children, status, &mut 10_000_000)
}

/// The reason why a script ended, as a text that tests compare.
fn ending(shell: &str, script: &str, children: &[(&str, u32)], status: u32) -> String {
    let outline = Outline::read(script.as_bytes());
    let Some(course) = course(shell, script, children, status) else {
        return "no way".to_owned();
    };
    match course.ending {
        Ending::Child(at) => children[at].0.to_owned(),
        Ending::OneOf(all) | Ending::Each(all) => {
            let all: Vec<&str> = all.iter().map(|at| children[*at].0).collect();
            all.join("|")
        }
        Ending::Statement(ix) => {
            let command = &outline.commands[ix];
            let (from, to) = command.span;
            format!("{}: {}", command.line, &script[from..to])
        }
        Ending::Statements(all) => {
            let lines = all.iter().map(|ix| outline.commands[*ix].line.to_string());
            let lines: Vec<String> = lines.collect();
            format!("lines {}", lines.join(", "))
        }
        Ending::Unknown => "unknown".to_owned(),
    }
}

#[test]
fn a_failure_that_the_script_tolerates_is_not_its_end() {
    for (script, children, status, want) in [
        ("set -e\na || true\nb\n", &[("a", 1), ("b", 1)][..], 1, "b"),
        (
            "set -e\nif a; then c; fi\nb\n",
            &[("a", 1), ("b", 1)],
            1,
            "b",
        ),
        ("set -e\n! a\nb\n", &[("a", 1), ("b", 2)], 2, "b"),
        ("set -e\na && c\nb\n", &[("a", 1), ("b", 2)], 2, "b"),
        (
            "set -e\na | c\nb\n",
            &[("a", 1), ("c", 0), ("b", 2)],
            2,
            "b",
        ),
        ("a\nb\n", &[("a", 1), ("b", 1)], 1, "b"),
        ("a\n[ -s x ]\n", &[("a", 1)], 1, "2: [ -s x ]"),
        ("set -e\na &\nb\n", &[("a", 1), ("b", 2)], 2, "b"),
        (
            "set -e\nwhile a; do b; done\nc",
            &[("a", 0), ("b", 0), ("a", 1), ("c", 1)],
            1,
            "c",
        ),
        ("set -e\nx=$(a)\nb", &[("a", 4)], 4, "a"),
        ("set -e\nexport x=$(a)\nb", &[("a", 4), ("b", 4)], 4, "b"),
        ("set -e\necho $(a)\nb", &[("a", 4), ("b", 4)], 4, "b"),
        ("set +e; a; set -e; b", &[("a", 3), ("b", 3)], 3, "b"),
        ("set -eo pipefail; a | b; c", &[("a", 3), ("b", 0)], 3, "a"),
    ] {
        assert_eq!(ending("sh x", script, children, status), want, "{script}");
    }
    assert_eq!(ending("sh -e x", "a\nb", &[("a", 1)], 1), "a");
    assert_eq!(
        ending(
            "bash -euo pipefail x",
            "a $y | b\nb",
            &[("a 1", 1), ("b", 0)],
            1
        ),
        "a 1"
    );
    // The shell would have ended with the status of `b`, which is not 3.
    assert_eq!(ending("sh x", "a\nb\n", &[("a", 1), ("b", 1)], 3), "no way");
    assert_eq!(
        ending("sh x", "set -e; a; b", &[("a", 1), ("b", 1)], 1),
        "no way"
    );
}

#[test]
fn a_tested_failure_that_leads_to_the_exit_is_the_end() {
    for (script, children, status, want) in [
        ("cmp a b || exit 1\nc", &[("cmp a b", 1)][..], 1, "cmp a b"),
        (
            "if ! grep -q x; then echo no; exit 4; fi\nc",
            &[("grep -q x", 1)],
            4,
            "grep -q x",
        ),
        ("a || { b; exit 4; }", &[("a", 1), ("b", 0)], 4, "a"),
        (
            "die() { echo \"$1\"; exit 3; }\na || die x\nb",
            &[("a", 1)],
            3,
            "a",
        ),
        (
            "if grep -q x; then exit 4; fi",
            &[("grep -q x", 0)],
            4,
            "1: exit 4",
        ),
        ("a\n[ -s out ] || exit 4", &[("a", 1)], 4, "2: [ -s out ]"),
        (
            "a\nif [ ! -s out ]; then\n exit 4\nfi",
            &[("a", 1)],
            4,
            "2: [ ! -s out ]",
        ),
        ("a\nexit 4", &[("a", 1)], 4, "2: exit 4"),
        ("a\nrc=$?\nb\nexit $rc", &[("a", 7), ("b", 0)], 7, "a"),
        ("a\nrc=${?}\nb\nexit $rc", &[("a", 7), ("b", 0)], 7, "a"),
        (
            "a\nif [ $? -ne 0 ]; then exit 2; fi\nb",
            &[("a", 7)],
            2,
            "a",
        ),
        ("a || rc=$?\nb\nexit \"$rc\"", &[("a", 7), ("b", 0)], 7, "a"),
        (
            "fail=0\na || fail=1\nb || fail=1\nexit $fail",
            &[("a", 7), ("b", 0)],
            1,
            "a",
        ),
        (
            "fail=0\na || fail=1\nb || fail=1\nexit $fail",
            &[("a", 7), ("b", 1)],
            1,
            "a|b",
        ),
        (
            "for x in 1 2; do a $x || bad=1; done\nif [ -n \"$bad\" ]; then exit 5; fi",
            &[("a 1", 2), ("a 2", 0)],
            5,
            "a 1",
        ),
        (
            "n=1\nuntil a; do\n [ $n -lt 2 ] || exit 9\n n=$((n + 1))\n sleep 1\ndone",
            &[("a", 1), ("sleep 1", 0), ("a", 1)],
            9,
            "a",
        ),
        (
            "for t in a b; do t $t\ncase $? in 0) echo ok;; 4) ;; *) failed=\"$failed $t\";; esac; done\n[ -z \"$failed\" ] || exit 1",
            &[("t a", 3), ("t b", 0)],
            1,
            "t a",
        ),
        ("a\nrc=$?\ncase $rc in 0) ;; 9) b; exit 1;; esac", &[("a", 9), ("b", 0)], 1, "a"),
        ("rc=0\nwhile read x; do a $x || rc=1; done < in\nexit $rc", &[("a 1", 2), ("a 2", 0)], 1, "a 1"),
        (
            "for x in 1 2; do a $x & done\nbad=0\nfor x in 1 2; do\nif ! wait -n; then bad=1; kill $(jobs -p); wait; break; fi; done\nexit $bad",
            &[("a 1", 0), ("a 2", 3), ("", 0)],
            1,
            "a 2",
        ),
        ("case $1 in x) a;; *) exit 2;; esac", &[], 2, "1: exit 2"),
        (
            "run() { \"$@\" || exit 3; }\nrun a b\nrun c\n",
            &[("a b", 0), ("c", 1)],
            3,
            "c",
        ),
        (
            "try() { a; b; }\ntry || exit 2",
            &[("a", 1), ("b", 5)],
            2,
            "b",
        ),
        ("set -e\ntry() { a; b; }\ntry\nc", &[("a", 1)], 1, "a"),
        (
            "set -e\ntry() { a || return 6; }\ntry\nc",
            &[("a", 1)],
            6,
            "a",
        ),
        ("a; exit", &[("a", 3)], 3, "a"),
        (
            "for x in 1 2 3; do a $x || bad=1; done\nexit ${bad:-0}",
            &[("a 1", 1), ("a 2", 0), ("a 3", 1)],
            1,
            "a 1|a 3",
        ),
        (
            "a &\ntrap \"kill $!\" EXIT\nwhile ! b; do\nn=$((n + 1))\nif [ $n -ge 2 ]; then exit 1; fi\nc\ndone",
            &[("a", 143), ("b", 7), ("c", 0), ("b", 7)],
            1,
            "b",
        ),
        (
            "a & x=$!\nb & y=$!\nwait $x || echo no\nwait $y || exit 1",
            &[("a", 1), ("b", 1)],
            1,
            "b",
        ),
        (
            "pids=()\nfor n in 1 2; do a $n & pids+=($!); done\nrc=0\nfor p in ${pids[@]}; do wait $p || rc=1; done\nexit $rc",
            &[("a 1", 0), ("a 2", 3)],
            1,
            "a 2",
        ),
        ("a | b\ns=${PIPESTATUS[0]}\nc\nexit \"$s\"", &[("a", 3), ("b", 0), ("c", 0)], 3, "a"),
        (
            "bad=\ncheck() { a $1 || bad=$1; }\ncheck x\ncheck y\n[ -z \"$bad\" ] || exit 1",
            &[("a x", 1), ("a y", 0)],
            1,
            "a x",
        ),
        ("a | b; exit ${PIPESTATUS[0]}", &[("a", 3), ("b", 0)], 3, "a"),
        ("false", &[], 1, "1: false"),
        ("set -e\ncd nowhere\na", &[], 2, "2: cd nowhere"),
        ("a\n. ./lib.sh", &[("a", 1)], 2, "2: . ./lib.sh"),
        (". ./lib.sh\na", &[("b", 0), ("c", 1)], 1, "unknown"),
        ("a & b &\nwait $!", &[("a", 0), ("b", 1)], 1, "b"),
        (
            "for x in 1 2; do a $x & done\nfor x in 1 2; do wait -n || exit 3; done",
            &[("a 1", 1), ("a 2", 0)],
            3,
            "a 1",
        ),
        ("a & b &\nwait", &[("a", 1), ("b", 1)], 1, "a|b"),
    ] {
        assert_eq!(ending("sh x", script, children, status), want, "{script}");
    }
}

#[test]
fn a_trap_runs_after_the_end() {
    let script = "set -e\nclean() { set +e; rm x; umount y; }\ntrap clean EXIT\na\nb\n";
    let children = [("a", 1), ("rm x", 0), ("umount y", 32)];
    assert_eq!(ending("bash x", script, &children, 1), "a");
    let script = "set -e\ntrap 'rmdir s' EXIT\na\n";
    let children = [("a", 0), ("rmdir s", 1)];
    assert_eq!(ending("bash x", script, &children, 1), "rmdir s");
    let children = [("a", 1), ("rmdir s", 1)];
    assert_eq!(ending("bash x", script, &children, 1), "a");
    let script = "set -e\ntrap 'rc=$?; rm x; exit $rc' EXIT\na\nb";
    assert_eq!(ending("sh x", script, &[("a", 5), ("rm x", 1)], 5), "a");
}

#[test]
fn a_child_has_the_line_of_its_command() {
    let script =
        "set -e\nfor f in *.c; do\n  gcc -c \"$f\"\ndone\nld -o x *.o\n(\n  cd y\n  make\n)\n";
    let children = [
        ("gcc -c a.c", 0),
        ("gcc -c b.c", 0),
        ("ld -o x a.o b.o", 0),
        ("", 2),
    ];
    let course = course("sh x", script, &children, 2).unwrap();
    let outline = Outline::read(script.as_bytes());
    let lines = |course: &Course| {
        let lines = course
            .commands
            .iter()
            .map(|ix| outline.commands[ix.unwrap()].line);
        lines.collect::<Vec<u32>>()
    };
    assert_eq!(lines(&course), [3, 3, 5, 7]);
    assert_eq!(course.ending, Ending::Child(3));
    let inside = course.parts[3].as_ref().unwrap();
    let inside = inside.course(&[child("make", 2)], 2, &mut 10_000).unwrap();
    assert_eq!(
        (&inside.ending, lines(&inside)),
        (&Ending::Child(0), vec![8])
    );
}

#[test]
fn a_loop_that_gives_up_ends_by_its_last_try() {
    let script =
        "retry() { for n in 1 2; do \"$@\" && return 0; echo no; sleep 1; done; return 1; }\n\
                  retry a x || exit 1\nretry push y || { echo given up; exit 1; }\n";
    let children = [
        ("a x", 1),
        ("sleep 1", 0),
        ("a x", 0),
        ("push y", 75),
        ("sleep 1", 0),
        ("push y", 75),
        ("sleep 1", 0),
    ];
    assert_eq!(ending("bash x", script, &children, 1), "push y");
    let script = "[ -x z ] && for n in 1 2; do a && break; done\nb || true\nexit 4";
    assert_eq!(
        ending("sh x", script, &[("a", 0), ("b", 1)], 4),
        "3: exit 4"
    );
}

#[test]
fn a_statement_is_linked_with_the_failures_that_it_may_depend_on() {
    let linked = |script: &str, children: &[(&str, u32)]| {
        let course = course("sh x", script, children, 1).unwrap();
        assert!(matches!(course.ending, Ending::Statement(_)), "{script}");
        course.linked
    };
    let script = "gen | sort > out.txt\n[ -s out.txt ] || exit 1";
    assert_eq!(linked(script, &[("gen", 3), ("sort", 0)]), [0]);
    let script = "make 2>&1 | tee log\nif grep -q rror log; then exit 1; fi";
    let children = [("make", 2), ("tee log", 0), ("grep -q rror log", 0)];
    assert_eq!(linked(script, &children), [0]);
    let script = "server &\nsleep 1\n[ -e ready ] || exit 1";
    assert_eq!(linked(script, &[("server", 1), ("sleep 1", 0)]), [0]);
    let script = "[ \"$(count x)\" = 2 ]";
    assert_eq!(linked(script, &[("count x", 1)]), [0]);
    let script = "n=$(count x)\n[ \"$n\" = 2 ] || exit 1";
    assert_eq!(linked(script, &[("count x", 1)]), [0]);
    let script = "copy -r site/. \"public/\" || true\n[ -e public/index.html ] || exit 1";
    assert_eq!(linked(script, &[("copy -r site/. public/", 1)]), [0]);
    let script = "copy -r site/. public/ || true\n[ -e publication/index.html ] || exit 1";
    assert!(linked(script, &[("copy -r site/. public/", 1)]).is_empty());
    let script = "lint || true\n[ -s out.txt ]";
    assert!(linked(script, &[("lint", 1)]).is_empty());
}

#[test]
fn an_interpreter_stands_before_its_script() {
    let script = "set -e\n./gen.py x\ntool y\n";
    let children = [
        ("/usr/bin/env python3 ./gen.py x", 0),
        ("/bin/sh -e /usr/bin/tool y", 3),
    ];
    assert_eq!(ending("sh x", script, &children, 3), children[1].0);
    let other = [("/usr/bin/env python3 ./gen.py y", 1)];
    assert_eq!(ending("sh x", script, &other, 1), "no way");
}

#[test]
fn many_children_take_little_time() {
    let line = "if a \"$x\"; then b c; else d || e; fi\n";
    let script = format!(
        "while read x; do\n{}done\n",
        line.repeat(LONGEST_SCRIPT / line.len() - 1)
    );
    let children = vec![("a 1", 1); 100_000];
    let before = tr_sim::cpu_time::of_thread();
    course("bash -e x", &script, &children, 1);
    course("bash -e x", "while :; do a $x; done", &children, 1);
    let calls = format!("f() {{ {} }}\n", "f; g; a;".repeat(1_000));
    course(
        "bash -eu x",
        &(calls.clone() + &calls.replace("f()", "g()")),
        &children,
        1,
    );
    let took = tr_sim::cpu_time::of_thread() - before;
    assert!(took.as_secs() < 10, "{took:?}");
}

/// The loop's command `./"$tool"` can only start a program, because no builtin or function has a
/// directory in its name. No such program was recorded, so `cd bin` before the loop is the cause.
#[test]
fn a_program_in_a_directory_is_no_builtin() {
    let script = "set -e\nmake -q all || make all\ncd bin\nfor tool in *; do ./\"$tool\" > \"../$tool.out\"; done\n";
    let children = [("make -q all", 1), ("make all", 0)];
    assert_eq!(ending("sh x", script, &children, 2), "3: cd bin");
}

#[test]
fn only_variables_that_the_script_does_not_set_can_be_unset() {
    let script =
        "set -u\ntag=$(git describe 2> /dev/null) || tag=v0\nfor d in a b; do echo $d; done\n\
                  printf '%s\\n' \"$tag ${2:-}\" > notes\necho \"to ${HOST}\"\ncp x \"$HOST\"\n";
    let want = "5: echo \"to ${HOST}\"";
    assert_eq!(ending("bash x", script, &[("", 128)], 1), want);
}

/// The script ended because `$BUCKET` was not set. Neither the earlier failure of `test-lock`, which only answered a
/// question, nor the sourced file of unknown text is reported as the cause.
#[test]
fn a_variable_that_is_not_set_ends_a_script_after_a_question() {
    let script = "set -euo pipefail\nregion=$1\n. \"env/$region.sh\"\nmkdir -p www\nif test-lock www; then\n  exit 0\nfi\n\
                  bucket=$BUCKET\nsync www \"$bucket\"\n";
    let children = [("mkdir -p www", 0), ("test-lock www", 1)];
    let want = "8: bucket=$BUCKET";
    assert_eq!(ending("bash x", script, &children, 1), want);
}

/// The file name of a redirection may contain commands (`$(stem x)`). bash runs these commands in the process of the
/// program, and dash runs them in the shell. So they may be children of the shell, or not.
#[test]
fn the_file_of_a_redirection_may_be_expanded_by_the_program() {
    let script = "set -e\nif known x; then exit 0; fi\nfetch x > \"out/$(stem x).txt\"\n";
    for children in [
        &[("known x", 1), ("fetch x", 4)][..],
        &[("known x", 1), ("stem x", 0), ("fetch x", 4)],
    ] {
        assert_eq!(ending("bash x", script, children, 4), "fetch x");
    }
}

#[test]
fn the_commands_of_conditions_are_asked() {
    let script = "a && b\nif c | d; then e; elif f; then g || h; fi\nuntil (i); do j; done\nk() { while l; do m; done; }\n";
    let outline = Outline::read(script.as_bytes());
    let part = ScriptPart::new(outline.clone().into(), Options::default());
    let usage = part.status_usage().into_iter();
    let asked: Vec<&[u8]> = usage
        .filter(|(_, usage)| usage.is_condition)
        .filter_map(|(ix, _)| outline.commands[ix].words[0].literal())
        .collect();
    assert_eq!(asked, [b"c", b"d", b"f", b"i", b"l"]);
}

/// The test `[ "$how" != ignore ]` only decides whether the failure of `sh steps/build.sh` counts. So the failure is
/// reported as the cause, and not the test.
#[test]
fn a_test_of_a_parameter_leads_to_the_test_before_it() {
    let script = "failed=0\nstep() {\n  local how=${2:-}\n  sh steps/$1.sh\n  local rc=$?\n  \
                  if [ $rc -ne 0 ] && [ \"$how\" != ignore ]; then\n    failed=1\n  fi\n}\n\
                  step lint ignore\nstep build\nexit $failed\n";
    let children = [("sh steps/lint.sh", 1), ("sh steps/build.sh", 2)];
    let named = ending("bash x", script, &children, 1);
    assert!(named.contains("sh steps/build.sh"), "{named}");
}

/// The outline of the script `/w/ci/job.sh`, which runs in `/w`, with the files that it sources.
fn with_files(script: &str, files: &[(&str, &str)]) -> Outline {
    let known = |path: &[u8]| {
        let mut files = files.iter();
        match files.find(|(name, _)| name.as_bytes() == path) {
            Some((_, "?")) => KnownFile::WithoutText,
            Some((_, text)) => KnownFile::Text(text.as_bytes()),
            None => KnownFile::Absent,
        }
    };
    let mut names = |directory: &[u8]| {
        let names = files.iter().filter_map(|(path, _)| {
            let name = path
                .as_bytes()
                .strip_prefix(directory)?
                .strip_prefix(b"/")?;
            (!name.contains(&b'/')).then(|| name.to_vec())
        });
        names.collect()
    };
    let script = script.as_bytes();
    Outline::with_sources(script, Some(b"/w/ci/job.sh"), b"/w", known, &mut names)
}

#[test]
fn the_commands_of_a_file_that_the_script_executes_itself_are_known() {
    let library = "run() {\n    \"$@\" || failed=1\n}\nset -e\n";
    for word in [
        "ci/lib.sh",
        "./ci/lib.sh",
        "/w/ci/lib.sh",
        "lib.sh",
        "\"$(dirname \"$0\")/lib.sh\"",
        "\"$ROOT/ci/lib.sh\"",
        "${BASH_SOURCE%/*}/lib.sh",
    ] {
        let script = format!("cd x\n. {word}\nrun lint\nbuild\n");
        let outline = with_files(&script, &[("/w/ci/lib.sh", library)]);
        assert_eq!(outline.files.len(), 1, "{word}");
        let dirname = word
            .contains("dirname")
            .then_some(("dirname /w/ci/job.sh", 0));
        let mut children: Vec<(&str, u32)> = dirname.into_iter().collect();
        children.extend([("lint", 1), ("build", 2)]);
        let last = children.len() - 1;
        let course = course_of("bash ci/job.sh", outline, &children, 2).unwrap();
        assert_eq!(course.ending, Ending::Child(last), "{word}");
    }
}

#[test]
fn a_statement_of_a_sourced_file_has_its_path_and_its_line() {
    let outline = with_files(
        "source ci/lib.sh\ncheck\n",
        &[(
            "/w/ci/lib.sh",
            "# a\ncheck() {\n    list\n    return 4\n}\n",
        )],
    );
    let args: Vec<&[u8]> = vec![b"bash", b"ci/job.sh"];
    let part = ScriptPart::new(outline.into(), Options::of(&args).unwrap());
    let course = part.course(&[child("list", 0)], 4, &mut 1_000_000).unwrap();
    let Ending::Statement(statement) = course.ending else {
        panic!("{:?}", course.ending);
    };
    let text = part.text(statement).unwrap();
    assert_eq!(
        (text.file, text.line, text.text),
        (Some(&b"/w/ci/lib.sh"[..]), 4, &b"return 4"[..])
    );
}

#[test]
fn files_that_execute_each_other_have_an_end() {
    let files = [
        ("/w/ci/a.sh", ". ci/b.sh\n. ci/b.sh\na\n"),
        ("/w/ci/b.sh", ". ci/a.sh\n. ci/job.sh\nb\n"),
    ];
    let outline = with_files(". ci/a.sh\n. ci/b.sh\nfalse\n", &files);
    assert_eq!(outline.files.len(), 2);
    let mut places = Vec::new();
    outline.collect(&outline.body, &mut places);
    assert!(places.len() < 40);
    let many: String = (0..40).map(|_| ". ci/a.sh\n").collect();
    let _ = with_files(&many, &files).in_order();
}

#[test]
fn a_file_that_the_word_does_not_tell_is_left_out() {
    let files = [("/w/ci/lib.sh", "a\n"), ("/w/lib.sh", "b\n")];
    for word in ["lib.sh", "\"$X/lib.sh\"", "$X", "\"$X\"lib.sh", "$X/*.sh"] {
        let outline = with_files(&format!(". {word}\n"), &files);
        assert!(outline.files.is_empty(), "{word}");
    }
    let files = [("/w/ci/lib.sh", "?"), ("/w/lib.sh", "b\n")];
    assert!(with_files(". lib.sh\n", &files).files.is_empty());
}

#[test]
fn scripts_with_many_parts_take_little_time() {
    let chain = "a && ".repeat(LONGEST_SCRIPT / 5 - 2) + "a\n";
    let twice: Vec<(String, String)> = (0..9)
        .map(|at| {
            let next = format!(". ci/{}.sh\n", at + 1);
            (format!("/w/ci/{at}.sh"), next.repeat(2))
        })
        .collect();
    let twice: Vec<(&str, &str)> = twice
        .iter()
        .map(|(name, text)| (name.as_str(), text.as_str()))
        .collect();
    let unknown = "x\n".repeat(30_000) + ")\n";
    let before = tr_sim::cpu_time::of_thread();
    let _ = Outline::read(chain.as_bytes()).outputs_of(&[b"a"], false);
    let outline = with_files(". ci/0.sh\n. ci/0.sh\n", &twice);
    let mut places = Vec::new();
    outline.collect(&outline.body, &mut places);
    assert!(places.len() < 100, "{}", places.len());
    let _ = with_files(&". ci/x.sh\n".repeat(6_000), &[("/w/ci/x.sh", &unknown)]);
    let took = tr_sim::cpu_time::of_thread() - before;
    assert!(took.as_secs() < 5, "{took:?}");
}

#[test]
fn an_element_of_an_array_is_set_without_a_program() {
    let script = "f() {\n    x\n}\nfor x in a b; do\n    work $x &\n    job[$!]=$x\n    other[$x]+=$x\ndone\n\
                  for pid in \"${!job[@]}\"; do\n    wait \"$pid\" || broken=\"$broken ${job[$pid]}\"\ndone\n\
                  tell || echo no\nif [ -n \"$broken\" ]; then\n    exit 3\nfi\n";
    let children = [("work a", 0), ("work b", 1), ("tell", 7)];
    assert_eq!(ending("bash", script, &children, 3), "work b");
}

#[test]
fn a_failure_that_another_test_may_have_tolerated_is_only_one_of_several() {
    let script = "for n in a b c; do\n    if run $n; then\n        :\n    elif [ \"$n\" = \"$may\" ]; then\n        known=1\n    else\n        failed=1\n    fi\ndone\n\
                  if [ -n \"$failed\" ]; then\n    exit 1\nfi\n";
    let children = [("run a", 0), ("run b", 1), ("run c", 1)];
    let course = course("bash", script, &children, 1).unwrap();
    assert_eq!(course.ending, Ending::OneOf(vec![1, 2]));
}

#[test]
fn a_question_about_a_failure_leads_to_that_failure() {
    let script = "failed=\nfor spec in a b; do\n    out=$(run $spec)\n    case $? in\n        0) ;;\n        77) echo skip ;;\n        *)\n\
                  \x20           if grep -qx $spec known; then\n                :\n            else\n                failed=\"$failed $spec\"\n            fi ;;\n    esac\ndone\n\
                  [ -z \"$failed\" ]\n";
    let children = [("run a", 0), ("run b", 1), ("grep -qx b known", 1)];
    assert_eq!(ending("sh", script, &children, 1), "run b");
    let script = "make\nif ! grep -q done log; then\n    exit 4\nfi\n";
    let children = [("make", 1), ("grep -q done log", 1)];
    assert_eq!(ending("sh", script, &children, 4), "grep -q done log");
    let script = "if make; then\n    if grep -q warning log; then\n        exit 0\n    else\n        exit 4\n    fi\nfi\n";
    let children = [("make", 0), ("grep -q warning log", 1)];
    assert_eq!(ending("sh", script, &children, 4), "grep -q warning log");
}

#[test]
fn the_files_that_a_loop_executes_are_known() {
    let files = [
        ("/w/ci/steps/1.sh", "gen || true\n"),
        ("/w/ci/steps/2.sh", "check\nlist\n"),
        ("/w/ci/steps/notes", "pack\n"),
    ];
    for words in [
        "ci/steps/*.sh",
        "\"$HERE\"/steps/*.sh",
        "$(dirname $0)/steps/[0-9].sh",
        "/w/ci/steps/?.sh",
        "steps/1.sh steps/2.sh",
    ] {
        let script = format!("set -e\nfor part in {words}; do\n    . \"$part\"\ndone\nend\n");
        let outline = with_files(&script, &files);
        assert_eq!(outline.files.len(), 2, "{words}");
        let mut children = vec![("gen", 1), ("check", 2)];
        if words.contains("dirname") {
            children.insert(0, ("dirname x", 0));
        }
        let last = children.len() - 1;
        let course = course_of("bash ci/job.sh", outline, &children, 2).unwrap();
        assert_eq!(course.ending, Ending::Child(last), "{words}");
    }
    // One of the files that the loop sources is not known, so none is added.
    let script = "set -e\nfor part in steps/*.sh lib.sh; do\n    . $part\ndone\n";
    assert!(with_files(script, &files).files.is_empty());
}

#[test]
fn the_patterns_of_a_case_say_which_kept_statuses_count() {
    let script = "for d in a b c; do\n    rc=0\n    run $d || rc=$?\n    case $rc in\n        0|5) ;;\n        1) exit 1 ;;\n        *) exit 2 ;;\n    esac\ndone\n";
    let children = [("run a", 0), ("run b", 5), ("run c", 1)];
    assert_eq!(ending("bash x", script, &children, 1), "run c");
    let children = [("run a", 5), ("run b", 7)];
    assert_eq!(ending("bash x", script, &children, 2), "run b");
    let script = "bad=()\nfor t in a b c; do\n    run $t\n    rc=$?\n    case \"$rc\" in\n        0) ;;\n        77) echo skip ;;\n        12?) bad+=(\"$t\") ;;\n        [1-9]*) bad+=(x) ;;\n    esac\ndone\n\
                  if [ ${#bad[@]} -gt 0 ]; then\n    exit 1\nfi\n";
    let children = [("run a", 77), ("run b", 124), ("run c", 0)];
    assert_eq!(ending("bash x", script, &children, 1), "run b");
    let children = [("run a", 77), ("run b", 0), ("run c", 9)];
    assert_eq!(ending("bash x", script, &children, 1), "run c");
}

#[test]
fn a_kept_status_that_a_test_excludes_is_no_reason() {
    let script = "one; a=$?\ntwo; b=$?\nif [ $a -ne 0 ] || [ $b -ne 0 ]; then exit 1; fi\n";
    assert_eq!(ending("sh x", script, &[("one", 0), ("two", 9)], 1), "two");
    assert_eq!(ending("sh x", script, &[("one", 9), ("two", 0)], 1), "one");
    let script = "all=0\nfor n in 1 2 3; do\n    run $n\n    rc=$?\n    [ $rc -lt 3 ] || all=$rc\ndone\nexit $all\n";
    let children = [("run 1", 2), ("run 2", 4), ("run 3", 0)];
    assert_eq!(ending("sh x", script, &children, 4), "run 2");
}

#[test]
fn counters_and_arrays_are_conditions() {
    for (count, condition) in [
        ("((errors++))", "((errors > 0))"),
        ("((errors += 1))", "(( errors ))"),
        ("let errors+=1", "[ $errors -gt 0 ]"),
        ("errors+=(x)", "(( ${#errors[@]} ))"),
        ("errors+=(\"$1\")", "[ ${#errors[@]} -ne 0 ]"),
        ("errors+=(x)", "[[ ${#errors[*]} -gt 0 ]]"),
        ("errors+=(x)", "[ -n \"${errors[*]}\" ]"),
    ] {
        let none = if count.contains('(') && count.contains("=(") {
            "errors=()"
        } else {
            "errors=0"
        };
        let script = format!(
            "{none}\nnote || true\ncheck() {{\n    if run $1; then\n        echo ok\n    else\n        {count}\n    fi\n}}\n\
             check a\ncheck b\nlist || echo none\nif {condition}; then\n    exit 1\nfi\n"
        );
        let children = [("note", 1), ("run a", 0), ("run b", 1), ("list", 1)];
        assert_eq!(ending("bash x", &script, &children, 1), "run b", "{script}");
    }
    let script = "bad=0\nrun a || ((bad++))\nlist || true\n((bad == 0))\n";
    assert_eq!(
        ending("bash x", script, &[("run a", 3), ("list", 1)], 1),
        "run a"
    );
}

#[test]
fn bash_runs_a_script_without_an_interpreter_in_a_fork() {
    let script = "set -e\nlist || true\n./tools/pack.sh x\n";
    assert_eq!(ending("bash x", script, &[("list", 1), ("", 3)], 3), "");
    // For a script without `#!`, shells other than bash execute `/bin/sh` again, so the child would have arguments.
    assert_eq!(ending("sh x", script, &[("list", 1), ("", 3)], 3), "no way");
    let children = [("list", 1), ("/bin/sh ./tools/pack.sh x", 3)];
    assert_eq!(
        ending("sh x", script, &children, 3),
        "/bin/sh ./tools/pack.sh x"
    );
}

#[test]
fn an_element_of_an_array_of_jobs_may_be_any_of_them() {
    let script = "bad=0\nfor n in a b c; do\n    run $n &\n    pids[$n]=$!\ndone\n                  for n in a b c; do\n    if ! wait \"${pids[$n]}\"; then\n        bad=1\n    fi\ndone\nexit $bad\n";
    let children = [("run a", 0), ("run b", 1), ("run c", 0)];
    assert_eq!(ending("bash x", script, &children, 1), "run b");
}

#[test]
fn a_test_of_a_file_after_a_failure_leads_to_the_failure() {
    let script = "for n in a b c; do\n    set +e\n    diff got/$n want/$n > $n.diff\n    st=$?\n    set -e\n    case $st in\n        0) ;;\n        1) if [ -e $n.allow ]; then echo allowed; else bad=\"$bad $n\"; fi ;;\n        *) exit $st ;;\n    esac\ndone\n[ -z \"$bad\" ] || exit 1\n";
    let children = [
        ("diff got/a want/a", 0),
        ("diff got/b want/b", 1),
        ("diff got/c want/c", 1),
    ];
    let named = ending("sh x", script, &children, 1);
    assert_eq!(named, "diff got/b want/b|diff got/c want/c");
    // `grep -q` only answers a question and ends no script by itself, so the test after it is the cause.
    let script = "if ! grep -q on conf; then\n    [ -e default ] || exit 1\nfi\n";
    let named = ending("sh x", script, &[("grep -q on conf", 1)], 1);
    assert_eq!(named, "2: [ -e default ]");
}

#[test]
fn a_child_or_a_statement_can_be_the_reason() {
    let script = "bad=0\nlist || true\nrun || bad=1\n[ -e x ] || bad=1\nexit $bad\n";
    let children = [("list", 1), ("run", 1)];
    assert_eq!(ending("sh x", script, &children, 1), "run");
    let children = [("list", 1), ("run", 0)];
    assert_eq!(ending("sh x", script, &children, 1), "4: [ -e x ]");
    let script = "bad=0\nlist || true\n[ -e y ] || bad=1\n[ -e x ] || bad=1\nexit $bad\n";
    assert_eq!(ending("sh x", script, &[("list", 1)], 1), "lines 3, 4");
}

#[test]
fn an_eval_that_sets_a_variable_does_nothing_else() {
    let script = "for h in a b; do\n    if probe $h; then\n        eval \"have_$h=1\"\n    else\n        echo no\n    fi\ndone\nif [ -z \"$have_b\" ]; then\n    exit 1\nfi\n";
    let children = [("probe a", 0), ("probe b", 1)];
    let named = ending("sh x", script, &children, 1);
    assert_eq!(named, "8: [ -z \"$have_b\" ]");
}

#[test]
fn a_status_that_a_function_gets_is_given_for_the_reason_of_its_call() {
    let die = "die() {\n    local rc=$1\n    shift\n    echo \"$*\"\n    exit \"$rc\"\n}\n";
    let script =
        format!("{die}list || true\ntoken=$(get || true)\n[ -n \"$token\" ] || die 78 none\n");
    let children = [("list", 1), ("", 0)];
    let named = ending("bash x", &script, &children, 78);
    assert_eq!(named, "9: [ -n \"$token\" ]");
    let script = format!("{die}list || true\nbuild || die 3 x\n");
    let children = [("list", 1), ("build", 1)];
    assert_eq!(ending("bash x", &script, &children, 3), "build");
    let script = "die() { exit \"${2:-1}\"; }\nlist || true\nbuild || die x\n";
    assert_eq!(ending("bash x", script, &children, 1), "build");
}

#[test]
fn a_statement_is_linked_with_the_command_after_whose_success_a_variable_would_differ() {
    for script in [
        "note || true\nfor n in 1 2; do\n    if get x; then done=1; break; fi\n    sleep 1\ndone\nif [ -z \"${done:-}\" ]; then\n    exit 3\nfi\n",
        "ok=0\nnote || true\nget() { command get \"$@\"; }\nfor n in 1 2; do\n    get x && ok=1 && break\n    sleep 1\ndone\n[ $ok -eq 1 ] || exit 3\n",
    ] {
        let children = [
            ("note", 1),
            ("get x", 7),
            ("sleep 1", 0),
            ("get x", 7),
            ("sleep 1", 0),
        ];
        let course = course("bash x", script, &children, 3).unwrap();
        assert!(matches!(course.ending, Ending::Statement(_)), "{script}");
        assert_eq!(course.linked, [3], "{script}");
    }
    let script = "ok=0\nif grep -q x f; then ok=1; fi\n[ $ok = 1 ] || exit 3\n";
    let course = course("bash x", script, &[("grep -q x f", 1)], 3).unwrap();
    assert!(course.linked.is_empty());
}

#[test]
fn a_statement_with_the_status_counts_more_than_a_file_that_is_not_known() {
    let script = "set -e\n. ./settings\nping h || echo down\nneed() {\n    [ -n \"$1\" ] || exit 71\n}\nneed \"$TOKEN\"\nrun\n";
    let children = [("ping h", 2)];
    let want = "5: [ -n \"$1\" ] || exit 71";
    let got = ending("bash x", script, &children, 71);
    assert_eq!(got, want.split(" ||").next().unwrap_or_default());
    // The status 1 could also come from a failed builtin in the sourced file. But the script's own `ping` ran after
    // this file, so the file is hardly the cause.
    let script = script.replace("exit 71", "exit 1");
    let named = ending("bash x", &script, &children, 1);
    assert_eq!(named, "5: [ -n \"$1\" ]");
    let script = script
        .replace(". ./settings\n", "")
        .replace("down\n", "down\n. ./settings\n");
    assert_eq!(ending("bash x", &script, &children, 1), "lines 3, 5");
}

#[test]
fn a_loop_of_tries_that_was_left_without_success_sets_the_status() {
    let script = "bad=()\nfor part in a b c; do\n    for try in 1 2; do\n        if make \"$part\"; then\n            continue 2\n        fi\n        \
                  echo again\n    done\n    bad+=(\"$part\")\ndone\nif [ ${#bad[@]} -gt 0 ]; then\n    exit 1\nfi\n";
    let children = [
        ("make a", 2),
        ("make a", 0),
        ("make b", 2),
        ("make b", 2),
        ("make c", 0),
    ];
    assert_eq!(ending("bash x", script, &children, 1), "make b");
    let script = "for part in a b; do\n    while :; do\n        make $part && break\n        n=$((n + 1))\n        [ $n -lt 2 ] || break\n    done\ndone\ncheck\n";
    let children = [("make a", 2), ("make a", 2), ("make b", 0), ("check", 1)];
    assert_eq!(ending("bash x", script, &children, 1), "check");
}

#[test]
fn a_substitute_writes_the_file_of_a_failed_command() {
    for (script, want) in [
        (
            "set -e\nget -o $t/x u || echo none > $t/x\nuse $t/x\n",
            true,
        ),
        (
            "f() { if true; then get -o x u || { echo no; echo > x; }; fi; }\nf\n",
            true,
        ),
        ("get -o $t/x u || echo none > $t/y\n", false),
        ("get -o $t/x u && echo none > $t/x\n", false),
        ("get -o $t/x u\necho none > $t/x\n", false),
    ] {
        let outline = Outline::read(script.as_bytes());
        let is_get = |command: &Command| {
            let first = command.words.first();
            first.is_some_and(|word| word.text == b"get")
        };
        let command = outline.commands.iter().position(is_get).unwrap();
        let part = ScriptPart::new(outline.into(), Options::of(&[&b"sh"[..], b"x"]).unwrap());
        assert_eq!(part.has_substitute(command), want, "{script}");
    }
}

#[test]
fn a_loop_that_a_return_without_a_number_leaves_fails_by_its_last_command() {
    let script = "again() {\n    for n in 1 2; do\n        \"$@\" && return\n        sleep 1\n    done\n    return 1\n}\nset -e\nagain warm\nagain push x\n";
    let children = [
        ("warm", 7),
        ("sleep 1", 0),
        ("warm", 0),
        ("push x", 9),
        ("sleep 1", 0),
        ("push x", 9),
        ("sleep 1", 0),
    ];
    assert_eq!(ending("bash x", script, &children, 1), "push x");
}

#[test]
fn a_command_alone_in_a_list_has_a_status_that_nothing_looks_at() {
    let script = "set -e\nf() {\n    for x in 1 2; do\n        echo\n        load $x\n    done\n    check\n}\na || true\nif b; then c; d; fi\n\
                  ! e\ng | h\n(i; j) &\nwhile k; do l; done\nm\nlast\n";
    let outline = Outline::read(script.as_bytes());
    let part = ScriptPart::new(
        outline.clone().into(),
        Options::of(&[&b"sh"[..], b"x"]).unwrap(),
    );
    let words = |ix: &CommandIx| {
        let name = outline.commands[*ix].words.first()?.literal()?;
        Some(String::from_utf8_lossy(name).into_owned())
    };
    let names: Vec<String> = part
        .status_usage()
        .iter()
        .filter(|(_, usage)| !usage.is_used)
        .map(|(ix, _)| ix)
        .filter_map(words)
        .collect();
    assert_eq!(names.join(" "), "set echo load c d i l m");
}
