//! Command lines as words: the names of secrets, the options whose value is a secret, the
//! words of a script. Each function takes time linear in its input.

use std::ops::Range;

/// A part of an argument.
#[derive(Clone, Copy, Debug)]
pub struct Word<'a> {
    /// The argument's index.
    pub arg: usize,
    /// The part's position in the argument, in bytes.
    pub at: usize,
    /// The part.
    pub text: &'a [u8],
}

/// A name with one of these words is a secret's.
#[rustfmt::skip]
const SECRET: [&str; 22] = [
    "password", "passwd", "passphrase", "passcode", "passin", "passout", "storepass", "keypass",
    "srcstorepass", "deststorepass", "secret", "secrets", "token", "apikey", "accesstoken",
    "authtoken", "apitoken", "credential", "credentials", "creds", "bearer", "authorization",
];

/// A name that ends with one of these words is a secret's.
const SECRET_LAST: [&str; 2] = ["pass", "auth"];

/// A name that ends with one of these words and `key` is a secret's.
#[rustfmt::skip]
const SECRET_KEY: [&str; 12] = [
    "api", "access", "private", "secret", "signing", "encryption", "deploy", "account", "master",
    "shared", "auth", "ssh",
];

/// A name that ends with one of these words stands for a secret's place or a property of it.
const HARMLESS_LAST: [&str; 16] = [
    "file", "path", "dir", "stdin", "fd", "env", "id", "name", "type", "length", "format", "url",
    "uri", "expiry", "ttl", "store",
];

/// The words of a name in lower case: `trustStorePassword` has three.
fn parts(name: &[u8]) -> Vec<String> {
    let mut parts = vec![String::new()];
    let mut before = b' ';
    for &byte in name {
        let new = !byte.is_ascii_alphanumeric()
            || byte.is_ascii_uppercase() && before.is_ascii_lowercase();
        if new && parts.last().is_some_and(|p| !p.is_empty()) {
            parts.push(String::new());
        }
        if let (true, Some(last)) = (byte.is_ascii_alphanumeric(), parts.last_mut()) {
            last.push(byte.to_ascii_lowercase() as char);
        }
        before = byte;
    }
    parts.retain(|part| !part.is_empty());
    parts
}

/// The name stands for a secret.
pub fn is_secret(name: &[u8]) -> bool {
    // No program has such long names.
    if name.len() > 256 {
        return false;
    }
    let parts = parts(name);
    let Some((last, before)) = parts.split_last() else {
        return false;
    };
    if HARMLESS_LAST.contains(&last.as_str()) {
        return false;
    }
    let is = |list: &[&str], part: &String| list.contains(&part.as_str());
    let env_style = !name.iter().any(u8::is_ascii_lowercase);
    parts.iter().any(|part| is(&SECRET, part))
        || is(&SECRET_LAST, last)
        || last == "pwd" && !before.is_empty()
        || last == "key" && (env_style || before.last().is_some_and(|p| is(&SECRET_KEY, p)))
}

/// `--x` or `-x`: an option, not a value that begins with a dash.
pub fn is_option(word: &[u8]) -> bool {
    match word {
        [b'-', b'-', rest @ ..] => {
            let name = rest.split(|b| *b == b'=').next().unwrap_or_default();
            rest.first().is_some_and(u8::is_ascii_alphabetic)
                && name.iter().all(|b| b.is_ascii_lowercase() || *b == b'-')
        }
        [b'-', letter] => letter.is_ascii_alphabetic(),
        _ => false,
    }
}

/// An option (`--password`) whose value is a secret and is the next word.
pub fn names_secret(word: &[u8]) -> bool {
    let Some(name) = word.strip_prefix(b"-") else {
        return false;
    };
    let name = name.strip_prefix(b"-").unwrap_or(name);
    let harmless = name.starts_with(b"no-") || name.contains(&b'=') || name.contains(&b' ');
    !harmless && name.len() > 2 && is_secret(name)
}

/// Programs with options whose value is a secret: joined (`-pX`), apart (`-p X`) or both;
/// `after` is a word that must stand before the option.
struct Program {
    names: &'static [&'static str],
    options: &'static [&'static str],
    joined: bool,
    apart: bool,
    after: Option<&'static str>,
}

#[rustfmt::skip]
const PROGRAMS: [Program; 12] = [
    Program {
        names: &[
            "mysql", "mysqldump", "mysqladmin", "mysqlimport", "mysqlcheck", "mysqlshow", "mysqlslap",
            "mysqlbinlog", "mariadb", "mariadb-dump", "mariadb-admin", "mariadb-import", "mariadb-check",
        ],
        options: &["-p"], joined: true, apart: false, after: None,
    },
    Program {
        names: &["curl"],
        options: &["-u", "-U", "--user", "--proxy-user", "-b", "--cookie"],
        joined: true, apart: true, after: None,
    },
    Program { names: &["sshpass"], options: &["-p"], joined: true, apart: true, after: None },
    Program { names: &["redis-cli"], options: &["-a"], joined: false, apart: true, after: None },
    Program {
        names: &["docker", "podman", "buildah", "skopeo", "helm", "oras", "az"],
        options: &["-p"], joined: true, apart: true, after: Some("login"),
    },
    Program {
        names: &["mongo", "mongosh", "mongodump", "mongorestore", "twine"],
        options: &["-p"], joined: true, apart: true, after: None,
    },
    Program {
        names: &["ldapsearch", "ldapmodify", "ldapadd", "ldapdelete", "ldappasswd", "ldapwhoami"],
        options: &["-w"], joined: true, apart: true, after: None,
    },
    Program { names: &["zip", "unzip"], options: &["-P"], joined: true, apart: true, after: None },
    Program { names: &["7z", "7za", "7zr", "7zz"], options: &["-p"], joined: true, apart: false, after: None },
    Program { names: &["openssl"], options: &["-k", "-K"], joined: false, apart: true, after: None },
    Program { names: &["smbclient"], options: &["-U", "--user"], joined: false, apart: true, after: None },
    // sshpass runs one of these, which have a -p of their own.
    Program { names: &["ssh", "scp", "sftp", "rsync"], options: &[], joined: false, apart: false, after: None },
];

/// Reads a command line from left to right.
#[derive(Default)]
pub struct Options {
    program: Option<&'static Program>,
    /// `Program::after` was seen.
    armed: bool,
    /// The next word is a secret.
    pub next_is_secret: bool,
}

impl Options {
    /// Reads the next word; the position of a secret that ends it.
    pub fn see(&mut self, word: &[u8]) -> Option<usize> {
        let base = word.rsplit(|b| *b == b'/').next().unwrap_or_default();
        let named = |program: &&Program| program.names.iter().any(|n| n.as_bytes() == base);
        if let Some(program) = PROGRAMS.iter().find(named) {
            self.program = Some(program);
            self.armed = program.after.is_none();
            return None;
        }
        let program = self.program?;
        if !self.armed {
            self.armed = program.after.is_some_and(|after| after.as_bytes() == word);
            return None;
        }
        for option in program.options.iter().map(|option| option.as_bytes()) {
            let long = option.starts_with(b"--");
            match word.strip_prefix(option) {
                Some([]) => {
                    self.next_is_secret = program.apart;
                    return None;
                }
                Some([b'=', _, ..]) if long => return Some(option.len() + 1),
                Some(_) if program.joined && !long => return Some(option.len()),
                _ => {}
            }
            // `-su` is `-s -u`.
            let cluster = word.len() <= 5 && word.iter().skip(1).all(u8::is_ascii_alphabetic);
            if !long && cluster && word.first() == Some(&b'-') && word.last() == option.last() {
                self.next_is_secret = program.apart;
            }
        }
        None
    }
}

/// The word is a script: it follows `-c` or `-ec`.
pub fn is_script(previous: &[u8], word: &[u8]) -> bool {
    let letters = previous.strip_prefix(b"-").unwrap_or_default();
    letters.last() == Some(&b'c')
        && letters.iter().all(u8::is_ascii_lowercase)
        && word.iter().any(u8::is_ascii_whitespace)
}

/// Bytes that end a value, besides white space.
const STOPS: &[u8; 6] = b"&#\"';,";

/// The next position of white space and of each of [`STOPS`], in a text that is read from
/// its end to its beginning.
struct Stops {
    space: usize,
    next: [usize; STOPS.len()],
}

impl Stops {
    fn note(&mut self, at: usize, byte: u8) {
        if byte.is_ascii_whitespace() {
            self.space = at;
        }
        let of = |(stop, _): &(&u8, &mut usize)| **stop == byte;
        if let Some((_, next)) = STOPS.iter().zip(&mut self.next).find(of) {
            *next = at;
        }
    }

    /// The next white space or byte among `stops`.
    fn first(&self, stops: &[u8]) -> usize {
        let next = STOPS.iter().zip(self.next);
        let among = next.filter(|(stop, _)| stops.contains(stop));
        among.fold(self.space, |first, (_, at)| first.min(at))
    }
}

/// The values of `NAME=value` with a secret's name, anywhere in a word. At its start the
/// value extends to its end, except in a script.
pub fn assignments(text: &[u8], script: bool) -> Vec<Range<usize>> {
    let spaced = text.iter().any(u8::is_ascii_whitespace);
    let mut stops = Stops {
        space: text.len(),
        next: [text.len(); STOPS.len()],
    };
    let mut found = Vec::new();
    // From the end, so that the end of a value is known without a search: there may be
    // thousands of values that all extend to the end of the word.
    for (equals, byte) in text.iter().enumerate().rev() {
        if *byte == b'=' {
            found.extend(assignment(text, equals, &stops, spaced, script));
        }
        stops.note(equals, *byte);
    }
    found
}

/// The value after the `=` at `equals`, if the name before it is a secret's.
fn assignment(
    text: &[u8],
    equals: usize,
    stops: &Stops,
    spaced: bool,
    script: bool,
) -> Option<Range<usize>> {
    let in_name = |b: &u8| b.is_ascii_alphanumeric() || b"_.-:/@".contains(b);
    let (head, value) = (text.get(..equals)?, text.get(equals + 1..)?);
    let start = equals - head.iter().rev().take_while(|b| in_name(b)).count();
    let name = head.get(start..)?;
    let before = head.get(..start)?.last().copied();
    let query = matches!(before, Some(b'?' | b'&'));
    // `-DNAME=value` of compilers, docker and gradle.
    let defined = match name {
        [b'-', b'D' | b'E' | b'P' | b'e', rest @ ..] => rest,
        _ => b"",
    };
    let signed = || {
        parts(name)
            .last()
            .is_some_and(|p| p == "sig" || p == "signature")
    };
    if is_working_directory(name) || !(is_secret(name) || is_secret(defined) || query && signed()) {
        return None;
    }
    let (from, end) = (equals + 1, text.len());
    match (before, value.first()) {
        (None, _) if script => None,
        // Between the quotes. The search ends at the next quote of this kind, where the
        // search from that quote begins.
        (_, Some(quote @ (b'"' | b'\''))) => {
            let inner = value.get(1..)?;
            let length = inner.iter().position(|b| b == quote);
            Some(from + 1..from + 1 + length.unwrap_or(inner.len()))
        }
        (None, _) => Some(from..end),
        (Some(b'='), _) if !spaced => Some(from..end),
        (Some(b'?' | b'&'), _) => Some(from..stops.first(b"&#\"'")),
        (Some(mark @ (b';' | b',' | b'"' | b'\'')), _) => Some(from..stops.first(&[mark])),
        _ => Some(from..stops.first(b";\"'")),
    }
}

fn is_working_directory(name: &[u8]) -> bool {
    name == b"PWD" || name == b"OLDPWD"
}

/// The words of a script, roughly as a shell would find them: between
/// separators, quotes kept together and taken off where they stand around a
/// whole word. A quote without an end is an ordinary character.
pub fn split<'a>(script: &Word<'a>) -> Vec<Word<'a>> {
    let text = script.text;
    let rest = |at: usize| text.get(at..).unwrap_or_default();
    let separates = |b: u8| b.is_ascii_whitespace() || b";|&()`".contains(&b);
    let mut words = Vec::new();
    let mut at = 0;
    while at < text.len() {
        let start = at;
        while let Some(&byte) = text.get(at).filter(|b| !separates(**b)) {
            at += match byte {
                b'\\' => 2,
                b'"' | b'\'' => {
                    let inner = rest(at + 1);
                    inner
                        .iter()
                        .position(|b| *b == byte)
                        .map_or(1, |end| end + 2)
                }
                _ => 1,
            };
        }
        at = at.min(text.len());
        let word = text.get(start..at).unwrap_or_default();
        if !word.is_empty() {
            let bare = match word {
                [b'"', inner @ .., b'"'] | [b'\'', inner @ .., b'\''] => inner,
                _ => word,
            };
            words.push(Word {
                arg: script.arg,
                at: script.at + start + usize::from(bare.len() != word.len()),
                text: bare,
            });
        }
        at += 1;
    }
    words
}

#[cfg(test)]
#[path = "tests/words.rs"]
mod tests;
