//! Tests the rules with command lines of real tools, some with a secret and some without.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)] // in a test

use std::sync::LazyLock;

use tr_format::event::Argv;
use tr_redact::Redactor;

/// The lists of command lines with a secret. Each list was written before the rules were measured with that list.
const SECRET: [&str; 21] = [
    include_str!("corpus/secret.txt"),
    include_str!("corpus/secret-2.txt"),
    include_str!("corpus/secret-3.txt"),
    include_str!("corpus/secret-4.txt"),
    include_str!("corpus/secret-5.txt"),
    include_str!("corpus/secret-6.txt"),
    include_str!("corpus/secret-7.txt"),
    include_str!("corpus/secret-8.txt"),
    include_str!("corpus/secret-11.txt"),
    include_str!("corpus/secret-12.txt"),
    include_str!("corpus/secret-13.txt"),
    include_str!("corpus/secret-14.txt"),
    include_str!("corpus/secret-15.txt"),
    include_str!("corpus/secret-16.txt"),
    include_str!("corpus/secret-17.txt"),
    include_str!("corpus/secret-18.txt"),
    include_str!("corpus/secret-19.txt"),
    include_str!("corpus/secret-20.txt"),
    include_str!("corpus/secret-21.txt"),
    include_str!("corpus/secret-22.txt"),
    include_str!("corpus/secret-23.txt"),
];

/// The lists of command lines without a secret.
const HARMLESS: [&str; 21] = [
    include_str!("corpus/harmless.txt"),
    include_str!("corpus/harmless-2.txt"),
    include_str!("corpus/harmless-3.txt"),
    include_str!("corpus/harmless-4.txt"),
    include_str!("corpus/harmless-5.txt"),
    include_str!("corpus/harmless-6.txt"),
    include_str!("corpus/harmless-7.txt"),
    include_str!("corpus/harmless-8.txt"),
    include_str!("corpus/harmless-9.txt"),
    include_str!("corpus/harmless-10.txt"),
    include_str!("corpus/harmless-11.txt"),
    include_str!("corpus/harmless-12.txt"),
    include_str!("corpus/harmless-13.txt"),
    include_str!("corpus/harmless-14.txt"),
    include_str!("corpus/harmless-15.txt"),
    include_str!("corpus/harmless-16.txt"),
    include_str!("corpus/harmless-17.txt"),
    include_str!("corpus/harmless-18.txt"),
    include_str!("corpus/harmless-19.txt"),
    include_str!("corpus/harmless-20.txt"),
    include_str!("corpus/harmless-21.txt"),
];

/// The command lines in a file, without its comments.
fn lines(file: &'static str) -> impl Iterator<Item = &'static str> {
    file.lines().filter(|line| !line.starts_with('#'))
}

/// Expands placeholders in a line: `{36}` to 36 letters and digits, `{36h}` to hexadecimal digits, `{36d}` to decimal
/// ones, and `{36u}` to those of base 32. The corpus has no whole tokens, because the secret scanner of a repository
/// would refuse them.
fn expanded(line: &str) -> String {
    let (mut out, mut rest, mut seed) = (String::new(), line, 0x2545_f491_4f6c_dd1d_u64);
    while let Some((before, after)) = rest.split_once('{') {
        out.push_str(before);
        let inner = after.split('}').next().unwrap_or_default();
        let digits = inner.trim_end_matches(['h', 'd', 'u']);
        let Ok(count) = digits.parse::<usize>() else {
            out.push('{');
            rest = after;
            continue;
        };
        let set: &[u8] = match inner.strip_prefix(digits) {
            Some("h") => b"0123456789abcdef",
            Some("d") => b"0123456789",
            Some("u") => b"ABCDEFGHIJKLMNOPQRSTUVWXYZ234567",
            _ => b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789",
        };
        for _ in 0..count {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            out.push(char::from(
                set[usize::try_from(seed >> 33).unwrap() % set.len()],
            ));
        }
        rest = &after[inner.len() + 1..];
    }
    out + rest
}

/// The arguments that a shell would find in a line, without expansions. In double quotes, `\n` is a
/// line feed.
fn args(line: &str) -> Vec<String> {
    let (mut args, mut arg, mut quote) = (Vec::new(), None::<String>, None);
    let mut chars = line.chars();
    while let Some(c) = chars.next() {
        match (quote, c) {
            (None, ' ') => args.extend(arg.take()),
            (None, '"' | '\'') => {
                quote = Some(c);
                arg.get_or_insert_default();
            }
            (Some(open), c) if c == open => quote = None,
            (Some('"'), '\\') => match chars.next().unwrap() {
                'n' => arg.get_or_insert_default().push('\n'),
                c => arg.get_or_insert_default().push(c),
            },
            (_, c) => arg.get_or_insert_default().push(c),
        }
    }
    assert_eq!(quote, None, "{line}");
    args.extend(arg);
    args
}

/// Masks a command line, and returns its arguments as lines of text.
fn masked(args: &[String]) -> String {
    static REDACTOR: LazyLock<Redactor> = LazyLock::new(|| Redactor::new(true, Vec::new()));
    let argv = REDACTOR.clone().masked_argv(Argv::from_args(args));
    let args: Vec<_> = argv.args().map(String::from_utf8_lossy).collect();
    args.join("\n")
}

/// The secrets that are marked in a line, and the line's arguments without the marks.
fn marked(line: &str) -> (Vec<String>, Vec<String>) {
    let args = args(&expanded(line));
    let secrets = args.iter().flat_map(|arg| {
        let marked = arg.split('«').skip(1);
        marked.map(|rest| rest.split('»').next().unwrap().to_owned())
    });
    let bare = args.iter().map(|arg| arg.replace(['«', '»'], ""));
    (secrets.collect(), bare.collect())
}

/// Whether the masked text still has a secret. The function counts how often the secret occurs before and after
/// masking, because the same text may also be the name of a user, which is not masked.
fn remains(secrets: &[String], before: &str, kept: &str) -> bool {
    secrets.iter().any(|secret| {
        let marked = secrets.iter().filter(|other| *other == secret).count();
        let count = |text: &str| text.matches(secret.as_str()).count();
        count(kept) + marked > count(before)
    })
}

/// Whether only a shell can run the line: outside of quotes, it has a pipe, a list of commands or a text for standard
/// input.
fn needs_shell(line: &str) -> bool {
    let mut quote = None;
    for byte in line.bytes() {
        match quote {
            None if b"|;<>".contains(&byte) => return true,
            None if b"\"'".contains(&byte) => quote = Some(byte),
            Some(open) if open == byte => quote = None,
            _ => {}
        }
    }
    false
}

#[test]
fn secrets_of_real_tools_are_masked() {
    for (list, file) in SECRET.into_iter().enumerate() {
        let (mut all, mut missed) = (0, Vec::new());
        for line in lines(file).filter(|line| !needs_shell(line)) {
            let (secrets, bare) = marked(line);
            assert!(!secrets.is_empty(), "no secret is marked: {line}");
            let kept = masked(&bare);
            all += 1;
            if remains(&secrets, &bare.join("\n"), &kept) {
                missed.push(format!("{line}\n    {}", kept.replace('\n', " ")));
            }
        }
        let missed = judged(list, all, &missed, "not masked");
        assert!(all >= 120 && missed * 100 <= all * 2, "list {list}");
    }
}

/// Tests each line as a script, which is one argument of the shell that runs it.
#[test]
fn secrets_in_scripts_are_masked() {
    for (list, file) in SECRET.into_iter().enumerate() {
        let (mut all, mut missed) = (0, Vec::new());
        for line in lines(file) {
            let (secrets, _) = marked(line);
            let script = expanded(line).replace(['«', '»'], "");
            let kept = masked(&["sh".to_owned(), "-c".to_owned(), script.clone()]);
            all += 1;
            if remains(&secrets, &script, &kept) {
                missed.push(format!("{line}\n    {}", kept.replace('\n', " ")));
            }
        }
        let missed = judged(list, all, &missed, "not masked in a script");
        assert!(missed * 100 <= all * 2, "list {list}");
    }
}

/// Prints those lines of a list for which the rules gave a wrong result, and returns the number of these lines.
fn judged(list: usize, all: usize, wrong: &[String], what: &str) -> usize {
    let lines = wrong.join("\n");
    println!("list {list}: {} of {all} {what}:\n{lines}", wrong.len());
    wrong.len()
}

/// Tests that the masks are narrow, because a mask that takes more than the secret hides the command.
#[test]
fn a_mask_takes_the_secret_and_little_more() {
    for (list, file) in SECRET.into_iter().enumerate() {
        let (mut all, mut wide) = (0, Vec::new());
        for line in lines(file) {
            let (secrets, bare) = marked(line);
            let secret: usize = secrets.iter().map(String::len).sum();
            let kept = masked(&bare);
            let before = bare.join("\n").len() - secret;
            all += 1;
            if before > kept.replace("***", "").len() + 24 {
                wide.push(format!("{line}\n    {}", kept.replace('\n', " ")));
            }
        }
        let wide = judged(list, all, &wide, "hide too much");
        assert!(wide * 100 <= all * 2, "list {list}");
    }
}

#[test]
fn harmless_command_lines_of_real_tools_stay() {
    let mut too_many = Vec::new();
    for (list, file) in HARMLESS.into_iter().enumerate() {
        let (mut all, mut wrong) = (0, Vec::new());
        for line in lines(file) {
            let args = args(&expanded(line));
            let kept = masked(&args);
            all += 1;
            if kept != args.join("\n") {
                wrong.push(format!("{line}\n    {}", kept.replace('\n', " ")));
            }
        }
        let wrong = judged(list, all, &wrong, "masked");
        too_many.extend((all < 150 || wrong * 200 > all).then_some(list));
    }
    assert_eq!(too_many, [0; 0], "lists");
}

#[test]
fn masking_twice_is_masking_once() {
    let mut redactor = Redactor::new(true, Vec::new());
    for line in SECRET.into_iter().flat_map(lines) {
        let (_, bare) = marked(line);
        let argv = Argv::from_args(&bare);
        assert_eq!(
            redactor.find(&argv).is_empty(),
            masked(&bare) == bare.join("\n"),
            "{line}"
        );
        let once = redactor.masked_argv(argv);
        assert_eq!(redactor.find(&once), [], "{line}");
        assert_eq!(redactor.masked_argv(once.clone()), once, "{line}");
    }
}
