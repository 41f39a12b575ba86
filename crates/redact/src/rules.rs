//! The rules that recognize a secret in a command line: by its name (`words`), by its
//! program's options (`programs`), by the form of its value (`forms`), by its place in a URL,
//! a header, JSON, SQL or a pipe.

use std::ops::Range;
use std::sync::LazyLock;

use aho_corasick::{AhoCorasick, AhoCorasickKind};
use regex::bytes::{Captures, Match, Regex};

use crate::names::{self, is_harmless, Sure};
use crate::programs::{self, Found, Options};
use crate::words::{self, Word};
use crate::{forms, looks, Masks, MASK};

/// Nested scripts (`sh -c "ssh host 'sh -c …'"`) are read to this depth. So each rule
/// reads a byte of the command line at most `DEPTH + 1` times.
const DEPTH: usize = 4;

/// No rule applies to a command line without one of these, in upper or lower case, and without a program
/// of the table. Tests compare it with the rules.
#[rustfmt::skip]
const HINTS: [&str; 57] = [
    "config:set", "env:set", "&u=", "?u=",
    "pass", "secret", "token", "key", "pw", "cred", "auth", "bearer", "cookie",
    "sig=", "signature", "://", "login", "otp", "identified", "psk", "hmac", "jwt", "pserver",
    "put-parameter", "alias", "http-basic", "sudo -", "cryptsetup", "kinit", "mfa", "_pat=", "_pat\0", "--pat\0", "--pat=", "bundle_", "ident", "pragma", "pin=", "-pin", "jdbc:",
    "akia", "session", "assword", "connect(", "pdo(", "su -c", "-u\0", "--user\0", "-u ", "--user ", "access_code", "mnemonic", "dsn", "htdigest", "<<<", "| su ", "|su ",
];

/// `scheme://user:password@host`: a password as in RFC 3986, or one with characters that
/// should have been encoded; or a token alone as the user.
static URL: LazyLock<Regex> = LazyLock::new(|| {
    compiled(concat!(
        r#"(?-u)://[^\s/?#:@"']*:([^\s"'/?#]+)@|://[^\s/?#:@"']*:([^\s"'@]+)@"#,
        r"|https?://([A-Za-z0-9_~=+-]{16,})@|:pserver:[^\s:@]*:([^\s@]+)@",
        // Without a scheme; Oracle's.
        r"|^[\w.-]+:([^\s:@/]+)@(?:(?:tcp|unix)\(|(?:[A-Za-z][\w.-]*|[0-9]+(?:\.[0-9]+){3})(?::[0-9]+)?(?:/[\w-]*)?$)",
        r"|:thin:[^\s/:]+/([^\s@]+)@",
    ))
});

/// The same, cut off before its end.
static CUT_URL: LazyLock<Regex> =
    LazyLock::new(|| compiled(r#"(?-u)://[^\s/?#:@"']*:([^\s"'@/?#]+)$"#));

/// `"name": "value"`, `name = 'value'`, `ENV['name'] = "value"`; the same with escaped quotes.
static QUOTED: LazyLock<Regex> = LazyLock::new(|| {
    compiled(concat!(
        r#"(?-u)([A-Za-z0-9_.-]+)(?:\\?["'])?[\]})]?\s*(?::=?|=>?)\s*(?:"#,
        r#"\\["']([^"'\\\s;&|)][^"'\\]*)\\["']"#,
        r#"|"([^"\\\s;&|)](?:[^"\\]|\\.)*)"|'([^'\\\s;&|)](?:[^'\\]|\\.)*)')"#,
    ))
});

/// `Name: value`, at the start of an argument, a line, a quoted text or a value; with or
/// without `-H` before it.
static COLON: LazyLock<Regex> = LazyLock::new(|| {
    compiled(r#"(?i-u)(?:^/?|[\s"'=]|\\n)(-H\s*)?([a-z0-9_-]+):([ \t]*)([^\s"'\\]+)"#)
});

/// Headers whose value is a secret to its end, in addition to the secret names.
const SECRET_HEADERS: [&str; 4] = [
    "authorization",
    "proxy-authorization",
    "cookie",
    "set-cookie",
];

/// Headers whose value is a secret, with or without a blank after the colon.
const SECRET_FIELDS: [&str; 6] = [
    "private-token",
    "job-token",
    "deploy-token",
    "x-auth",
    "x-auth-key",
    "x-jfrog-art-api",
];

/// SQL, netrc: `PASSWORD 'X'`, `IDENTIFIED BY 'X'`, `login me password X`.
static STATEMENT: LazyLock<Regex> = LazyLock::new(|| {
    compiled(concat!(
        r"(?i-u)\b(?:password|identified(?:\s+with\s+\w+)?\s+by(?:\s+password)?|using)",
        r#"(?:\s+|\s*[=(]\s*)\\?(?:'([^'\\]+)|"([^"\\]+))"#,
        r"|\bpassword\s+for\s+\S+\s*=\s*\\?'([^'\\]+)|\bpragma\s+(?:hex|re)*key\s*=\s*\\?['\x22]([^'\x22\\]+)",
        r"|(?:^|[\r\n])[\w.*-]+:(?:[0-9]+|\*):[^:\s]+:[^:\s]+:([^:\s]+)(?:[\r\n]|$)",
        r#"|assword:?[^;\w]*;?\s*send\s+(?:--\s+)?\\?"([^"\\]+)"#,
        r"|\bidentified\s+by\s+([^\s'\x22\\;]+)",
        r"|\blogin\s+\S+\s+password\s+([^\s\\]+)",
    ))
});

/// `echo X | docker login --password-stdin`: up to the pipe; the program after it.
static PIPED: LazyLock<Regex> = LazyLock::new(|| {
    compiled(concat!(
        r#"(?-u)\b(?:echo|printf)\s+(?:-[neE]+\s+)?(?:["']?%s(?:\\n)?["']?\s+)?"#,
        r#"(?:"([^"|]*)"|'([^'|]*)'|([^\s"'|;&]+))\s*\|([^|;&\n]*)"#,
        r#"|<\((?:echo|printf)\s+(?:-[neE]+\s+)?["']?([^"')]+)["']?\)"#,
        r#"|([^|;&\n<]*)<<<\s*(?:"([^"]*)"|'([^']*)'|([^\s"'|;&]+))"#,
    ))
});

/// Programs that read a secret from standard input.
static READS_SECRET: LazyLock<Regex> = LazyLock::new(|| {
    compiled(concat!(
        r"(?-u)--password-stdin|--with-token|\bchpasswd\b|\bpasswd\s+--stdin|\bsudo\s+-S\b",
        r"|--passphrase-fd|-pass(?:in|out)?\s+stdin|--token-stdin|--api-key-stdin",
        r"|\bsudo\s+-[A-Za-z]*S|\bsu\s|\bpasswd\b|\b(?:secrets?|env)\s+(?:put|set|add|create)\b",
        r"|\bvncpasswd\s+-f|--passwd-on-stdin|\bsmbpasswd\b|\bhtpasswd\s+-\w*i|\bkinit\b|--stdin-name",
        r"|\bsecrets?\s+versions\s+add|\bsecret\s+create|--key-file[= ]-|\bsecret-tool\s+store",
        r"|\bpass\s+insert|--[a-z-]*(?:password|token|secret|key)-(?:from-)?stdin|\bcryptsetup\b",
        r"|\bkubeseal\s+--raw|\bzfs\s+(?:create|load-key|change-key)|\blpass\s+login|\bkeepassxc-cli|\bhtdigest\b",
        r"|\bwg\s+pubkey|\bgopass\s+insert|\bdocker-credential|\bvault\s+login\s+-$|--pwfile",
    ))
});

/// `{"name": "API_KEY", "value": "X"}`, `ParameterKey=DbPassword,ParameterValue=X`.
static PAIR: LazyLock<Regex> = LazyLock::new(|| {
    compiled(concat!(
        r#"(?i-u)"?(?:parameter)?(?:name|key)\\?"?\s*[:=]\s*\\?"?([\w.-]+)\\?"?\s*,\s*\\?"?"#,
        r#"(?:parameter)?value\\?"?\s*[:=]\s*\\?"?([^"\\\s,}]+)"#,
    ))
});

/// `define('DB_PASSWORD', 'X')`: a call with a name and a value in quotes.
static ARGUMENTS: LazyLock<Regex> = LazyLock::new(|| {
    compiled(concat!(
        r#"(?-u)\w\s*\(\s*(?:"([\w.-]+)"\s*,\s*"([^"\\]+)"|"#,
        r#"'([\w.-]+)'\s*,\s*'([^'\\]+)')\s*[,)]"#,
    ))
});

/// `Credentials("realm", "host", "user", "X")`: calls whose last text is a password.
static CALL: LazyLock<Regex> = LazyLock::new(|| {
    compiled(concat!(
        r"(?i-u)(?:credentials?|superuser|connect|auth|login|pdo|mysqli|(?:set|change)_?(?:user)?_?password)\w*",
        r#"\s*=?\s*\(([^()]*)\)|securestring\s+(?:-string\s+)?["']([^"']+)"#,
    ))
});

/// Compiles a constant expression, when a command line first needs it: most builds never
/// do, and all of them take a ms. Tests compile each.
#[allow(clippy::expect_used)] // of a constant
pub fn compiled(text: &str) -> Regex {
    Regex::new(text).expect("a constant expression is a valid one")
}

/// The searches for hints.
#[derive(Clone, Debug)]
pub struct Rules {
    hints: AhoCorasick,
    forms: AhoCorasick,
}

impl Rules {
    #[allow(clippy::expect_used)] // of constants
    pub fn new() -> Rules {
        let search = |words: &[&str], kind| {
            let mut builder = AhoCorasick::builder();
            let search = builder
                .kind(Some(kind))
                .ascii_case_insensitive(true)
                .build(words);
            search.expect("a list of 200 words is not too large")
        };
        Rules {
            // Every command line is searched for these: a DFA takes half the time.
            hints: search(&[&HINTS[..], &forms::HINTS].concat(), AhoCorasickKind::DFA),
            forms: search(&forms::HINTS, AhoCorasickKind::ContiguousNFA),
        }
    }

    /// A rule may apply to this command line.
    pub fn may_apply(&self, line: &[u8], args: &[&[u8]]) -> bool {
        let pairs = args.iter().zip(args.iter().skip(1));
        let coded = |(option, value): (&&[u8], &&[u8])| {
            words::may_take_password(option)
                && (looks::is_scrambled(value) || looks::is_random(value))
        };
        self.hints.is_match(line)
            || pairs.into_iter().any(coded)
            || args
                .iter()
                .any(|arg| may_hold(arg) || forms::may_be_discord(arg) || forms::may_be_token(arg))
    }

    /// Masks the secrets among the arguments; `cut`: the last one may lack its end.
    pub fn apply(&self, args: &[&[u8]], cut: bool, masks: &mut Masks) {
        let words = args.iter().enumerate().map(|(arg, text)| Word {
            arg,
            at: 0,
            text,
            first: arg == 0,
        });
        let words: Vec<Word<'_>> = words.collect();
        self.line(&words, DEPTH, false, masks);
        if let (true, Some(last)) = (cut, words.last()) {
            let secret = CUT_URL.captures(last.text).and_then(|found| found.get(1));
            masks.extend(last, secret.map(|secret| secret.range()));
        }
    }

    /// A command line, or the words of a script; `printed`: of a text that a program prints.
    fn line(&self, words: &[Word<'_>], depth: usize, printed: bool, masks: &mut Masks) {
        let mut read = Read::new(words);
        let mut last: Option<&Word<'_>> = None;
        for (at, word) in words.iter().enumerate() {
            if word.first {
                read.end(last, masks);
                read = Read::new(words.get(at..).unwrap_or_default());
            }
            last = Some(word);
            if read.secret(word, masks) {
                continue;
            }
            let text = word.text;
            let option = read.previous;
            if read.is_text(text) {
                self.known(word, true, masks);
                read.previous = text;
                continue;
            }
            let script = words::is_script(option, text) && !read.options.is_plain();
            let part = words::replacement(word);
            if let Some((part, true)) = &part {
                masks.add(part, 0..part.text.len());
            }
            let part = part.as_ref().map_or(word, |(part, _)| part);
            let printed = printed || read.options.prints();
            let again = depth > 0 && text.iter().any(|b| b" \t\n;".contains(b));
            // A here document has lines of YAML.
            let words = script && again && !text.windows(2).any(|part| part == b"<<");
            let how = match (words, printed) {
                (true, _) => How::Script,
                (_, true) => How::Printed,
                _ => How::Value,
            };
            self.word(part, &read, how, masks);
            if again {
                self.line(&words::split(word), depth - 1, printed, masks);
            }
            read.previous = text;
        }
        read.end(last, masks);
    }

    /// The secrets inside one word.
    fn word(&self, word: &Word<'_>, read: &Read<'_>, how: How, masks: &mut Masks) {
        let text = word.text;
        let value = |part: &Range<usize>| text.get(part.clone()).unwrap_or_default();
        if how != How::Script && !read.options.takes_name(text) {
            let found = words::assignments(text).into_iter();
            masks.extend(word, found.filter(|part| how.is_secret(value(part))));
        }
        let from = b"pass:".len();
        if text.starts_with(b"pass:")
            && !text.contains(&b' ')
            && !is_harmless(value(&(from..text.len())))
        {
            masks.add(word, from..text.len());
        }
        self.known(word, false, masks);
        self.looks(word, read, masks);
        let has = |byte: u8| text.contains(&byte);
        if has(b':') && how != How::Script {
            let option = matches!(read.previous, b"-H" | b"--header") || read.options.sends();
            colons(word, option, how, masks);
        }
        let mut search = |expression: &Regex, secret: Secret| {
            let found = expression.captures_iter(text);
            masks.extend(word, found.filter_map(|found| secret(&found)));
        };
        let (quotes, names) = (has(b'"') || has(b'\''), has(b':') || has(b'='));
        if names && quotes {
            search(&QUOTED, of_quoted);
        }
        if has(b' ') {
            search(&STATEMENT, of_statement);
        }
        if names && has(b',') {
            search(&PAIR, of_pair);
        }
        if quotes && has(b',') {
            search(&ARGUMENTS, of_arguments);
        }
        if quotes {
            search(&CALL, of_call);
        }
        if has(b'|') || has(b'<') {
            search(&PIPED, of_pipe);
        }
    }
}

/// How a word is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum How {
    /// As an argument.
    Value,
    /// As a script, whose words are read one by one.
    Script,
    /// As text that a program prints: a word in it is a word.
    Printed,
}

impl How {
    /// A value that no rule calls harmless is a secret.
    fn is_secret(self, value: &[u8]) -> bool {
        self != How::Printed || looks::is_no_word(value)
    }
}

/// A word of the argument names a program of the table, or may be a token.
fn may_hold(arg: &[u8]) -> bool {
    let plain = !arg.iter().any(u8::is_ascii_whitespace);
    if plain {
        return programs::names_program(arg);
    }
    let separates = |b: &u8| b.is_ascii_whitespace() || b"\"'`;|&()".contains(b);
    arg.split(separates)
        .any(|word| programs::names_program(word) || forms::may_be_token(word))
}

/// A command line up to a word.
struct Read<'a> {
    options: Options<'a>,
    previous: &'a [u8],
    /// What the word before announces.
    next: Found,
    /// After `config` and `set`, a name and a value are two words.
    sets: bool,
    /// Words are variables of a service, most of them secrets.
    variables: bool,
    /// An access key of AWS was read: its secret follows.
    access_key: bool,
    /// An entry of a list has the name of a secret, as Helm's `env[0].name=API_TOKEN`.
    entry: bool,
    /// A word is about passwords: one after it may be a password.
    changes_password: bool,
}

impl<'a> Read<'a> {
    /// At the beginning of a command.
    fn new(line: &'a [Word<'a>]) -> Read<'a> {
        Read {
            options: Options::new(line),
            previous: b"",
            next: Found::No,
            sets: false,
            variables: false,
            access_key: false,
            entry: false,
            changes_password: false,
        }
    }

    /// Masks the secret that the words before announce; otherwise notes what this one does. True: the
    /// word was a secret.
    fn secret(&mut self, word: &Word<'a>, masks: &mut Masks) -> bool {
        let text = word.text;
        if let Found::Next(after) = std::mem::take(&mut self.next) {
            if text == b"=" {
                self.next = Found::Next(after);
                return true;
            }
            // An archived trace has masks of its own.
            if text == MASK {
                self.previous = text;
                self.options.took_value();
                return true;
            }
            let redirects = text.starts_with(b"<") || text.starts_with(b">");
            let from =
                programs::next(text, after).filter(|_| !words::is_option(text) && !redirects);
            if let Some(from) = from {
                masks.add(word, from..text.len());
                self.previous = text;
                self.options.took_value();
                return true;
            }
        }
        self.next = self.options.see(text);
        match self.next {
            Found::From(from) if !is_harmless(text.get(from..).unwrap_or_default()) => {
                masks.add(word, from..text.len());
            }
            Found::No => {
                let named = words::names_secret(text) && !self.options.takes_name(text);
                let set = (self.sets || self.previous == b"--arg") && words::sets_secret(text);
                let set = set && !self.options.is_subcommand();
                if named || set {
                    self.next = Found::Next(None);
                } else if text == b"--cookie" {
                    self.next = Found::Next(Some(b'='));
                }
            }
            _ => {}
        }
        self.sets |= words::is_setter(text);
        self.variables |= words::sets_variables(text);
        self.sets &= text != b"get";
        if self.access_key && looks::is_aws_key(text) {
            masks.add(word, 0..text.len());
        }
        self.entry |= text.split(|b| *b == b',').any(|part| {
            let from = part.iter().position(|b| *b == b'=').map_or(0, |at| at + 1);
            let (name, value) = part.split_at(from);
            name.ends_with(b"].name=") && names::secret(value) > Sure::No
        });
        self.changes_password |= words::changes_password(text);
        self.access_key |= text.len() == 20 && text.starts_with(b"AKIA");
        false
    }

    /// The word is text for people, or a pattern.
    fn is_text(&self, text: &[u8]) -> bool {
        let prose = |option| words::announces_prose(option) || self.options.announces_text(option);
        let head = text.split(|b| *b == b'=').next().unwrap_or_default();
        let joined = head.len() < text.len() && head.starts_with(b"--") && prose(head);
        let attached = text
            .get(..2)
            .filter(|head| text.len() > 2 && head.starts_with(b"-"));
        prose(self.previous)
            || self.options.takes_name(self.previous)
            || joined
            || attached.is_some_and(|head| self.options.announces_text(head))
            || (self.options.reads_text() || self.options.is_text()) && !text.starts_with(b"-")
    }

    /// At the end of a command.
    fn end(&self, last: Option<&Word<'_>>, masks: &mut Masks) {
        if let Some(last) = last.filter(|_| self.options.last_is_secret()) {
            if !is_harmless(last.text) && !last.text.starts_with(b"-") {
                masks.add(last, 0..last.text.len());
            }
        }
    }
}

impl Rules {
    /// The secrets of known form, in text for people, too.
    fn known(&self, word: &Word<'_>, prose: bool, masks: &mut Masks) {
        let text = word.text;
        if self.forms.is_match(text) || forms::may_be_bare(text) || forms::may_be_token(text) {
            masks.extend(word, forms::find(text));
        }
        if text.contains(&b':') {
            let found = URL.captures_iter(text);
            let found = found.filter_map(|found| of_url(&found));
            // `user:pass@` is an example.
            let example = |part: &Range<usize>| {
                let text = text.get(part.clone()).unwrap_or_default();
                prose && (text == b"pass" || text == b"password")
            };
            masks.extend(word, found.filter(|part| !example(part)));
        }
    }

    /// What looks like a secret.
    fn looks(&self, word: &Word<'_>, read: &Read<'_>, masks: &mut Masks) {
        let (text, previous) = (word.text, read.previous);
        let short = matches!(previous, [b'-', letter] if letter.is_ascii_alphabetic());
        let code = looks::is_code(text) && !read.options.counts();
        let secret = code && (words::announces_code(previous) || words::is_key_option(previous))
            || short && looks::is_password(text);
        if secret && !is_harmless(text) {
            masks.add(word, 0..text.len());
        }
        let equals = text.iter().position(|b| *b == b'=').map_or(0, |at| at + 1);
        let value = text.get(equals..).unwrap_or_default();
        if read.variables && equals > 0 && looks::is_code(value) {
            masks.add(word, equals..text.len());
        }
        // `--cookie=NAME=X`.
        if let Some(cookie) = text.strip_prefix(b"--cookie=") {
            let from = cookie.iter().position(|b| *b == b'=').map(|at| at + 1);
            if let Some(from) =
                from.filter(|from| !is_harmless(cookie.get(*from..).unwrap_or_default()))
            {
                masks.add(word, text.len() - cookie.len() + from..text.len());
            }
        }
        // `-kdfopt secret:X`, among others with a digest, a salt.
        if previous == b"-kdfopt" {
            let name = text.split(|b| *b == b':').next().unwrap_or_default();
            let kind = name.strip_prefix(b"hex").unwrap_or(name);
            let secret = matches!(kind, b"pass" | b"secret" | b"key");
            if secret && name.len() < text.len() {
                masks.add(word, name.len() + 1..text.len());
            }
        }
        // `-object secret,id=x,data=X` of QEMU.
        if text.starts_with(b"secret,") {
            let mut at = 0;
            for part in text.split(|b| *b == b',') {
                if let Some(data) = part
                    .strip_prefix(b"data=")
                    .filter(|data| !is_harmless(data))
                {
                    masks.add(word, at + part.len() - data.len()..at + part.len());
                }
                at += part.len() + 1;
            }
        }
        // `--set env[0].name=API_TOKEN --set env[0].value=X`, or both in one word.
        let mut at = 0;
        let entries = if text.contains(&b']') { text } else { b"" };
        for part in entries.split(|b| *b == b',') {
            let from = part.iter().position(|b| *b == b'=').map_or(0, |at| at + 1);
            let (name, value) = part.split_at(from);
            let entry = name.ends_with(b"].value=") && (read.entry || looks::is_code(value));
            if entry && !is_harmless(value) {
                masks.add(word, at + from..at + part.len());
            }
            at += part.len() + 1;
        }
        // A program that the table does not know: `-p X`, `-T X`.
        let coded = || looks::is_scrambled(text) || looks::is_random(text);
        let positional = || read.changes_password && looks::is_scrambled(text);
        let option = words::may_take_password(previous) && !read.options.takes_name(previous);
        if option && coded() || positional() {
            masks.add(word, 0..text.len());
        }
        if let Some(at) = words::user_and_password(previous, text) {
            masks.add(word, at..text.len());
        }
        // `--password-command "echo X"`.
        let name = text.get(..equals).filter(|name| !name.is_empty());
        let command = value;
        let passes = |name: &[u8]| name.windows(4).any(|part| part == b"pass");
        if command.starts_with(b"echo ") && passes(name.unwrap_or(previous)) {
            masks.add(word, equals + 5..text.len());
        }
    }
}

/// The secret in a match of an expression.
type Secret = fn(&Captures<'_>) -> Option<Range<usize>>;

fn first_group<'t>(found: &Captures<'t>, groups: Range<usize>) -> Option<Match<'t>> {
    groups.into_iter().find_map(|n| found.get(n))
}

fn of_url(found: &Captures<'_>) -> Option<Range<usize>> {
    let secret = first_group(found, 1..7)?;
    let text = secret.as_bytes();
    if found.get(2).is_some() {
        // `http://host:80/a@b` has a port and a path.
        let digits = text.iter().take_while(|b| b.is_ascii_digit()).count();
        if text.get(digits).is_some_and(|b| b"/?#".contains(b)) {
            return None;
        }
    }
    let mixed = text.iter().any(u8::is_ascii_digit) && text.iter().any(u8::is_ascii_alphabetic);
    if found.get(3).is_some() && !mixed {
        return None;
    }
    (!is_harmless(text)).then(|| secret.range())
}

fn of_quoted(found: &Captures<'_>) -> Option<Range<usize>> {
    of_named(found.get(1)?, first_group(found, 2..5)?)
}

fn of_statement(found: &Captures<'_>) -> Option<Range<usize>> {
    let secret = first_group(found, 1..found.len())?;
    (!is_harmless(secret.as_bytes())).then(|| secret.range())
}

fn of_pair(found: &Captures<'_>) -> Option<Range<usize>> {
    of_named(found.get(1)?, found.get(2)?)
}

fn of_arguments(found: &Captures<'_>) -> Option<Range<usize>> {
    let (name, value) = (
        first_group(found, 1..2).or(found.get(3))?,
        found.get(2).or(found.get(4))?,
    );
    let secret =
        names::secret(name.as_bytes()) == Sure::Strong && looks::is_no_word(value.as_bytes());
    (secret && !is_harmless(value.as_bytes())).then(|| value.range())
}

fn of_named(name: Match<'_>, value: Match<'_>) -> Option<Range<usize>> {
    let secret = names::secret(name.as_bytes()) > Sure::No && !is_harmless(value.as_bytes());
    secret.then(|| value.range())
}

fn of_call(found: &Captures<'_>) -> Option<Range<usize>> {
    if let Some(text) = found.get(2) {
        return (!is_harmless(text.as_bytes())).then(|| text.range());
    }
    // The last of two texts in quotes, if nothing follows it.
    let inner = found.get(1)?;
    let text = inner.as_bytes();
    let is_quote = |b: &u8| b"\"'".contains(b);
    let quote = *text.last().filter(|b| is_quote(b))?;
    let to = text.len() - 1;
    let from = text.get(..to)?.iter().rposition(|b| *b == quote)? + 1;
    let quotes = text.get(..from - 1)?.iter().filter(|b| is_quote(b)).count();
    let secret = quotes >= 2 && !is_harmless(text.get(from..to)?);
    secret.then(|| inner.start() + from..inner.start() + to)
}

fn of_pipe(found: &Captures<'_>) -> Option<Range<usize>> {
    if let Some(secret) = found.get(5).filter(|text| !is_harmless(text.as_bytes())) {
        return Some(secret.range());
    }
    let secret = first_group(found, 1..4).or_else(|| first_group(found, 7..10))?;
    let program = found.get(4).or_else(|| found.get(6))?;
    let reads = looks::is_scrambled(secret.as_bytes()) || READS_SECRET.is_match(program.as_bytes());
    if is_harmless(secret.as_bytes()) || !reads {
        return None;
    }
    // `user:password` of chpasswd.
    let name = secret.as_bytes().iter().position(|b| *b == b':');
    Some(secret.start() + name.map_or(0, |at| at + 1)..secret.end())
}

/// The text before a name is a sentence's, not a line's of YAML or JSON.
fn is_prose(before: &[u8]) -> bool {
    let last = before.iter().rev().find(|b| !b" \t".contains(b));
    last.is_some_and(u8::is_ascii_alphanumeric) && !before.trim_ascii_end().ends_with(b"\\n")
}

/// The match begins a word.
fn start_of_word(found: Option<Match<'_>>) -> bool {
    found.is_some_and(|found| found.start() == 0)
}

/// Headers, and lines of YAML; `option`: the word is a header for sure.
fn colons(word: &Word<'_>, option: bool, how: How, masks: &mut Masks) {
    let (text, mut at) = (word.text, 0);
    while let Some(found) = COLON.captures_at(text, at) {
        let (Some(name), Some(blank), Some(value)) = (found.get(2), found.get(3), found.get(4))
        else {
            return;
        };
        let is = |list: &[&str]| {
            let name = name.as_bytes();
            list.iter()
                .any(|known| known.as_bytes().eq_ignore_ascii_case(name))
        };
        at = value.end();
        if is(&SECRET_HEADERS) {
            let rest = text.get(value.start()..).unwrap_or_default();
            let ends = |b: &u8| b"\r\n\"'".contains(b);
            let line = rest.iter().position(ends).unwrap_or(rest.len());
            let last = rest.get(..line).unwrap_or_default();
            let credentials = last.splitn(2, |b| *b == b' ').last().unwrap_or_default();
            let last = last.rsplit(|b| *b == b' ').next().unwrap_or_default();
            if !is_harmless(last) && !is_harmless(credentials) {
                masks.add(word, value.start()..value.start() + line);
            }
            at = value.start() + line;
            continue;
        }
        // Text for people has more than one word.
        let after = text.get(at..).unwrap_or_default();
        let next = after.iter().find(|b| !b" \t".contains(b));
        let alone = next.is_none_or(|b| b"\r\n\\\"',;}#&|".contains(b));
        let strong = names::secret(name.as_bytes()) == Sure::Strong;
        let header = option || found.get(1).is_some() || !blank.is_empty();
        let env =
            start_of_word(found.get(0)) && name.as_bytes().iter().all(|b| !b.is_ascii_lowercase());
        let coded = strong && env && value.end() == text.len() && !is_harmless(value.as_bytes())
            || strong && looks::is_code(value.as_bytes());
        // `/TargetPassword:X`.
        let slash = strong && text.starts_with(b"/") && start_of_word(found.get(0));
        let before = text.get(..name.start()).unwrap_or_default();
        let header = header && (option || found.get(1).is_some() || !is_prose(before));
        let key = option && names::is_key(name.as_bytes()) && looks::is_code(value.as_bytes());
        let secret =
            is(&SECRET_FIELDS) || strong && header && (alone || option) || coded || key || slash;
        if secret && !is_harmless(value.as_bytes()) && how.is_secret(value.as_bytes()) {
            masks.add(word, value.range());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_expression_compiles() {
        for expression in [
            &URL,
            &CUT_URL,
            &QUOTED,
            &COLON,
            &STATEMENT,
            &PIPED,
            &READS_SECRET,
            &PAIR,
            &CALL,
            &ARGUMENTS,
        ] {
            assert!(!expression.is_match(b"x"));
        }
    }
}
