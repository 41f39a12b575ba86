use super::super::*;

fn words(script: &str) -> Vec<String> {
    let outline = Outline::read(script.as_bytes());
    let commands = outline.in_order().into_iter().map(|command| {
        let words = command.words.iter().map(|word| word.text.clone());
        String::from_utf8_lossy(&words.collect::<Vec<_>>().join(&b' ')).into_owned()
    });
    commands.filter(|words| !words.is_empty()).collect()
}

#[test]
fn the_commands_of_a_script_come_in_the_order_of_its_text() {
    for (script, commands) in [
        ("a 1; b 2 && c || d | e & f", "a 1,b 2,c,d,e,f"),
        (
            "if a; then b; elif c; then d; else e; fi >x 2>&1; f",
            "a,b,c,d,e,f",
        ),
        (
            "while read -r x; do a \"$x\"; done < <(list); b",
            "read -r x,a $x,b",
        ),
        ("for x in a b; do\n\ta $x # no\ndone\nb", "a $x,b"),
        ("for ((i = 0; i < 3; i++)); do a; done; b", "a,b"),
        ("case $x in\n(a|b) a;;\n*) b ;;\nesac\nc", "a,b,c"),
        ("f() { a; }\nfunction g {\nb\n}\nf; g", "a,b,f,g"),
        ("(cd x && make) 2>log; { a; b; }", "cd x,make,a,b"),
        ("cat <<EOF && a\nno $(b)\nif\nEOF\nc", "cat,a,c"),
        ("cat <<-'END' | a\n\tno `b\n\tEND\nc", "cat,a,c"),
        (
            "[[ $x =~ ^(a|b)$ && -f y ]] || a; (( x > 1 )) && b",
            "[[ $x =~ ^ a b $ -f y ]],a,(( $x -gt 1,b",
        ),
        ("x=$(a; b) y=1 c \"$(d)\" 'e f' \"g\\\"\"", "c $(d) e f g\""),
        ("a=(1 2 $(b)); c", "c"),
        ("x=${y:-$(a)} ; ! b; time c", "b,c"),
        (
            "a $((1 + (2 * 3))) `b \\`c\\``; d",
            "a $((1 + (2 * 3))) `b \\`c\\``,d",
        ),
        ("a \\\n  b\nc&&d\n", "a b,c,d"),
        ("echo }; a} {b", "echo },a} {b"),
        ("a 2>&1 >/dev/null </dev/null 3<&- &>>log; b", "a,b"),
        ("cat <<< \"$x\"; b", "cat,b"),
        ("if a\nthen\n  b\nfi\n", "a,b"),
        ("a | while read x; do b; done | c", "a,read x,b,c"),
        ("ls !(a|b) *.c {a,b}; d", "ls !(a|b) *.c {a,b},d"),
    ] {
        assert_eq!(words(script).join(","), commands, "{script}");
        assert!(Outline::read(script.as_bytes()).is_whole, "{script}");
    }
}

#[test]
fn a_command_has_its_line_and_its_text() {
    let script = b"#!/bin/sh\nset -e\ncat <<EOF\nx $(a)\nEOF\n\n[ -s out ] ||\n  exit 4\n";
    let outline = Outline::read(script);
    let at = |command: &Command| {
        let (from, to) = command.span;
        let text = String::from_utf8_lossy(&script[from..to]).into_owned();
        (command.line, text)
    };
    let all: Vec<(u32, String)> = outline.in_order().into_iter().map(at).collect();
    let want = [
        (2, "set -e"),
        (3, "cat <<EOF"),
        (7, "[ -s out ]"),
        (8, "exit 4"),
    ];
    assert_eq!(all, want.map(|(line, text)| (line, text.to_owned())));
    assert_eq!(outline.commands[2].line, 4);
    assert_eq!(outline.commands[1].substitutions.len(), 1);
}

#[test]
fn words_fit_the_arguments_that_they_can_become() {
    let word = |text: &str| Outline::read(text.as_bytes()).commands[0].words[0].clone();
    assert!(word("a'b c'\"d\"").fits(b"ab cd"));
    assert!(word("\"$x/y.c\"").fits(b"src/y.c"));
    assert!(!word("\"$x/y.c\"").fits(b"src/z.c"));
    assert!(word("-I\"$x\"/y").fits(b"-Isrc/y"));
    assert!(!word("-I\"$x\"/y").fits(b"-I/z"));
    assert_eq!(word("\"$@\"").expansion, Expansion::Arguments);
    assert_eq!(word("\"${@}\"").expansion, Expansion::Arguments);
    assert_eq!(word("$x").expansion, Expansion::Any);
    assert_eq!(word("*.c").expansion, Expansion::Any);
    assert_eq!(word("\"${rc}\"").variable(), Some(&b"rc"[..]));
    assert_eq!(word("'$x'").variable(), None);
}

#[test]
fn any_text_has_an_end() {
    let parts = [
        "'",
        "\"$(",
        "\\",
        ">",
        "2>&",
        "$((",
        ")",
        "`a",
        "<<<",
        "<<E",
        "((",
        "if",
        "case x in",
        "${",
        "}",
        "fi",
        "esac",
        "a()",
        "for",
        "while",
        ";;",
        "&&",
        "|",
        "[[",
        "x=(",
        "@(",
        "{",
        "\0",
        "<(",
        "!",
        "$'\\",
        "a\n",
    ];
    for first in parts {
        for second in parts {
            for third in parts {
                Outline::read(format!("{first} {second}{third}").as_bytes());
            }
        }
        let long = first.repeat(LONGEST_SCRIPT / first.len() + 9);
        let outline = Outline::read(long.as_bytes());
        assert!(
            !outline.is_whole || first == "a\n" || first == "!",
            "{first}"
        );
    }
}

#[test]
fn the_output_of_a_program_goes_to_the_file_that_the_script_names() {
    let output = |script: &str, line: &str| {
        let outline = Outline::read(script.as_bytes());
        let args: Vec<&[u8]> = line.split(' ').map(str::as_bytes).collect();
        let output = outline.outputs_of(&args, false).into_iter().next();
        output.map(|output| String::from_utf8_lossy(&output).into_owned())
    };
    for (script, line, want) in [
        (
            "perl a.pl x | sort > gen/a.inc",
            "perl a.pl x",
            Some("gen/a.inc"),
        ),
        ("cd sub; gen \"$x\" > out.txt; ls", "gen 1", Some("out.txt")),
        ("{ a; b | c; } > all.txt", "b", Some("all.txt")),
        ("(a) 2> log", "a", None),
        ("gen > \"$out\"", "gen", None),
        ("gen > one; gen > two", "gen", None),
        ("a | b", "a", None),
        ("gen a > x.new && mv x.new x", "gen a", Some("x.new")),
        ("gen > \"$out/x.txt\"", "gen", Some("x.txt")),
        (
            "for n in a b; do m4 in/$n.m4 > \"out/${n}.new\" && mv a b; done",
            "m4 in/b.c.m4",
            Some("out/b.c.new"),
        ),
        ("gen $n > out/$m", "gen a", None),
        ("gen $n > \"$out/${n}.txt\"", "gen a", Some("a.txt")),
        ("gen $n > \"$out.txt\"", "gen a", None),
        ("gen $n > \"$(pwd)/$n.txt\"", "gen a", None),
    ] {
        assert_eq!(output(script, line).as_deref(), want, "{script}");
    }
}

#[test]
fn a_file_that_is_moved_only_after_a_success_is_an_output_too() {
    let script =
        "[ -f in/$n.m4 ] && m4 in/$n.m4 > \"out/$n.new\" && mv \"out/$n.new\" \"out/$n\" || true\n";
    let outline = Outline::read(script.as_bytes());
    let outputs = outline.outputs_of(&[b"m4", b"in/cron.tab.m4"], false);
    assert_eq!(outputs, [&b"out/cron.tab.new"[..], b"out/cron.tab"]);
}

#[test]
fn a_trap_for_a_signal_is_known() {
    for (script, handles) in [
        ("trap 'kill $!; exit 1' TERM\nsleep 99 & wait\n", true),
        ("trap cleanup EXIT INT", true),
        ("trap - SIGHUP; make", true),
        ("trap cleanup EXIT; make 2", false),
        ("trap TERM", false),
    ] {
        let outline = Outline::read(script.as_bytes());
        assert_eq!(outline.handles_signals(), handles, "{script}");
    }
}
