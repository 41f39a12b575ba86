//! Finds secrets that a shell script writes to the standard input of a program, or to a file:
//! `echo X | login`, `login <<< X`, a here-document, `echo X > password`.

use std::ops::Range;
use std::sync::LazyLock;

use regex::bytes::{Captures, Regex};

use crate::harmless::is_harmless;
use crate::looks;
use crate::matching::{compiled, first_group};
use crate::names::{self, Certainty};
use crate::words;

/// Matches a text that a script writes to a program, with the rest of the pipeline:
/// `echo X | docker login --password-stdin`, `<(echo X)`, `login <<< X`.
static PIPED: LazyLock<Regex> = LazyLock::new(|| {
    compiled(concat!(
        r#"(?-u)\b(?:echo|printf|yes)\s+(?:-[neE]+\s+)?(?:["']?%s(?:\\n)?["']?\s+)?"#,
        r#"(?:"([^"|]*)"|'([^'|]*)'|([^\s"'|;&]+))\s*\|([^;&\n]*)"#,
        r#"|<\((?:echo|printf)\s+(?:-[neE]+\s+)?["']?([^"')]+)["']?\)"#,
        r#"|([^|;&\n<]*)<<<\s*(?:"([^"]*)"|'([^']*)'|([^\s"'|;&]+))"#,
    ))
});

/// Matches a text that a script writes to a file: `echo X > FILE`.
static FILED: LazyLock<Regex> = LazyLock::new(|| {
    compiled(concat!(
        r#"(?-u)\b(?:echo|printf)\s+(?:-[neE]+\s+)?(?:["']?%s(?:\\n)?["']?\s+)?"#,
        r#"(?:"([^"|]*)"|'([^'|]*)'|([^\s"'|;&>]+))\s*>>?\s*["']?([^\s;|&"'<>()]+)"#,
    ))
});

/// Matches a here-document whose text is one line without blanks. The groups are the command before `<<`, the end
/// word, the rest of the line after the end word, the line of text, and the first word of the next line.
static DOCUMENT: LazyLock<Regex> = LazyLock::new(|| {
    compiled(
        r#"(?-u)([^|;&\n<]*)<<-?[ \t]*\\?["']?(\w+)["']?([^\n]*)\n[ \t]*([^\s]+)[ \t]*\n[ \t]*(\w+)"#,
    )
});

/// Matches programs and options that read a secret from their standard input, such as `--password-stdin`.
static READS_SECRET: LazyLock<Regex> = LazyLock::new(|| {
    compiled(concat!(
        r"(?-u)--password-stdin|--with-token|\bchpasswd\b|\bpasswd\s+--stdin|\bsudo\s+-S\b",
        r"|--passphrase-fd|-pass(?:in|out)?\s+stdin|--token-stdin|--api-key-stdin",
        r"|\bsudo\s+-[A-Za-z]*S|\bsu\s|\bpasswd\b|\b(?:secrets?|env)\s+(?:put|set|add|create)\b",
        r"|\bvncpasswd\s+-f|--passwd-on-stdin|\bsmbpasswd\b|\bhtpasswd\s+-\w*i|\bkinit\b|--stdin-name|\bargon2\b|\bsecrethub\s+write|keystore\s+add\b",
        r"|\bsecrets?\s+versions\s+add|\bsecret\s+create|--key-file[= ]-|\bsecret-tool\s+store",
        r"|\bpass(?:age)?\s+insert|--[a-z-]*(?:password|token|secret|key|auth)-(?:from-)?stdin|\bcryptsetup\b",
        r"|\bkubeseal\s+--raw|\bzfs\s+(?:create|load-key|change-key)|\blpass\s+login|\bkeepassxc-cli|\bhtdigest\b",
        r"|\bwg\s+pubkey|\bgopass\s+insert|\bdocker-credential|\bvault\s+login\s+-$|--pwfile",
        r"|-stdin-?pass|-pass(?:wd|word)?-?stdin|(?:key|token|secret|password)\s+/dev/stdin",
    ))
});

/// Words such as `login` and `password` that show that a command in a pipeline handles a secret.
#[rustfmt::skip]
const ABOUT_SECRETS: [&[u8]; 22] = [
    b"login", b"join", b"signin", b"auth", b"authenticate", b"password", b"passwd", b"passphrase", b"passcode", b"secret",
    b"secrets", b"credential", b"credentials", b"creds", b"token", b"tokens", b"unlock", b"unseal", b"apikey",
    b"vault", b"keyring", b"keychain",
];

/// Programs that pass their input on or only measure it, such as `cat` and `wc`. They need no password, so a text that
/// a script writes to them does not count as a secret.
#[rustfmt::skip]
const FILTERS: [&[u8]; 34] = [
    b"awk", b"base32", b"base64", b"bc", b"cat", b"cmp", b"cut", b"dc", b"diff", b"egrep", b"fold", b"grep", b"head",
    b"hexdump", b"jq", b"less", b"md5sum", b"nl", b"od", b"rev", b"sed", b"sha1sum", b"sha256sum", b"sha512sum",
    b"shasum", b"sort", b"tail", b"tee", b"tr", b"uniq", b"wc", b"xxd", b"yq", b"rg",
];

/// Passes the byte range of each secret that a script writes to a program or a file to `masked`.
pub fn find(script: &[u8], mut masked: impl FnMut(Range<usize>)) {
    let has = |byte: u8| script.contains(&byte);
    let mut search = |expression: &Regex, secret: fn(&Captures<'_>) -> Option<Range<usize>>| {
        let found = expression.captures_iter(script);
        found
            .filter_map(|found| secret(&found))
            .for_each(&mut masked);
    };
    if has(b'|') || has(b'<') {
        search(&PIPED, of_pipe);
    }
    if has(b'>') {
        search(&FILED, of_file);
    }
    if has(b'<') && has(b'\n') {
        search(&DOCUMENT, of_document);
    }
}

fn of_pipe(found: &Captures<'_>) -> Option<Range<usize>> {
    if let Some(secret) = found.get(5).filter(|text| !is_harmless(text.as_bytes())) {
        return Some(secret.range());
    }
    let secret = first_group(found, 1..4).or_else(|| first_group(found, 7..10))?;
    let program = found.get(4).or_else(|| found.get(6))?;
    if is_harmless(secret.as_bytes()) || !reads(program.as_bytes(), secret.as_bytes()) {
        return None;
    }
    // chpasswd reads `user:password`, of which only the password is the secret.
    let name = secret.as_bytes().iter().position(|b| *b == b':');
    Some(secret.start() + name.map_or(0, |at| at + 1)..secret.end())
}

fn of_document(found: &Captures<'_>) -> Option<Range<usize>> {
    let (command, secret) = (found.get(1)?, found.get(4)?);
    let ends = found.get(2)?.as_bytes() == found.get(5)?.as_bytes();
    let pipeline = [command.as_bytes(), found.get(3)?.as_bytes()].concat();
    let reads = ends && reads(&pipeline, secret.as_bytes());
    (reads && !is_harmless(secret.as_bytes())).then(|| secret.range())
}

/// The byte range of a text that a script writes to a file whose name says that it contains a
/// secret: `X` of `echo X > /run/secrets/db_password`.
fn of_file(found: &Captures<'_>) -> Option<Range<usize>> {
    let secret = first_group(found, 1..4)?;
    let path = found.get(4)?.as_bytes();
    let name = path.rsplit(|b| *b == b'/').next()?;
    // This file is the list of the users, and has no passwords.
    if path == b"/etc/passwd" {
        return None;
    }
    let stem = name.strip_suffix(b".txt").unwrap_or(name);
    let holds = names::secret(stem) == Certainty::Strong && looks::is_no_word(secret.as_bytes());
    (holds && !is_harmless(secret.as_bytes())).then(|| secret.range())
}

/// Whether a command of this pipeline reads the text as a secret.
fn reads(pipeline: &[u8], text: &[u8]) -> bool {
    if READS_SECRET.is_match(pipeline) {
        return true;
    }
    let commands = pipeline.split(|b| *b == b'|');
    let mut programs = commands.filter(|command| !is_filter(command)).peekable();
    if programs.peek().is_none() {
        return false;
    }
    // A text with settings or a URL is not taken for a secret as a whole. Secrets inside it are found by other rules.
    let trimmed = text.trim_ascii_end();
    let padding = trimmed.iter().rev().take_while(|b| **b == b'=').count();
    let bare = trimmed.get(..trimmed.len() - padding).unwrap_or_default();
    let whole = !bare.contains(&b'=') && !bare.windows(3).any(|part| part == b"://");
    let mixed = looks::is_no_word(text) || looks::changes_case(text) && !text.contains(&b' ');
    looks::is_scrambled(text) || whole && mixed && programs.any(is_about_secret)
}

/// Whether a command of a pipeline only passes its input on, as `cat` does. If the command ends with a quoted script,
/// it is enough that the program in that script does so.
fn is_filter(command: &[u8]) -> bool {
    let script = command.rsplit(|b| b"\"'".contains(b)).next();
    let script = script.filter(|script| script.len() < command.len());
    is_filter_program(command)
        || script.is_some_and(|script| !script.trim_ascii().is_empty() && is_filter_program(script))
}

fn is_filter_program(command: &[u8]) -> bool {
    let mut words = command.split(u8::is_ascii_whitespace);
    let program = words.find(|word| !word.is_empty() && !words::is_assignment(word));
    let base = program.and_then(|program| program.rsplit(|b| *b == b'/').next());
    base.is_none_or(|base| FILTERS.contains(&base))
}

/// Whether a word of the command shows that the command handles a secret, such as `login`. File names and values of
/// options do not count.
fn is_about_secret(command: &[u8]) -> bool {
    let plain = |word: &&[u8]| {
        let in_name = |b: &u8| b.is_ascii_alphabetic() || b"-_:".contains(b);
        !word.starts_with(b"-") && word.iter().all(in_name)
    };
    let words = command.split(u8::is_ascii_whitespace).filter(plain);
    words.take(64).any(|word| {
        let mut parts = word.split(|b| b"-_:".contains(b));
        parts.any(|part| ABOUT_SECRETS.contains(&part) || part.ends_with(b"passwd"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(script: &str) -> Vec<&str> {
        let mut found = Vec::new();
        find(script.as_bytes(), |part| found.extend(script.get(part)));
        found
    }

    #[test]
    fn a_text_for_a_program_that_reads_a_secret_is_one() {
        for script in [
            "echo maple7Lake | az devops login --organization o",
            "op signin --raw <<< 'maple7Lake'",
            "wg set wg0 peer p preshared-key /dev/stdin <<< maple7Lake",
            "echo -n maple7Lake | hdiutil attach -stdinpass a.dmg",
            "echo maple7Lake | tr -d x | systemd-creds encrypt - out",
            "echo 'maple7Lake' > /run/secrets/db_password",
            "podman login --password-stdin r <<EOF\nmaple7Lake\nEOF",
            "sudo -S make <<< maple7Lake",
        ] {
            assert_eq!(found(script), ["maple7Lake"], "{script}");
        }
    }

    #[test]
    fn a_text_for_another_program_is_none() {
        for script in [
            "echo maple7lake | grep token",
            "base64 -d <<< aGVsbG8K",
            "echo yes | tool login",
            "echo maple7lake > notes",
            "cat <<EOF > password\nmaple7lake\nEOF",
            "echo maple7lake | ./run-auth-tests.sh",
        ] {
            assert_eq!(found(script), [""; 0], "{script}");
        }
    }

    #[test]
    fn every_expression_compiles() {
        for expression in [&PIPED, &FILED, &DOCUMENT, &READS_SECRET] {
            assert!(!expression.is_match(b"x"));
        }
    }
}
