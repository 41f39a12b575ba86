//! Recognizes words of command lines and scripts that contain or announce secrets: options and assignments with the
//! name of a secret, and the like. Each function takes time linear in its input.

use std::ops::Range;

use crate::harmless::is_harmless;
use crate::looks;
use crate::names::{self, Certainty};

/// A part of a command line's argument that is read as a word.
#[derive(Clone, Copy, Debug)]
pub struct Word<'a> {
    /// The index of the argument that contains the word.
    pub arg: usize,
    /// The position in bytes at which the word begins in its argument.
    pub at: usize,
    pub text: &'a [u8],
    /// Whether the word is the first word of a command.
    pub first: bool,
}

/// How a word of a command line is read when secrets are searched in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum How {
    /// The word is read as an ordinary argument of a command.
    Value,
    /// The word is read as a script, whose own words are read one by one.
    Script,
    /// The word is part of a text that the command prints, as `echo` does. A value in such a text is a secret only if
    /// the value does not look like a word.
    Printed,
}

impl How {
    /// Whether a value after the name of a secret is a secret. In a printed text, the value must not look like a word.
    /// The caller has excluded harmless values such as `none`.
    pub fn is_secret(self, value: &[u8]) -> bool {
        self != How::Printed || looks::is_no_word(value)
    }
}

/// Whether a word is an assignment as it stands before a command: `NAME=value`.
pub fn is_assignment(word: &[u8]) -> bool {
    let name = word.split(|b| *b == b'=').next().unwrap_or_default();
    let in_name = |b: &u8| b.is_ascii_alphanumeric() || *b == b'_';
    name.len() < word.len() && !name.is_empty() && name.iter().all(in_name)
}

/// Whether a word is a name in capital letters with a plain word as its value, `ENV=prod`. Jenkins and other programs
/// take such parameters after `-p` or `-P`, which is then no option for a password.
pub fn is_parameter(word: &[u8]) -> bool {
    let Some(equals) = word.iter().position(|b| *b == b'=') else {
        return false;
    };
    let (name, value) = (word.get(..equals), word.get(equals + 1..));
    let in_name = |b: &u8| b.is_ascii_uppercase() || *b == b'_';
    name.is_some_and(|name| name.len() > 2 && name.iter().all(in_name))
        && value.is_some_and(names::is_plain)
}

/// Whether a word is an option (`--x` or `-x`), and not a value that begins with a dash.
pub fn is_option(word: &[u8]) -> bool {
    match word {
        [b'-', b'-', rest @ ..] => {
            let name = rest.split(|b| *b == b'=').next().unwrap_or_default();
            rest.first().is_some_and(u8::is_ascii_alphabetic)
                && name.iter().all(|b| b.is_ascii_lowercase() || *b == b'-')
        }
        [b'-', letter] => letter.is_ascii_alphabetic(),
        [b'-', name @ ..] => {
            name.len() > 1 && name.iter().all(|b| b.is_ascii_lowercase() || *b == b'-')
        }
        _ => false,
    }
}

/// Whether a word is an option, such as `--password`, whose value is the next word and a secret.
pub fn names_secret(word: &[u8]) -> bool {
    // Some programs have options with plus signs: `+rcon_password` of a game server, `++password` of xxh.
    if let Some(name) = word.strip_prefix(b"+") {
        let double = name.strip_prefix(b"+");
        return (double.is_some() || name.contains(&b'_')) && sets_secret(double.unwrap_or(name));
    }
    let Some(name) = word.strip_prefix(b"-") else {
        return false;
    };
    // An option such as `-lNAME` names a library for a linker, and one with a slash a directory for a compiler.
    if name.starts_with(b"l") || name.contains(&b'/') {
        return false;
    }
    let name = name.strip_prefix(b"-").unwrap_or(name);
    let plain = !name.iter().any(|b| b"=: ".contains(b));
    plain && name.len() > 2 && (name == b"pin" || names::secret(name) > Certainty::No)
}

/// Whether an option often has a password or a code as its value: `-p`, `-T`, `--key`.
pub fn may_take_password(option: &[u8]) -> bool {
    match option {
        [b'-', letter] => b"pPwWkKxsatT".contains(letter),
        _ => matches!(option, b"-pw" | b"-pas" | b"--pw" | b"--pass" | b"--key"),
    }
}

/// Whether a word has the word `password`, `passwd` or `passphrase` in it, as commands that handle passwords have:
/// `change-password`, `user:password:reset`.
pub fn changes_password(word: &[u8]) -> bool {
    const ROOTS: [&[u8]; 3] = [b"password", b"passwd", b"passphrase"];
    let plain = |b: &u8| b.is_ascii_alphanumeric() || b"-_:./".contains(b);
    let is = |root: &&[u8]| {
        let mut parts = word.windows(root.len());
        parts.any(|part| part.eq_ignore_ascii_case(root))
    };
    word.len() <= 64 && !word.starts_with(b"-") && word.iter().all(plain) && ROOTS.iter().any(is)
}

/// Whether a word is an option that takes a key of any kind: `--worker-key`. The key is a secret if it looks like a
/// secret.
pub fn is_key_option(word: &[u8]) -> bool {
    word.starts_with(b"-") && names::is_key(word)
}

/// Whether a word is an option for a key that is often no secret, such as `--primary-key`. The key
/// counts as a secret only if it is Base64.
pub fn may_take_key(word: &[u8]) -> bool {
    word.starts_with(b"--") && names::ends_in_key(word)
}

/// Whether a word is the name of a secret in a configuration, so that the next word is the secret.
pub fn sets_secret(word: &[u8]) -> bool {
    let in_name = |b: &u8| b.is_ascii_alphanumeric() || b"_.-:/@".contains(b);
    let vague = word == b"secret"
        || word == b"secrets"
        || word.to_ascii_lowercase().ends_with(b"user.signingkey");
    !vague
        && !word.starts_with(b"-")
        && word.iter().all(in_name)
        && names::secret(word) == Certainty::Strong
}

/// Whether a word is an option whose value is text for people (a commit message, a title) or a pattern (the tests to
/// run).
pub fn announces_prose(word: &[u8]) -> bool {
    #[rustfmt::skip]
    const OPTIONS: [&[u8]; 16] = [
        b"-run", b"--run", b"--filter", b"--tests", b"--test_filter", b"--testNamePattern",
        b"--test-name-pattern", b"--grep", b"-m", b"-am", b"--message", b"--title", b"--body",
        b"--subject", b"--notes", b"--description",
    ];
    OPTIONS.contains(&word)
}

/// Whether a word such as `set` or `config` announces that a name and its value may follow as two words.
pub fn is_setter(word: &[u8]) -> bool {
    #[rustfmt::skip]
    const SETTERS: [&[u8]; 13] = [
        b"set", b"/set", b"config", b"configure", b"put", b"write", b"env:set", b"config:set",
        b"secrets:set", b"setenv", b"set-env", b"env-set", b"store-secret",
    ];
    SETTERS.contains(&word)
}

/// Whether a word is a command that stores a secret (`create-secret`), by itself or together with the previous word
/// (`credential create`).
pub fn stores_secret(previous: &[u8], word: &[u8]) -> bool {
    #[rustfmt::skip]
    const NOUNS: [&[u8]; 14] = [
        b"api-key", b"access-key", b"secret", b"secrets", b"credential", b"credentials", b"password", b"passwords", b"token", b"tokens",
        b"apikey", b"passphrase", b"keyvault", b"keychain",
    ];
    #[rustfmt::skip]
    const VERBS: [&[u8]; 10] = [
        b"add", b"create", b"new", b"put", b"set", b"update", b"store", b"write", b"save", b"import",
    ];
    let in_name = |b: &u8| b.is_ascii_lowercase() || b":-_".contains(b);
    if word.len() > 40 || word.starts_with(b"-") || !word.iter().all(in_name) {
        return false;
    }
    let parts = || word.split(|b| b":-_".contains(b));
    let has = |list: &[&[u8]]| parts().any(|part| list.contains(&part));
    let verb = has(&VERBS);
    let noun = has(&NOUNS);
    verb && (noun || NOUNS.contains(&previous)) || noun && VERBS.contains(&previous)
}

/// Whether an option takes the content of the secret in a command that stores one.
pub fn is_content(option: &[u8]) -> bool {
    #[rustfmt::skip]
    const OPTIONS: [&[u8]; 14] = [
        b"--value", b"-value", b"-v", b"--data", b"-data", b"--body", b"--plaintext", b"--payload", b"--content",
        b"--string", b"--secret-value", b"--string-value", b"--literal", b"--text",
    ];
    OPTIONS.contains(&option)
}

/// Whether an option takes the old or the new password in a command that changes one.
pub fn is_old_or_new(option: &[u8]) -> bool {
    #[rustfmt::skip]
    const OPTIONS: [&[u8]; 8] = [
        b"--current", b"--old", b"--new", b"--previous", b"--confirm", b"-old", b"-new", b"--set",
    ];
    OPTIONS.contains(&option)
}

/// Whether a word is a command that sets variables of a cloud service, so that the words after it are `X=value`.
pub fn sets_variables(word: &[u8]) -> bool {
    matches!(word, b"config:set" | b"env:set" | b"secrets:set")
}

/// Whether a word announces that the next one may be a secret that a service has generated.
pub fn announces_code(word: &[u8]) -> bool {
    #[rustfmt::skip]
    const WORDS: [&[u8]; 12] = [
        b"login", b"auth", b"authenticate", b"authtoken", b"set-token", b"add-token", b"activate",
        b"apikey", b"api-key", b"unlock", b"set-key", b"add-key",
    ];
    WORDS.contains(&word)
}

/// Whether a word announces that the next one may be a random token, as in `spark register X`.
pub fn announces_token(word: &[u8]) -> bool {
    #[rustfmt::skip]
    const WORDS: [&[u8]; 12] = [
        b"token", b"register", b"encrypt", b"join", b"enroll", b"attach", b"enable", b"connect", b"license", b"claim",
        b"pair", b"redeem",
    ];
    WORDS.contains(&word)
}

/// Whether a word announces that a password may follow without an option: `password X` of a
/// router's configuration, `unlock X`.
pub fn is_bare_name(word: &[u8]) -> bool {
    matches!(
        word,
        b"password" | b"passphrase" | b"psk" | b"passcode" | b"unlock"
    )
}

/// The position of the password in the value of an option with a user and a password: `--user me:X`,
/// `--add-local-user me:X`; `None` if X does not look like a password, as in `--user 1000:1000`.
pub fn user_and_password(option: &[u8], word: &[u8]) -> Option<usize> {
    #[rustfmt::skip]
    const NAMES: [&[u8]; 7] = [
        b"user", b"creds", b"credential", b"credentials", b"login", b"auth", b"proxyuser",
    ];
    let last = option.rsplit(|b| *b == b'-').next().unwrap_or_default();
    if option != b"-u" && !(option.starts_with(b"--") && NAMES.contains(&last)) {
        return None;
    }
    let at = word.iter().position(|b| *b == b':')? + 1;
    let value = word.get(at..)?;
    let digits = value.iter().any(u8::is_ascii_digit) && value.iter().any(u8::is_ascii_alphabetic);
    let mixed =
        digits || looks::changes_case(value) || value.iter().any(|b| b"!$%^&*#".contains(b));
    let inner = !value.iter().any(|b| b"/: ".contains(b));
    (mixed && inner && !is_harmless(value)).then_some(at)
}

/// The position of the password X in a word `NAME:X` or `DOMAIN/NAME:X`. A word `NAME:X` must follow an option of one
/// letter, and X must look like a generated password. A word `DOMAIN/NAME:X` could be a container image with its tag,
/// so X must contain a mark that no tag contains.
pub fn name_and_password(option: &[u8], word: &[u8]) -> Option<usize> {
    let at = word.iter().position(|b| *b == b':')? + 1;
    let (name, value) = (word.get(..at - 1)?, word.get(at..)?);
    let in_name = |b: &u8| b.is_ascii_alphanumeric() || b"_.-".contains(b);
    let value = value.split(|b| *b == b'@').next().unwrap_or_default();
    let mut parts = name.split(|b| *b == b'/');
    let is_name = |part: &[u8]| !part.is_empty() && part.iter().all(in_name);
    let first = parts.next().filter(|part| is_name(part))?;
    let second = parts.next();
    if parts.next().is_some() || second.is_some_and(|part| !is_name(part)) || is_harmless(value) {
        return None;
    }
    let short = matches!(option, [b'-', letter] if letter.is_ascii_alphabetic());
    let letters = first.iter().all(u8::is_ascii_alphabetic);
    let marked = second.is_some()
        && looks::is_no_word(value)
        && value.iter().any(|b| b"!#$%^&*".contains(b));
    (marked || short && letters && second.is_none() && looks::is_strong(value)).then_some(at)
}

/// Whether a word is the name of a user after an option such as `-u`, or is an option with the
/// name, as `--username=me`.
pub fn is_user(option: &[u8], word: &[u8]) -> bool {
    #[rustfmt::skip]
    const OPTIONS: [&[u8]; 12] = [
        b"-u", b"-U", b"-l", b"-user", b"--user", b"-username", b"--username", b"--user-name", b"--login", b"-login",
        b"/u", b"/user",
    ];
    let name = |word: &[u8]| {
        let plain = |b: &u8| b.is_ascii_alphanumeric() || b"_.@+-\\".contains(b);
        !word.starts_with(b"-")
            && word.iter().all(plain)
            && word.iter().any(u8::is_ascii_alphabetic)
    };
    let mut joined = word.splitn(2, |b| *b == b'=');
    let head = joined.next().unwrap_or_default();
    OPTIONS.contains(&option) && name(word)
        || OPTIONS.contains(&head) && joined.next().is_some_and(name)
}

/// Words for the people or programs that sign in: `user`, `account`.
#[rustfmt::skip]
const ACCOUNTS: [&[u8]; 8] = [
    b"user", b"users", b"admin", b"admins", b"account", b"accounts", b"credential", b"credentials",
];

/// Words for creating or changing an account, such as `create`.
#[rustfmt::skip]
const MAKING_WORDS: [&[u8]; 8] = [
    b"add", b"create", b"new", b"passwd", b"password", b"update", b"set", b"save",
];

/// Whether two words of a command line create or change an account (`create user`). The name of the
/// account follows them.
pub fn makes_account(previous: &[u8], word: &[u8]) -> bool {
    MAKING_WORDS.contains(&previous) && ACCOUNTS.contains(&word)
}

/// Whether a word of a command line signs in (`login`, `registry:login`, `mega-login`) or, perhaps
/// with the previous word, creates an account (`users add`, `create-user`).
pub fn is_account(previous: &[u8], word: &[u8]) -> bool {
    const ALONE: [&[u8]; 4] = [b"login", b"auth", b"signin", b"passwd"];
    let in_name = |b: &u8| b.is_ascii_alphanumeric() || b":-_".contains(b);
    if word.len() > 40 || word.starts_with(b"-") || !word.iter().all(in_name) {
        return false;
    }
    let parts = || word.split(|b| b":-_".contains(b));
    let last = parts().next_back();
    let both = || {
        parts().any(|part| ACCOUNTS.contains(&part))
            && parts().any(|part| MAKING_WORDS.contains(&part))
    };
    ACCOUNTS.contains(&previous) && MAKING_WORDS.contains(&word)
        || last.is_some_and(|last| ALONE.contains(&last))
        || both()
}

/// Splits an assignment of a script, `NAME="value with blanks"`, into the name and the value without its quotes.
pub fn quoted_value<'a>(word: &Word<'a>) -> Option<(&'a [u8], Word<'a>)> {
    let equals = word.text.iter().position(|b| *b == b'=')?;
    let (name, value) = (word.text.get(..equals)?, word.text.get(equals + 1..)?);
    let ([b'"', inner @ .., b'"'] | [b'\'', inner @ .., b'\'']) = value else {
        return None;
    };
    let quote = value.first()?;
    let plain = |b: &u8| b.is_ascii_alphanumeric() || b"_.-".contains(b);
    let value = Word {
        at: word.at + equals + 2,
        text: inner,
        first: false,
        ..*word
    };
    (!name.is_empty() && name.iter().all(plain) && !inner.contains(quote)).then_some((name, value))
}

/// The replacement in a sed command, `X` of `s/PATTERN/X/`, and whether the pattern names a secret, so that the
/// replacement is a secret.
pub fn replacement<'a>(word: &Word<'a>) -> Option<(Word<'a>, bool)> {
    let address = |b: &&u8| b.is_ascii_digit() || b"$, ".contains(b);
    let from = word.text.iter().take_while(address).count();
    let [b's', mark, rest @ ..] = word.text.get(from..)? else {
        return None;
    };
    let mut parts = rest.split(|b| b == mark);
    let (pattern, by, flags) = (parts.next()?, parts.next()?, parts.next()?);
    let is_sed = b"/|#,@!~%:+".contains(mark) && flags.len() <= 4 && parts.next().is_none();
    let name: Vec<u8> = pattern
        .iter()
        .filter(|b| !b"@_%{}<>$^".contains(b))
        .copied()
        .collect();
    let named = sets_secret(&name) && names::secret(by) == Certainty::No && !names::is_plain(by);
    let part = Word {
        at: word.at + from + 2 + pattern.len() + 1,
        text: by,
        ..*word
    };
    is_sed.then_some((part, named && !is_harmless(by)))
}

/// Whether a word of a command line is a script: it contains white space and follows an option such as `-c` or `-ec`.
pub fn is_script(previous: &[u8], word: &[u8]) -> bool {
    let letters = previous.strip_prefix(b"-").unwrap_or_default();
    letters.last() == Some(&b'c')
        && letters.iter().all(u8::is_ascii_lowercase)
        && word.iter().any(u8::is_ascii_whitespace)
}

/// The bytes that, like white space, can end the value of an assignment.
const STOP_BYTES: &[u8; 6] = b"&#\"';,";

/// The positions of the next white space and of the next byte of each kind in [`STOP_BYTES`]. These positions are
/// updated while a text is read from its end to its beginning.
struct Stops {
    space: usize,
    next: [usize; STOP_BYTES.len()],
}

impl Stops {
    fn note(&mut self, at: usize, byte: u8) {
        if byte.is_ascii_whitespace() {
            self.space = at;
        }
        let of = |(stop, _): &(&u8, &mut usize)| **stop == byte;
        if let Some((_, next)) = STOP_BYTES.iter().zip(&mut self.next).find(of) {
            *next = at;
        }
    }

    /// The position of the next white space or of the next byte among `stops`, whichever comes first.
    fn first(&self, stops: &[u8]) -> usize {
        let next = STOP_BYTES.iter().zip(self.next);
        let among = next.filter(|(stop, _)| stops.contains(stop));
        among.fold(self.space, |first, (_, at)| first.min(at))
    }
}

/// Finds assignments `NAME=value` whose name stands for a secret, and returns the byte ranges of their values. If the
/// assignment begins the word, an unquoted value extends to the word's end, or to the further assignments if only
/// these follow.
pub fn assignments(text: &[u8]) -> Vec<Range<usize>> {
    let spaced = text.iter().any(u8::is_ascii_whitespace);
    let mut stops = Stops {
        space: text.len(),
        next: [text.len(); STOP_BYTES.len()],
    };
    let mut found = Vec::new();
    let mut influx = None;
    // The text is read from its end, so that the end of each value is known without a search. There may be thousands of
    // values that all extend to the end of the word.
    for (equals, byte) in text.iter().enumerate().rev() {
        if *byte == b'=' {
            found.extend(assignment(text, equals, &stops, spaced));
            let query = equals.checked_sub(2).and_then(|at| text.get(at..equals));
            if let Some(b"?p" | b"&p") = query {
                if *influx.get_or_insert_with(|| is_influx(text)) {
                    let value = equals + 1..stops.first(b"&#\"'");
                    let secret = text
                        .get(value.clone())
                        .is_some_and(|text| !is_harmless(text));
                    found.extend(secret.then_some(value));
                }
            }
        }
        stops.note(equals, *byte);
    }
    found
}

/// Whether the query of a URL has a parameter `u` for the user, as URLs of InfluxDB have. Its
/// parameter `p` then is the password.
fn is_influx(text: &[u8]) -> bool {
    let query = || text.windows(3).any(|part| matches!(part, b"?u=" | b"&u="));
    text.contains(&b'?') && query()
}

/// The authorization schemes that stand before the secret in the value of an HTTP header.
const SCHEMES: [&[u8]; 3] = [b"Bearer ", b"Basic ", b"Token "];

/// The byte range of the value after the `=` at the position `equals`, if the name before it stands for a secret.
fn assignment(text: &[u8], equals: usize, stops: &Stops, spaced: bool) -> Option<Range<usize>> {
    let in_name = |b: &u8| b.is_ascii_alphanumeric() || b"_.-:/@".contains(b);
    let (head, value) = (text.get(..equals)?, text.get(equals + 1..)?);
    // Only the beginning of the value is looked at, so that many assignments in one word take linear time.
    let near = value.get(..value.len().min(256))?;
    let start = equals - head.iter().rev().take_while(|b| in_name(b)).count();
    let name = head.get(start..)?;
    let before = head.get(..start)?.last().copied();
    let query = matches!(before, Some(b'?' | b'&'));
    // Compilers, docker and gradle have options that are joined with an assignment: `-DNAME=value`.
    let defined = match name {
        [b'-', b'D' | b'E' | b'P' | b'e', rest @ ..] => rest,
        _ => name,
    };
    let sure = names::secret(name).max(names::secret(defined));
    let coded = || {
        let value = near.split(|b| b"&#\"'".contains(b)).next();
        names::is_vague(name) && looks::is_code(value.unwrap_or_default())
    };
    let bundler = name.starts_with(b"BUNDLE_") && !near.contains(&b'/');
    // A name such as `SKYLIGHT_AUTHENTICATION` can have a token as its value, or only the name of a method.
    let authenticates =
        name.ends_with(b"_AUTHENTICATION") && near == value && looks::is_random(near);
    let key = || {
        let value = match near {
            [b'"', inner @ .., b'"'] | [b'\'', inner @ .., b'\''] => inner,
            _ => near,
        };
        let padded = looks::is_base64(value) && value.ends_with(b"=");
        let coded = names::is_key(defined) && (looks::is_code(value) || looks::is_base64(value));
        authenticates || coded || padded && names::ends_in_key(defined)
    };
    if !(sure > Certainty::No
        || bundler
        || key()
        || query && (names::is_signature(name) || coded()))
    {
        return None;
    }
    let scheme = SCHEMES.iter().find(|scheme| value.starts_with(scheme));
    let (from, end) = (
        equals + 1 + scheme.map_or(0, |scheme| scheme.len()),
        text.len(),
    );
    let range = match (before, value.first()) {
        // The operator `==` is a comparison, for example with the version of a package.
        (None, Some(b'=')) => return None,
        // In the name of a test the brackets contain parameters and no secrets: `test.py::test[key=value]`.
        _ if before == Some(b'[') && text.windows(2).any(|pair| pair == b"::") => return None,
        // The value `password` names the field of an object in which the secret is, and is no secret itself.
        _ if value == b"password" && name.to_ascii_lowercase().ends_with(b"key") => return None,
        _ if names::is_bare_key(defined) && names::is_plain(near) => return None,
        _ if name != defined && value.len() <= 4 && value.iter().all(u8::is_ascii_digit) => {
            return None
        }
        // The name of such a variable of Bundler contains a host, and its value is the user and the password for it, or
        // a token.
        _ if name.starts_with(b"BUNDLE_") => match near.iter().position(|b| *b == b':') {
            Some(at) => from + at + 1..end,
            None if (looks::is_code(near) || looks::is_strong(near))
                && name.windows(2).any(|part| part == b"__") =>
            {
                from..end
            }
            None => return None,
        },
        _ if sure == Certainty::Weak && near.contains(&b'@') && near.contains(&b'.') => {
            return None
        }
        // The value extends to the next quote of the same kind. The time of all searches together is linear: each
        // search ends at a quote, and the search for a later value begins after that quote.
        (_, Some(quote @ (b'"' | b'\''))) => {
            let inner = value.get(1..)?;
            let length = inner.iter().position(|b| b == quote);
            from + 1..from + 1 + length.unwrap_or(inner.len())
        }
        (None, _) => from..ends_before_assignments(value).map_or(end, |length| from + length),
        (Some(b'='), _) if !spaced => {
            from..ends_before_settings(value).map_or(end, |length| from + length)
        }
        (Some(b'?' | b'&'), _) => from..stops.first(b"&#\"'"),
        (Some(mark @ (b';' | b',' | b'"' | b'\'')), _) => from..stops.first(&[mark]),
        // The white space after the scheme (such as `Bearer `) does not end the value, because the secret comes only
        // after this white space. So the end is searched for here.
        _ if scheme.is_some() => {
            let rest = text.get(from..)?;
            let near = rest.get(..rest.len().min(4096))?;
            let stop = |b: &u8| b.is_ascii_whitespace() || b";\"'".contains(b);
            from..near.iter().position(stop).map_or(end, |at| from + at)
        }
        _ => from..stops.first(b";\"'"),
    };
    (!is_harmless(text.get(range.clone())?)).then_some(range)
}

/// The length of a short value that is followed only by settings: `X` of `apitoken=X,host=h`.
/// Returns `None` if other text follows.
fn ends_before_settings(value: &[u8]) -> Option<usize> {
    let comma = value.iter().take(256).position(|b| *b == b',')?;
    let rest = value.get(comma + 1..)?;
    (rest.len() <= 256 && rest.split(|b| *b == b',').all(is_assignment)).then_some(comma)
}

/// The length of a value that is followed only by assignments: `X` of Ansible's variables
/// `password=X connection=ssh`. Returns `None` if other text follows.
fn ends_before_assignments(value: &[u8]) -> Option<usize> {
    let settings = ends_before_settings(value);
    if settings.is_some() {
        return settings;
    }
    let space = value.iter().position(u8::is_ascii_whitespace)?;
    let mut words = value
        .get(space..)?
        .split(u8::is_ascii_whitespace)
        .filter(|word| !word.is_empty())
        .peekable();
    words.peek()?;
    words.all(is_assignment).then_some(space)
}

/// Splits a script into words, roughly as a shell would: at separators, with quoted text kept together, and without
/// the quotes around a whole word. A quote without an end is an ordinary character.
pub fn split<'a>(script: &Word<'a>) -> Vec<Word<'a>> {
    let text = script.text;
    let rest = |at: usize| text.get(at..).unwrap_or_default();
    let separates = |b: u8| b.is_ascii_whitespace() || b";|&()`".contains(&b);
    let mut words = Vec::new();
    let (mut at, mut first) = (0, true);
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
        if word == b"#" {
            // The rest of the line is a comment, which is skipped.
            at += rest(at)
                .iter()
                .position(|b| *b == b'\n')
                .unwrap_or(text.len());
        } else if !word.is_empty() {
            let bare = match word {
                [b'"', inner @ .., b'"'] | [b'\'', inner @ .., b'\''] => inner,
                _ => word,
            };
            words.push(Word {
                arg: script.arg,
                at: script.at + start + usize::from(bare.len() != word.len()),
                text: bare,
                first,
            });
            first = false;
        }
        first |= text.get(at).is_some_and(|b| b"\n;|&()`".contains(b));
        at += 1;
    }
    words
}

#[cfg(test)]
#[path = "tests/words.rs"]
mod tests;
