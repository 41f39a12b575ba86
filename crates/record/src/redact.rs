//! Masks the secrets in command lines before anything is written.
//!
//! A trace holds the arguments of every program, and traces are archived. The rules err
//! on the side of masking: a word too many costs a reader little. README.md has their
//! list and their limits.

use std::ops::Range;

use regex::bytes::Regex;
use tr_format::event::Argv;

use crate::rules::Rules;
use crate::words::Word;

/// The replacement of a secret.
pub const MASK: &[u8] = b"***";

/// An error in the list of hints.
pub use aho_corasick::BuildError as HintsError;
/// An error in a regular expression.
pub use regex::Error as PatternError;

/// A pattern of the user. Its first group is masked, or without a group the whole match.
///
/// # Errors
/// The text is no regular expression, or too large a one.
pub fn pattern(text: &str) -> Result<Regex, PatternError> {
    Regex::new(text)
}

/// Masks secrets, by the rules and by the user's patterns.
#[derive(Clone, Debug)]
pub struct Redactor {
    rules: Option<Rules>,
    patterns: Vec<Regex>,
    masked: u64,
}

impl Redactor {
    /// With or without the rules, and with the user's patterns.
    ///
    /// # Errors
    /// The list of hints is wrong.
    pub fn new(rules: bool, patterns: Vec<Regex>) -> Result<Redactor, HintsError> {
        Ok(Redactor {
            rules: rules.then(Rules::new).transpose()?,
            patterns,
            masked: 0,
        })
    }

    /// The number of values masked so far.
    pub fn masked(&self) -> u64 {
        self.masked
    }

    /// The masked argument vector. Its full length shrinks with the masks, so that only a
    /// cut argv counts as cut.
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
            self.masked += masks.copy(at, arg, &mut bytes);
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

    /// The masked arguments of a command.
    pub fn command(&mut self, command: &[Vec<u8>]) -> Vec<Vec<u8>> {
        let args: Vec<&[u8]> = command.iter().map(Vec::as_slice).collect();
        let Some(masks) = self.masks(&args.join(&0), &args, false) else {
            return command.to_vec();
        };
        let masked = |(at, arg): (usize, &&[u8])| {
            let mut bytes = Vec::new();
            masks.copy(at, arg, &mut bytes);
            bytes
        };
        args.iter().enumerate().map(masked).collect()
    }

    /// The parts to mask, `None` if there are none. `line` holds all arguments.
    fn masks(&self, line: &[u8], args: &[&[u8]], cut: bool) -> Option<Masks> {
        let rules = self.rules.as_ref().filter(|rules| rules.may_apply(line));
        let mut masks = Masks::default();
        if let Some(rules) = rules {
            rules.apply(args, cut, &mut masks);
        }
        for (arg, text) in args.iter().enumerate() {
            let word = Word { arg, at: 0, text };
            for pattern in &self.patterns {
                let found = pattern.captures_iter(text);
                masks.extend(
                    &word,
                    found
                        .filter_map(|c| c.get(1).or(c.get(0)))
                        .map(|m| m.range()),
                );
            }
        }
        masks
            .0
            .sort_unstable_by_key(|(arg, range)| (*arg, range.start, range.end));
        (!masks.0.is_empty()).then_some(masks)
    }
}

/// The masked parts of arguments: argument, bytes in it.
#[derive(Debug, Default)]
pub struct Masks(Vec<(usize, Range<usize>)>);

impl Masks {
    /// Masks these parts of a word.
    pub fn extend(&mut self, word: &Word<'_>, parts: impl IntoIterator<Item = Range<usize>>) {
        let parts = parts.into_iter().filter(|part| !part.is_empty());
        let in_arg = |part: Range<usize>| (word.arg, word.at + part.start..word.at + part.end);
        self.0.extend(parts.map(in_arg));
    }

    /// Copies the argument `arg` with its parts replaced; their number. Parts that touch
    /// or overlap are one.
    fn copy(&self, arg: usize, text: &[u8], out: &mut Vec<u8>) -> u64 {
        let (mut done, mut count) = (0, 0);
        let first = self.0.partition_point(|(of, _)| *of < arg);
        let own = self.0.iter().skip(first).take_while(|(of, _)| *of == arg);
        for (_, part) in own {
            if part.start >= done {
                out.extend_from_slice(text.get(done..part.start).unwrap_or_default());
                if part.start > done || count == 0 {
                    out.extend_from_slice(MASK);
                    count += 1;
                }
            }
            done = done.max(part.end);
        }
        out.extend_from_slice(text.get(done..).unwrap_or_default());
        count
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

    /// Masks each line `arguments → masked arguments`.
    fn check(lines: &str) {
        for line in lines.trim().lines() {
            let (line, want) = line.trim().split_once(" → ").unwrap();
            assert_eq!(masked(line), want);
        }
    }

    #[test]
    fn secrets_are_masked() {
        check(
            r#"
            svn|--password|hunter2|up → svn|--password|***|up
            svn|--password|-hunter2 → svn|--password|***
            x|--token=abc|y → x|--token=***|y
            deploy|github_pat_0123456789abcdefgh → deploy|***
            deploy|dckr_pat_0123456789abcdefgh → deploy|***
            x|--token=a=b&c|y → x|--token=***|y
            x|--token= → x|--token=
            keytool|-storepass|changeit → keytool|-storepass|***
            java|-Djavax.net.ssl.trustStorePassword=pw → java|-Djavax.net.ssl.trustStorePassword=***
            env|AWS_SECRET_ACCESS_KEY=abc|make → env|AWS_SECRET_ACCESS_KEY=***|make
            env|KEY=abc|make → env|KEY=***|make
            env|PASSWORD=two words → env|PASSWORD=***
            docker|build|--build-arg|NPM_TOKEN=abc → docker|build|--build-arg|NPM_TOKEN=***
            docker|build|--build-arg=NPM_TOKEN=a&b → docker|build|--build-arg=NPM_TOKEN=***
            npm|config|set|//registry.example/:_authToken=abc → npm|config|set|//registry.example/:_authToken=***
            mysql|-uroot|-phunter2|db → mysql|-uroot|-p***|db
            /usr/bin/mysqldump|-p|db → /usr/bin/mysqldump|-p|db
            sudo|mysql|-phunter2 → sudo|mysql|-p***
            curl|-u|me:pw|https://h/ → curl|-u|***|https://h/
            curl|-ume:pw → curl|-u***
            curl|--user|me:pw → curl|--user|***
            curl|--user=me:pw → curl|--user=***
            sshpass|-p|pw|ssh|-p|22|h → sshpass|-p|***|ssh|-p|22|h
            docker|login|-u|me|-p|pw → docker|login|-u|me|-p|***
            docker|run|-p|80:80|img → docker|run|-p|80:80|img
            redis-cli|-a|pw|get|k → redis-cli|-a|***|get|k
            7z|a|-ppw|x.7z → 7z|a|-p***|x.7z
            openssl|enc|-pass|pass:pw → openssl|enc|-pass|***
            openssl|rsa|-passin|pass:pw → openssl|rsa|-passin|***
            curl|-H|Authorization: Bearer abc → curl|-H|Authorization: ***
            curl|-HAuthorization:abc → curl|-HAuthorization:***
            curl|-H|PRIVATE-TOKEN: abc → curl|-H|PRIVATE-TOKEN: ***
            curl|-d|{"password": "p\"w", "a": "b"} → curl|-d|{"password": "***", "a": "b"}
            git|clone|https://me:pw@h/r.git → git|clone|https://me:***@h/r.git
            x|postgres://u:p@ss@h:5432/db → x|postgres://u:***@h:5432/db
            x|postgres://u:p/ss@h/db → x|postgres://u:***@h/db
            wget|https://h/f?access_token=abc&x=1 → wget|https://h/f?access_token=***&x=1
            wget|https://h/f?X-Amz-Signature=abc → wget|https://h/f?X-Amz-Signature=***
            x|Server=h;Password=abc;Database=d → x|Server=h;Password=***;Database=d
            git|clone|https://ghp_0123456789abcdefghijABCDEFGHIJ012345@github.com/x → git|clone|https://***@github.com/x
            deploy|eyJhbGciOiJI.eyJzdWIiOiIx.c2ln → deploy|***
            "#,
        );
        assert_eq!(masked("x|-----BEGIN RSA PRIVATE KEY-----\nabc\n"), "x|***");
    }

    #[test]
    fn scripts_are_read_word_by_word() {
        check(
            r#"
            sh|-c|TOKEN=abc make all → sh|-c|TOKEN=*** make all
            sh|-ec|export DB_PASSWORD='a b'; make → sh|-ec|export DB_PASSWORD='***'; make
            sh|-c|tool --password hunter2 && make → sh|-c|tool --password *** && make
            sh|-c|curl -u me:pw h; mysql -phunter2 db → sh|-c|curl -u *** h; mysql -p*** db
            sh|-c|curl -H 'Authorization: Bearer abc' h → sh|-c|curl -H 'Authorization: ***' h
            sh|-c|ssh h "sh -c 'X_TOKEN=abc make'" → sh|-c|ssh h "sh -c 'X_TOKEN=*** make'"
            ssh|h|FOO_TOKEN=abc make → ssh|h|FOO_TOKEN=***
            "#,
        );
    }

    /// The CPU time of masking one command line, the shortest of five.
    fn cost(argv: &Argv) -> std::time::Duration {
        let clock = nix::time::ClockId::CLOCK_THREAD_CPUTIME_ID;
        let now = || std::time::Duration::from(nix::time::clock_gettime(clock).unwrap());
        let mut redactor = redactor();
        let mut once = || {
            let before = now();
            redactor.argv(argv.clone());
            now() - before
        };
        (0..5).map(|_| once()).min().unwrap()
    }

    #[test]
    fn masking_takes_time_linear_in_the_command_line() {
        for unit in [
            "token=a;",
            "(token=a",
            "?a_token=x",
            "x=token=",
            "token=\"",
            "token='a ",
            "a'b\"",
            "token=a|",
            "--token|a|",
            "{\"token\":\"",
            "://a:b",
            "://a:b@",
            "eyJaaaaaaaa",
            "sk-",
        ] {
            let argv = |count| {
                let line = unit.repeat(count) + "token=";
                Argv::from_args(line.split('|'))
            };
            // A quadratic rule takes 16 times as long.
            let (short, long) = (cost(&argv(4_000)), cost(&argv(16_000)));
            assert!(
                long < 8 * short,
                "{unit}: {short:?}, four times as many {long:?}"
            );
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
