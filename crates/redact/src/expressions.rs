//! Finds secrets in words of a recorded command line that contain JSON, XML, SQL, function calls or similar languages.

use std::ops::Range;
use std::sync::LazyLock;

use regex::bytes::{Captures, Match, Regex};

use crate::harmless::is_harmless;
use crate::looks;
use crate::matching::{compiled, first_group};
use crate::names::{self, Certainty};

/// Matches a name and its value X in quotes, in order to mask X if the name stands for a secret:
/// `"name": "X"`, `name = 'X'`, `ENV['name'] = "X"`; also with escaped quotes.
static QUOTED: LazyLock<Regex> = LazyLock::new(|| {
    compiled(concat!(
        r#"(?-u)([A-Za-z0-9_.-]+)(?:\\?["'])?[\]})]?\s*(?::=?|=>?)\s*(?:"#,
        r#"\\["']([^"'\\\s;&|)][^"'\\]*)\\["']"#,
        r#"|"([^"\\\s;&|)](?:[^"\\]|\\.)*)"|'([^'\\\s;&|)](?:[^'\\]|\\.)*)')"#,
    ))
});

/// Matches a name and a value X that PHP hashes, in order to mask X if the name stands for a
/// secret: `'name' => bcrypt('X')`.
static HASHED: LazyLock<Regex> = LazyLock::new(|| {
    compiled(concat!(
        r#"(?-u)([A-Za-z0-9_.-]+)["']?\s*=>\s*(?:\w+(?:::|->))?"#,
        r#"(?:bcrypt|make|hash\w*|crypt|md5|sha1)\(\s*["']([^"'\\]+)["']"#,
    ))
});

/// Matches a name and its value X in Erlang, in order to mask X if the name stands for a secret:
/// `default_pass, <<"X">>`.
static BINARY: LazyLock<Regex> =
    LazyLock::new(|| compiled(r#"(?-u)([A-Za-z0-9_]+)\s*,\s*<<\\?"+([^"\\]+)\\?"+>>"#));

/// Matches a password X in SQL, netrc or a script of expect, in order to mask X: `PASSWORD 'X'`, `IDENTIFIED BY 'X'`,
/// `login me password X`.
static STATEMENT: LazyLock<Regex> = LazyLock::new(|| {
    compiled(concat!(
        r"(?i-u)\b(?:password|identified(?:\s+with\s+\w+)?\s+by(?:\s+password)?|using)",
        r#"(?:\s+|\s*[=(]\s*)\\?(?:'([^'\\\s][^'\\]*)|"([^"\\\s][^"\\]*))"#,
        r"|\bpassword\s+for\s+\S+\s*=\s*\\?'([^'\\]+)|\bpragma\s+(?:hex|re)*key\s*=\s*\\?['\x22]([^'\x22\\]+)",
        r#"|assword:?[^;\w]*;?\s*send\s+(?:--\s+)?\\?"([^"\\]+)"#,
        r"|\bidentified\s+by\s+([^\s'\x22\\;]+)",
        r"|\blogin\s+\S+\s+password\s+([^\s\\]+)",
    ))
});

/// Matches a line of `.pgpass`, in order to mask its password X: `host:port:database:user:X`.
static PGPASS: LazyLock<Regex> = LazyLock::new(|| {
    compiled(r"(?-u)(?:^|[\r\n])[\w.*-]+:(?:[0-9]+|\*):[^:\s]+:[^:\s]+:([^:\s]+)(?:[\r\n]|$)")
});

/// Matches an element of XML, in order to mask its text X if the element is named like a secret:
/// `<password>X</password>`.
static ELEMENT: LazyLock<Regex> =
    LazyLock::new(|| compiled(r"(?-u)<([A-Za-z0-9_.:-]+)>([^<>\s]+)</"));

/// Matches two attributes of an XML element, in order to mask X if the first one is named like a
/// secret: `<add key="ClearTextPassword" value="X" />`.
static ATTRIBUTES: LazyLock<Regex> = LazyLock::new(|| {
    compiled(r#"(?-u)(?:key|name)=["']([\w.:-]+)["']\s+value=["']([^"'\s]+)["']"#)
});

/// Matches a line of an INI file with blanks around the equals sign, in order to mask X if the name
/// stands for a secret: `aws_secret_access_key = X`.
static SETTING: LazyLock<Regex> = LazyLock::new(|| {
    compiled(r#"(?m-u)^[ \t]*([\w.-]+)[ \t]+=[ \t]+([^\s"'()\[\]{};,]+)[ \t]*\r?$"#)
});

/// Matches a pair of a name and a value, in order to mask X if the name stands for a secret:
/// `{"name": "API_KEY", "value": "X"}`, `ParameterKey=DbPassword,ParameterValue=X`.
static PAIR: LazyLock<Regex> = LazyLock::new(|| {
    compiled(concat!(
        r#"(?i-u)"?(?:parameter)?(?:name|key)\\?"?\s*[:=]\s*\\?"?([\w.-]+)\\?"?\s*,\s*\\?"?"#,
        r#"(?:parameter)?value\\?"?\s*[:=]\s*\\?"?([^"\\\s,}]+)"#,
    ))
});

/// Matches a function call with a name and a value in quotes, in order to mask X if the name stands
/// for a secret: `define('DB_PASSWORD', 'X')`.
static ARGUMENTS: LazyLock<Regex> = LazyLock::new(|| {
    compiled(concat!(
        r#"(?-u)\w\s*\(\s*(?:"([\w.-]+)"\s*,\s*"([^"\\]+)"|"#,
        r#"'([\w.-]+)'\s*,\s*'([^'\\]+)')\s*[,)]"#,
    ))
});

/// Matches a function call whose last text X may be a password, or a text X of PowerShell's SecureString, in order to
/// mask X: `Credentials("realm", "host", "user", "X")`.
static CALL: LazyLock<Regex> = LazyLock::new(|| {
    compiled(concat!(
        r"(?i-u)(?:credentials?|superuser|connect|auth|login|pdo|mysqli|(?:set|change)_?(?:user)?_?password)\w*",
        r#"\s*=?\s*\(([^()]*)\)|securestring\s+(?:-\w+\s+){0,3}["']([^"']+)"#,
    ))
});

/// Passes the byte range of each secret in a text to `masked`. All languages that the text may be
/// written in are tried (JSON, XML, SQL, …).
pub fn find(text: &[u8], mut masked: impl FnMut(Range<usize>)) {
    let mut search = |expression: &Regex, secret: Secret| {
        let found = expression.captures_iter(text);
        found
            .filter_map(|found| secret(&found))
            .for_each(&mut masked);
    };
    let has = |byte: u8| text.contains(&byte);
    let (quotes, names) = (has(b'"') || has(b'\''), has(b':') || has(b'='));
    if names && quotes {
        search(&QUOTED, of_quoted);
    }
    if quotes && text.windows(2).any(|part| part == b"<<") {
        search(&BINARY, of_pair);
    }
    if names && quotes && text.windows(2).any(|part| part == b"=>") {
        search(&HASHED, of_pair);
    }
    if has(b' ') {
        search(&STATEMENT, of_statement);
    }
    if has(b':') {
        search(&PGPASS, of_statement);
    }
    if has(b'<') {
        search(&ELEMENT, of_pair);
        search(&ATTRIBUTES, of_pair);
    }
    if has(b'=') && has(b'\n') {
        search(&SETTING, of_setting);
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
}

/// A function that returns the byte range of the secret in the match of a regular expression.
type Secret = fn(&Captures<'_>) -> Option<Range<usize>>;

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

fn of_setting(found: &Captures<'_>) -> Option<Range<usize>> {
    let value = found.get(2)?;
    let secret = looks::is_no_word(value.as_bytes()) || looks::is_base64(value.as_bytes());
    of_named(found.get(1)?, value).filter(|_| secret)
}

fn of_arguments(found: &Captures<'_>) -> Option<Range<usize>> {
    let name = first_group(found, 1..2).or(found.get(3))?;
    let value = found.get(2).or(found.get(4))?;
    let secret =
        names::secret(name.as_bytes()) == Certainty::Strong && looks::is_no_word(value.as_bytes());
    (secret && !is_harmless(value.as_bytes())).then(|| value.range())
}

fn of_named(name: Match<'_>, value: Match<'_>) -> Option<Range<usize>> {
    let (name, text) = (name.as_bytes(), value.as_bytes());
    // The name `routing_key` does not decide: PagerDuty's is a secret of 32 hexadecimal digits, RabbitMQ's is a word.
    let coded = names::ends_in_key(name) && text.len() == 32 && looks::is_code(text);
    let secret = names::secret(name) > Certainty::No || coded && !names::is_of_data(name);
    (secret && !is_harmless(text)).then(|| value.range())
}

fn of_call(found: &Captures<'_>) -> Option<Range<usize>> {
    if let Some(text) = found.get(2) {
        return (!is_harmless(text.as_bytes())).then(|| text.range());
    }
    // Otherwise the expression has matched the arguments of a call. The secret is then the last text in quotes: there
    // must be at least two such texts, and the last one must end the arguments.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_expression_compiles() {
        for expression in [
            &QUOTED,
            &HASHED,
            &BINARY,
            &STATEMENT,
            &PGPASS,
            &ELEMENT,
            &ATTRIBUTES,
            &SETTING,
            &PAIR,
            &ARGUMENTS,
            &CALL,
        ] {
            assert!(!expression.is_match(b"x"));
        }
    }
}
