//! Secrets in command lines, masked before anything is written.
//!
//! A trace holds the arguments of every program, and traces are archived. The
//! rules err on the side of masking: a word too many costs a reader little.
//! README.md says what they know and what they cannot catch.

use std::ops::Range;
use std::sync::LazyLock;

use aho_corasick::AhoCorasick;
use regex::bytes::Regex;
use tr_format::event::Argv;

use crate::words::{self, is_secret, Word};

/// What stands in the place of a secret.
pub const MASK: &[u8] = b"***";

/// Scripts in scripts (`sh -c "ssh host 'sh -c …'"`) are read this deep.
const DEPTH: usize = 4;

/// Without one of these, in upper or lower case, no rule of ours applies: most
/// command lines are let through by this one search. Tests hold it to the rules.
const HINTS: [&str; 24] = [
    "pass",
    "secret",
    "token",
    "key",
    "pwd",
    "cred",
    "auth",
    "bearer",
    "cookie",
    "sig=",
    "signature",
    "://",
    "mysql",
    "mariadb",
    "curl",
    "redis-cli",
    "mongo",
    "ldap",
    "smbclient",
    "zip",
    "7z",
    "openssl",
    "twine",
    "login",
];

/// What one of these stands in may be a token of a known form.
const FORM_HINTS: [&str; 17] = [
    "ghp_",
    "gho_",
    "ghu_",
    "ghs_",
    "ghr_",
    "github_pat_",
    "glpat-",
    "xox",
    "sk-",
    "sk_",
    "npm_",
    "pypi-",
    "dckr_pat_",
    "hf_",
    "aiza",
    "eyj",
    "age-",
];

/// A private key begins so.
const KEY_HINT: &str = "-----begin";

/// `scheme://user:password@host`: first a password as the standard has it,
/// then one with characters that should have been encoded.
const URL: &str = r#"(?-u)://[^\s/?#:@"']*:([^\s"'/?#]+)@|://[^\s/?#:@"']*:([^\s"'@]+)@"#;

/// The same, cut off before its end.
const URL_CUT: &str = r#"(?-u)://[^\s/?#:@"']*:([^\s"'@/?#]+)$"#;

/// `"name": "value"`.
const JSON: &str = r#"(?-u)["']([A-Za-z0-9_.-]+)\\?["']\s*:\s*\\?["']((?:[^"'\\]|\\.)*)"#;

/// `Name: value` at the start of an argument, `-H` before it or not.
const HEADER: &str = r"(?i-u)^(?:-H\s*|--header=)?([a-z0-9_-]+):(\s*)(\S[^\r\n]*)";

/// Tokens that are known by their form.
const FORMS: &str = concat!(
    r"(?-u)\bgh[pousr]_[A-Za-z0-9]{16,}",
    r"|\bgithub_pat_[A-Za-z0-9_]{16,}",
    r"|\bglpat-[A-Za-z0-9_-]{16,}",
    r"|\bxox[abeoprs]-[A-Za-z0-9-]{10,}",
    r"|\bsk[-_][A-Za-z0-9_-]{20,}",
    r"|\bnpm_[A-Za-z0-9]{30,}",
    r"|\bpypi-[A-Za-z0-9_-]{30,}",
    r"|\bdckr_pat_[A-Za-z0-9_-]{16,}",
    r"|\bhf_[A-Za-z0-9]{20,}",
    r"|\bAIza[A-Za-z0-9_-]{30,}",
    r"|\bAGE-SECRET-KEY-[A-Z0-9]+",
    r"|\beyJ[A-Za-z0-9_-]{8,}\.eyJ[A-Za-z0-9_-]+\.[A-Za-z0-9_-]*",
    r"|-----BEGIN [A-Z0-9 ]*PRIVATE KEY(?: BLOCK)?-----(?s:.*)",
);

/// Masks what looks like a secret.
#[derive(Clone, Debug)]
pub struct Redactor {
    rules: Option<Rules>,
    own: Vec<Regex>,
    masked: u64,
}

/// The rules: an expression each, compiled when a command line first calls for it.
/// Most builds never do, and compiling them all takes a ms of every start.
#[derive(Clone, Debug)]
struct Rules {
    hints: AhoCorasick,
    forms: AhoCorasick,
}

static URLS: LazyLock<Regex> = LazyLock::new(|| compiled(URL));
static URLS_CUT: LazyLock<Regex> = LazyLock::new(|| compiled(URL_CUT));
static JSONS: LazyLock<Regex> = LazyLock::new(|| compiled(JSON));
static HEADERS: LazyLock<Regex> = LazyLock::new(|| compiled(HEADER));
static KNOWN_FORMS: LazyLock<Regex> = LazyLock::new(|| compiled(FORMS));

/// An expression of ours. Each is compiled in the tests.
#[allow(clippy::expect_used)]
fn compiled(text: &str) -> Regex {
    Regex::new(text).expect("a constant expression is a valid one")
}

/// The hints cannot be searched for.
pub use aho_corasick::BuildError as HintsError;
/// A regular expression that is wrong.
pub use regex::Error as PatternError;

/// A pattern of the user's own. With a group, the first group is what is
/// masked; else the whole match.
///
/// # Errors
/// When it is no regular expression, or too large a one.
pub fn pattern(text: &str) -> Result<Regex, PatternError> {
    Regex::new(text)
}

impl Redactor {
    /// With our rules or without, and the user's own patterns.
    ///
    /// # Errors
    /// Never, unless the list of hints is wrong.
    pub fn new(rules: bool, own: Vec<Regex>) -> Result<Redactor, HintsError> {
        let words = |words: &[&str]| {
            let mut builder = AhoCorasick::builder();
            builder.ascii_case_insensitive(true).build(words)
        };
        let compile = || -> Result<Rules, HintsError> {
            let forms = [&FORM_HINTS[..], &[KEY_HINT]].concat();
            Ok(Rules {
                hints: words(&[&HINTS[..], &forms].concat())?,
                forms: words(&forms)?,
            })
        };
        Ok(Redactor {
            rules: rules.then(compile).transpose()?,
            own,
            masked: 0,
        })
    }

    /// How many values have been masked so far.
    pub fn masked(&self) -> u64 {
        self.masked
    }

    /// An argument vector as it may be kept. Its true length becomes that of
    /// what is kept, so that only what was cut counts as cut.
    pub fn argv(&mut self, argv: Argv) -> Argv {
        let args: Vec<&[u8]> = argv.args().collect();
        let Some(masks) = self.masks(&argv.bytes, &args, argv.truncated()) else {
            return argv;
        };
        let ends_in_nul = argv.bytes.ends_with(b"\0");
        let mut bytes = Vec::with_capacity(argv.bytes.len());
        for (at, arg) in args.iter().enumerate() {
            if at > 0 {
                bytes.push(0);
            }
            self.masked += mask(arg, masks.of(at), &mut bytes);
        }
        if ends_in_nul {
            bytes.push(0);
        }
        let cut = |full: u32| (full as usize).saturating_sub(argv.bytes.len());
        let full_len = argv
            .full_len
            .map(|full| u32::try_from(bytes.len() + cut(full)).unwrap_or(u32::MAX));
        Argv {
            bytes: bytes.into(),
            full_len,
        }
    }

    /// A command's arguments as they may be kept.
    pub fn command(&mut self, command: &[Vec<u8>]) -> Vec<Vec<u8>> {
        let args: Vec<&[u8]> = command.iter().map(Vec::as_slice).collect();
        let Some(masks) = self.masks(&args.join(&0), &args, false) else {
            return command.to_vec();
        };
        args.iter()
            .enumerate()
            .map(|(at, arg)| {
                let mut bytes = Vec::new();
                mask(arg, masks.of(at), &mut bytes);
                bytes
            })
            .collect()
    }

    /// What is to be masked; `None`: nothing. `whole` is all arguments in one.
    fn masks(&self, whole: &[u8], args: &[&[u8]], cut: bool) -> Option<Masks> {
        let rules = self.rules.as_ref().filter(|r| r.hints.is_match(whole));
        if rules.is_none() && self.own.is_empty() {
            return None;
        }
        let mut masks = Masks(Vec::new());
        if let Some(rules) = rules {
            let words: Vec<Word<'_>> = args
                .iter()
                .enumerate()
                .map(|(arg, text)| Word { arg, at: 0, text })
                .collect();
            rules.apply(&words, DEPTH, &mut masks);
            if let (true, Some((arg, text))) = (cut, args.iter().enumerate().next_back()) {
                if let Some(secret) = URLS_CUT.captures(text).and_then(|c| c.get(1)) {
                    masks.0.push((arg, secret.range()));
                }
            }
        }
        for (arg, text) in args.iter().enumerate() {
            for own in &self.own {
                let found = own
                    .captures_iter(text)
                    .filter_map(|c| c.get(1).or_else(|| c.get(0)));
                masks.0.extend(found.map(|m| (arg, m.range())));
            }
        }
        masks.0.retain(|(_, range)| !range.is_empty());
        masks
            .0
            .sort_unstable_by_key(|(arg, range)| (*arg, range.start, range.end));
        (!masks.0.is_empty()).then_some(masks)
    }
}

/// Parts of arguments: argument, bytes in it.
struct Masks(Vec<(usize, Range<usize>)>);

impl Masks {
    /// Those of one argument, in order; they may overlap.
    fn of(&self, arg: usize) -> impl Iterator<Item = &Range<usize>> {
        self.0
            .iter()
            .filter(move |(a, _)| *a == arg)
            .map(|(_, range)| range)
    }

    /// Masks a word from `from` on.
    fn word(&mut self, word: &Word<'_>, range: Range<usize>) {
        let range = word.at + range.start..word.at + range.end;
        self.0.push((word.arg, range));
    }
}

/// Copies `text` with its masked parts replaced; their number.
fn mask<'a>(text: &[u8], masks: impl Iterator<Item = &'a Range<usize>>, out: &mut Vec<u8>) -> u64 {
    let (mut done, mut count) = (0, 0);
    for range in masks {
        if range.start >= done {
            out.extend_from_slice(text.get(done..range.start).unwrap_or_default());
            // Two that touch are one.
            if range.start > done || count == 0 {
                out.extend_from_slice(MASK);
                count += 1;
            }
        }
        done = done.max(range.end);
    }
    out.extend_from_slice(text.get(done..).unwrap_or_default());
    count
}

impl Rules {
    /// The rules for a command line, or for a script's words.
    fn apply(&self, words: &[Word<'_>], depth: usize, masks: &mut Masks) {
        let mut options = words::Options::default();
        let mut previous: &[u8] = b"";
        for word in words {
            let text = word.text;
            let is_value = options.next_is_secret;
            options.next_is_secret = false;
            if is_value && !words::is_option(text) {
                masks.word(word, 0..text.len());
                previous = text;
                continue;
            }
            match options.see(text) {
                Some(from) => masks.word(word, from..text.len()),
                None if words::names_secret(text) => options.next_is_secret = true,
                None => {}
            }
            let script = words::is_script(previous, text);
            self.inside(word, script, masks);
            if depth > 0 && text.iter().any(|b| b" \t\n;".contains(b)) {
                self.apply(&words::split(word), depth - 1, masks);
            }
            previous = text;
        }
    }

    /// The rules for what stands inside a word.
    fn inside(&self, word: &Word<'_>, script: bool, masks: &mut Masks) {
        let text = word.text;
        for range in words::assignments(text, script) {
            masks.word(word, range);
        }
        if let Some(secret) = text.strip_prefix(b"pass:") {
            masks.word(word, text.len() - secret.len()..text.len());
        }
        if self.forms.is_match(text) {
            for found in KNOWN_FORMS.find_iter(text) {
                masks.word(word, found.range());
            }
        }
        // The others all want a colon.
        if !text.contains(&b':') {
            return;
        }
        if let Some(header) = HEADERS.captures(text) {
            let group = |n| header.get(n).map_or(&b""[..], |m| m.as_bytes());
            let known = [
                &b"authorization"[..],
                b"proxy-authorization",
                b"cookie",
                b"set-cookie",
            ]
            .iter()
            .any(|name| group(1).eq_ignore_ascii_case(name));
            if known || !group(2).is_empty() && is_secret(group(1)) {
                if let Some(value) = header.get(3) {
                    masks.word(word, value.range());
                }
            }
        }
        for found in JSONS.captures_iter(text) {
            if let (Some(name), Some(value)) = (found.get(1), found.get(2)) {
                if is_secret(name.as_bytes()) {
                    masks.word(word, value.range());
                }
            }
        }
        for found in URLS.captures_iter(text) {
            if let Some(secret) = found.get(1).or_else(|| found.get(2)) {
                masks.word(word, secret.range());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn redactor() -> Redactor {
        Redactor::new(true, Vec::new()).unwrap()
    }

    /// The arguments, split at `|` so that spaces can stand in them.
    fn masked(line: &str) -> String {
        let argv = Argv::from_args(line.split('|'));
        let kept = redactor().argv(argv);
        assert!(!kept.truncated(), "{line}");
        let args: Vec<_> = kept.args().map(String::from_utf8_lossy).collect();
        args.join("|")
    }

    #[test]
    fn every_expression_of_ours_is_a_valid_one() {
        for expression in [&URLS, &URLS_CUT, &JSONS, &HEADERS, &KNOWN_FORMS] {
            assert!(!expression.is_match(b"x"));
        }
    }

    #[test]
    fn secrets_are_masked() {
        for (line, want) in [
            ("svn|--password|hunter2|up", "svn|--password|***|up"),
            ("svn|--password|-hunter2", "svn|--password|***"),
            ("x|--token=abc|y", "x|--token=***|y"),
            ("deploy|github_pat_0123456789abcdefgh", "deploy|***"),
            ("deploy|dckr_pat_0123456789abcdefgh", "deploy|***"),
            ("x|--token=a=b&c|y", "x|--token=***|y"),
            ("x|--token=", "x|--token="),
            ("keytool|-storepass|changeit", "keytool|-storepass|***"),
            (
                "java|-Djavax.net.ssl.trustStorePassword=pw",
                "java|-Djavax.net.ssl.trustStorePassword=***",
            ),
            (
                "env|AWS_SECRET_ACCESS_KEY=abc|make",
                "env|AWS_SECRET_ACCESS_KEY=***|make",
            ),
            ("env|KEY=abc|make", "env|KEY=***|make"),
            ("env|PASSWORD=two words", "env|PASSWORD=***"),
            (
                "docker|build|--build-arg|NPM_TOKEN=abc",
                "docker|build|--build-arg|NPM_TOKEN=***",
            ),
            (
                "docker|build|--build-arg=NPM_TOKEN=a&b",
                "docker|build|--build-arg=NPM_TOKEN=***",
            ),
            (
                "npm|config|set|//registry.example/:_authToken=abc",
                "npm|config|set|//registry.example/:_authToken=***",
            ),
            ("mysql|-uroot|-phunter2|db", "mysql|-uroot|-p***|db"),
            ("/usr/bin/mysqldump|-p|db", "/usr/bin/mysqldump|-p|db"),
            ("sudo|mysql|-phunter2", "sudo|mysql|-p***"),
            ("curl|-u|me:pw|https://h/", "curl|-u|***|https://h/"),
            ("curl|-ume:pw", "curl|-u***"),
            ("curl|--user|me:pw", "curl|--user|***"),
            ("curl|--user=me:pw", "curl|--user=***"),
            ("sshpass|-p|pw|ssh|-p|22|h", "sshpass|-p|***|ssh|-p|22|h"),
            ("docker|login|-u|me|-p|pw", "docker|login|-u|me|-p|***"),
            ("docker|run|-p|80:80|img", "docker|run|-p|80:80|img"),
            ("redis-cli|-a|pw|get|k", "redis-cli|-a|***|get|k"),
            ("7z|a|-ppw|x.7z", "7z|a|-p***|x.7z"),
            ("openssl|enc|-pass|pass:pw", "openssl|enc|-pass|***"),
            ("openssl|rsa|-passin|pass:pw", "openssl|rsa|-passin|***"),
            (
                "curl|-H|Authorization: Bearer abc",
                "curl|-H|Authorization: ***",
            ),
            ("curl|-HAuthorization:abc", "curl|-HAuthorization:***"),
            ("curl|-H|PRIVATE-TOKEN: abc", "curl|-H|PRIVATE-TOKEN: ***"),
            (
                "curl|-d|{\"password\": \"p\\\"w\", \"a\": \"b\"}",
                "curl|-d|{\"password\": \"***\", \"a\": \"b\"}",
            ),
            (
                "git|clone|https://me:pw@h/r.git",
                "git|clone|https://me:***@h/r.git",
            ),
            (
                "x|postgres://u:p@ss@h:5432/db",
                "x|postgres://u:***@h:5432/db",
            ),
            ("x|postgres://u:p/ss@h/db", "x|postgres://u:***@h/db"),
            (
                "wget|https://h/f?access_token=abc&x=1",
                "wget|https://h/f?access_token=***&x=1",
            ),
            (
                "wget|https://h/f?X-Amz-Signature=abc",
                "wget|https://h/f?X-Amz-Signature=***",
            ),
            (
                "x|Server=h;Password=abc;Database=d",
                "x|Server=h;Password=***;Database=d",
            ),
            (
                "git|clone|https://ghp_0123456789abcdefghijABCDEFGHIJ012345@github.com/x",
                "git|clone|https://***@github.com/x",
            ),
            ("deploy|eyJhbGciOiJI.eyJzdWIiOiIx.c2ln", "deploy|***"),
            ("x|-----BEGIN RSA PRIVATE KEY-----\nabc\n", "x|***"),
        ] {
            assert_eq!(masked(line), want);
        }
    }

    #[test]
    fn scripts_are_read_word_by_word() {
        for (line, want) in [
            ("sh|-c|TOKEN=abc make all", "sh|-c|TOKEN=*** make all"),
            (
                "sh|-ec|export DB_PASSWORD='a b'; make",
                "sh|-ec|export DB_PASSWORD='***'; make",
            ),
            (
                "sh|-c|tool --password hunter2 && make",
                "sh|-c|tool --password *** && make",
            ),
            (
                "sh|-c|curl -u me:pw h; mysql -phunter2 db",
                "sh|-c|curl -u *** h; mysql -p*** db",
            ),
            (
                "sh|-c|curl -H 'Authorization: Bearer abc' h",
                "sh|-c|curl -H 'Authorization: ***' h",
            ),
            (
                "sh|-c|ssh h \"sh -c 'X_TOKEN=abc make'\"",
                "sh|-c|ssh h \"sh -c 'X_TOKEN=*** make'\"",
            ),
            ("ssh|h|FOO_TOKEN=abc make", "ssh|h|FOO_TOKEN=***"),
        ] {
            assert_eq!(masked(line), want);
        }
    }

    #[test]
    fn what_is_no_secret_stays() {
        for line in [
            "cc|-c|-O2|-DNDEBUG|-Iinclude|-o|token.o|token.c",
            "cc|-DMAX_TOKENS=3|keys.c|-fpass-plugin=x",
            "clang|-Rpass=inline|monkey.c",
            "env|PWD=/src|OLDPWD=/|KEYMAP=de|AUTHOR=me|AWS_ACCESS_KEY_ID=AKIAEXAMPLE",
            "docker|login|--password-stdin|registry",
            "x|--token-file|/run/token|--password-file=/run/pw",
            "x|--no-password|file",
            "x|--password|--verbose",
            "wget|https://h:8080/p|http://[::1]:80/",
            "git|clone|git@github.com:x/y.git",
            "make|-p|mysql.o",
            "sh|-c|echo key: value; echo \"done\"",
            "",
        ] {
            assert_eq!(masked(line), line);
        }
    }

    #[test]
    fn a_cut_argv_stays_cut_and_its_last_url_keeps_no_password() {
        let argv = Argv {
            bytes: b"git\0https://me:hunt".as_slice().into(),
            full_len: Some(40),
        };
        let kept = redactor().argv(argv);
        assert_eq!(&*kept.bytes, b"git\0https://me:***");
        assert!(kept.truncated());
        assert_eq!(kept.full_len, Some(40 - 1));
    }

    #[test]
    fn own_patterns_come_on_top_or_alone() {
        let argv = Argv::from_args(["deploy", "id-1234", "user=bob", "--token=x"]);
        let own = vec![pattern("id-[0-9]+").unwrap(), pattern("user=(.*)").unwrap()];
        let kept = Redactor::new(true, own.clone()).unwrap().argv(argv.clone());
        assert_eq!(&*kept.bytes, b"deploy\0***\0user=***\0--token=***\0");
        let mut alone = Redactor::new(false, own).unwrap();
        let kept = alone.argv(argv.clone());
        assert_eq!(&*kept.bytes, b"deploy\0***\0user=***\0--token=x\0");
        assert_eq!(alone.masked(), 2);
        let kept = Redactor::new(false, Vec::new()).unwrap().argv(argv.clone());
        assert_eq!(kept, argv);
    }

    #[test]
    fn the_command_itself_is_masked_too() {
        let command = [b"x".to_vec(), b"--token".to_vec(), b"abc".to_vec()];
        let kept = redactor().command(&command);
        assert_eq!(kept, [b"x".to_vec(), b"--token".to_vec(), b"***".to_vec()]);
    }
}
