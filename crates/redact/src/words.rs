//! Command lines as words: options and assignments with the name of a secret, the words of a script. Each
//! function takes time linear in its input.

use std::ops::Range;

use crate::harmless::is_harmless;
use crate::looks;
use crate::names::{self, Sure};

/// A part of an argument that is read as a word.
#[derive(Clone, Copy, Debug)]
pub struct Word<'a> {
    /// The index of the argument that has the word.
    pub arg: usize,
    /// The position of the word in its argument, in bytes.
    pub at: usize,
    pub text: &'a [u8],
    /// Whether the word is the first one of a command.
    pub first: bool,
}

/// How a word is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum How {
    /// The word is read as an argument.
    Value,
    /// The word is read as a script, whose own words are read one by one.
    Script,
    /// The word is read as text that a program prints, in which a word is just a word.
    Printed,
}

impl How {
    /// Whether a value that no rule calls harmless is a secret, if the word is read in this way.
    pub fn is_secret(self, value: &[u8]) -> bool {
        self != How::Printed || looks::is_no_word(value)
    }
}

/// Whether the word is an assignment as before a command: `NAME=value`.
pub fn is_assignment(word: &[u8]) -> bool {
    let name = word.split(|b| *b == b'=').next().unwrap_or_default();
    let in_name = |b: &u8| b.is_ascii_alphanumeric() || *b == b'_';
    name.len() < word.len() && !name.is_empty() && name.iter().all(in_name)
}

/// Whether the word is a name in capitals and a plain word, as `-p` of Jenkins and `-P` of others take it: `ENV=prod`.
pub fn is_parameter(word: &[u8]) -> bool {
    let Some(equals) = word.iter().position(|b| *b == b'=') else {
        return false;
    };
    let (name, value) = (word.get(..equals), word.get(equals + 1..));
    let in_name = |b: &u8| b.is_ascii_uppercase() || *b == b'_';
    name.is_some_and(|name| name.len() > 2 && name.iter().all(in_name))
        && value.is_some_and(names::is_plain)
}

/// Whether the word is an option (`--x` or `-x`), and not a value that begins with a dash.
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

/// Whether the word is an option (`--password`) whose value is a secret and is the next word.
pub fn names_secret(word: &[u8]) -> bool {
    // `+rcon_password` of a game server, `++password` of xxh.
    if let Some(name) = word.strip_prefix(b"+") {
        let double = name.strip_prefix(b"+");
        return (double.is_some() || name.contains(&b'_')) && sets_secret(double.unwrap_or(name));
    }
    let Some(name) = word.strip_prefix(b"-") else {
        return false;
    };
    // A linker's library; a directory of a compiler.
    if name.starts_with(b"l") || name.contains(&b'/') {
        return false;
    }
    let name = name.strip_prefix(b"-").unwrap_or(name);
    let plain = !name.iter().any(|b| b"=: ".contains(b));
    plain && name.len() > 2 && (name == b"pin" || names::secret(name) > Sure::No)
}

/// Whether the option often has a password or a code: `-p`, `-T`, `--key`.
pub fn may_take_password(option: &[u8]) -> bool {
    match option {
        [b'-', letter] => b"pPwWkKxsatT".contains(letter),
        _ => matches!(option, b"-pw" | b"-pas" | b"--pw" | b"--pass" | b"--key"),
    }
}

/// Whether the word is a command that is about passwords: `change-password`, `user:password:reset`.
pub fn changes_password(word: &[u8]) -> bool {
    const ROOTS: [&[u8]; 3] = [b"password", b"passwd", b"passphrase"];
    let plain = |b: &u8| b.is_ascii_alphanumeric() || b"-_:./".contains(b);
    let is = |root: &&[u8]| {
        let mut parts = word.windows(root.len());
        parts.any(|part| part.eq_ignore_ascii_case(root))
    };
    word.len() <= 64 && !word.starts_with(b"-") && word.iter().all(plain) && ROOTS.iter().any(is)
}

/// Whether the word is an option for a key of any kind: `--worker-key`. The key is a secret if it looks like one.
pub fn is_key_option(word: &[u8]) -> bool {
    word.starts_with(b"-") && names::is_key(word)
}

/// Whether the word is an option for a key whose name also has another use, such as `--primary-key`. The key
/// is a secret if it is Base64.
pub fn may_take_key(word: &[u8]) -> bool {
    word.starts_with(b"--") && names::ends_in_key(word)
}

/// Whether the word is a name that configurations have for a secret. The secret is the next word.
pub fn sets_secret(word: &[u8]) -> bool {
    let in_name = |b: &u8| b.is_ascii_alphanumeric() || b"_.-:/@".contains(b);
    let vague = word == b"secret"
        || word == b"secrets"
        || word.to_ascii_lowercase().ends_with(b"user.signingkey");
    !vague
        && !word.starts_with(b"-")
        && word.iter().all(in_name)
        && names::secret(word) == Sure::Strong
}

/// Whether the word after this one is text for people: a commit message, a title.
pub fn announces_prose(word: &[u8]) -> bool {
    #[rustfmt::skip]
    const OPTIONS: [&[u8]; 16] = [
        b"-run", b"--run", b"--filter", b"--tests", b"--test_filter", b"--testNamePattern",
        b"--test-name-pattern", b"--grep", b"-m", b"-am", b"--message", b"--title", b"--body",
        b"--subject", b"--notes", b"--description",
    ];
    OPTIONS.contains(&word)
}

/// Whether a name and its value may be the words after this one.
pub fn is_setter(word: &[u8]) -> bool {
    #[rustfmt::skip]
    const SETTERS: [&[u8]; 13] = [
        b"set", b"/set", b"config", b"configure", b"put", b"write", b"env:set", b"config:set",
        b"secrets:set", b"setenv", b"set-env", b"env-set", b"store-secret",
    ];
    SETTERS.contains(&word)
}

/// Whether the word is about secrets and stores one (`create-secret`), by itself or with the word before it
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

/// Whether the option, after a command that stores a secret, takes the content of the secret.
pub fn is_content(option: &[u8]) -> bool {
    #[rustfmt::skip]
    const OPTIONS: [&[u8]; 14] = [
        b"--value", b"-value", b"-v", b"--data", b"-data", b"--body", b"--plaintext", b"--payload", b"--content",
        b"--string", b"--secret-value", b"--string-value", b"--literal", b"--text",
    ];
    OPTIONS.contains(&option)
}

/// Whether the option, after a command that changes a password, takes the old or the new password.
pub fn is_old_or_new(option: &[u8]) -> bool {
    #[rustfmt::skip]
    const OPTIONS: [&[u8]; 8] = [
        b"--current", b"--old", b"--new", b"--previous", b"--confirm", b"-old", b"-new", b"--set",
    ];
    OPTIONS.contains(&option)
}

/// Whether the words after this one set variables: `X=value`.
pub fn sets_variables(word: &[u8]) -> bool {
    matches!(word, b"config:set" | b"env:set" | b"secrets:set")
}

/// Whether the word after this one may be a secret that its service has made.
pub fn announces_code(word: &[u8]) -> bool {
    #[rustfmt::skip]
    const WORDS: [&[u8]; 12] = [
        b"login", b"auth", b"authenticate", b"authtoken", b"set-token", b"add-token", b"activate",
        b"apikey", b"api-key", b"unlock", b"set-key", b"add-key",
    ];
    WORDS.contains(&word)
}

/// Whether the word after this one may be a random token: `spark register X`.
pub fn announces_token(word: &[u8]) -> bool {
    #[rustfmt::skip]
    const WORDS: [&[u8]; 12] = [
        b"token", b"register", b"encrypt", b"join", b"enroll", b"attach", b"enable", b"connect", b"license", b"claim",
        b"pair", b"redeem",
    ];
    WORDS.contains(&word)
}

/// Whether a password may follow the word: `password X` of a router's configuration, `unlock X`.
pub fn is_bare_name(word: &[u8]) -> bool {
    matches!(
        word,
        b"password" | b"passphrase" | b"psk" | b"passcode" | b"unlock"
    )
}

/// The position of the password in a user's name and password: `--user me:X`, `--add-local-user me:X`; `None`
/// for `--user 1000:1000`.
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

/// The position of a password in `NAME:X`, if it looks like a generated one after an option of one letter, or
/// if it has a mark that no tag of an image has in `DOMAIN/NAME:X` anywhere.
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

/// Whether the word is the name of a user after `-u` or another such option, or has it in itself, as `--username=me`.
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

/// Words for people or programs that sign in: `user`, `account`.
#[rustfmt::skip]
const ACCOUNTS: [&[u8]; 8] = [
    b"user", b"users", b"admin", b"admins", b"account", b"accounts", b"credential", b"credentials",
];

/// Words for making or changing an account.
#[rustfmt::skip]
const MAKES: [&[u8]; 8] = [
    b"add", b"create", b"new", b"passwd", b"password", b"update", b"set", b"save",
];

/// Whether two words make an account, such as `create user`. The account's name follows them.
pub fn makes_account(previous: &[u8], word: &[u8]) -> bool {
    MAKES.contains(&previous) && ACCOUNTS.contains(&word)
}

/// Whether the word signs in (`login`, `registry:login`, `mega-login`) or, perhaps with the word before it,
/// makes an account (`users add`, `create-user`).
pub fn is_account(previous: &[u8], word: &[u8]) -> bool {
    const ALONE: [&[u8]; 4] = [b"login", b"auth", b"signin", b"passwd"];
    let in_name = |b: &u8| b.is_ascii_alphanumeric() || b":-_".contains(b);
    if word.len() > 40 || word.starts_with(b"-") || !word.iter().all(in_name) {
        return false;
    }
    let parts = || word.split(|b| b":-_".contains(b));
    let last = parts().next_back();
    let both = || {
        parts().any(|part| ACCOUNTS.contains(&part)) && parts().any(|part| MAKES.contains(&part))
    };
    ACCOUNTS.contains(&previous) && MAKES.contains(&word)
        || last.is_some_and(|last| ALONE.contains(&last))
        || both()
}

/// The name and the value of `NAME="value with blanks"`, as a script has it.
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

/// The replacement in a command of sed, `X` of `s/PATTERN/X/`, and whether the pattern names a secret.
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
    let named = sets_secret(&name) && names::secret(by) == Sure::No && !names::is_plain(by);
    let part = Word {
        at: word.at + from + 2 + pattern.len() + 1,
        text: by,
        ..*word
    };
    is_sed.then_some((part, named && !is_harmless(by)))
}

/// Whether the word is a script, because it follows `-c` or `-ec`.
pub fn is_script(previous: &[u8], word: &[u8]) -> bool {
    let letters = previous.strip_prefix(b"-").unwrap_or_default();
    letters.last() == Some(&b'c')
        && letters.iter().all(u8::is_ascii_lowercase)
        && word.iter().any(u8::is_ascii_whitespace)
}

/// The bytes that end a value, besides white space.
const STOPS: &[u8; 6] = b"&#\"';,";

/// The next position of white space and of each byte of [`STOPS`], in a text that is read from its end to its
/// beginning.
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

    /// The position of the next white space or byte among `stops`.
    fn first(&self, stops: &[u8]) -> usize {
        let next = STOPS.iter().zip(self.next);
        let among = next.filter(|(stop, _)| stops.contains(stop));
        among.fold(self.space, |first, (_, at)| first.min(at))
    }
}

/// The places of the values of `NAME=value` with a secret's name, anywhere in a word. At the start of the
/// word the value extends to the end of the word.
pub fn assignments(text: &[u8]) -> Vec<Range<usize>> {
    let spaced = text.iter().any(u8::is_ascii_whitespace);
    let mut stops = Stops {
        space: text.len(),
        next: [text.len(); STOPS.len()],
    };
    let mut found = Vec::new();
    let mut influx = None;
    // From the end, so that the end of a value is known without a search: there may be
    // thousands of values that all extend to the end of the word.
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

/// Whether the query of an address has a user `u`, as the addresses of InfluxDB have. The password is `p` then.
fn is_influx(text: &[u8]) -> bool {
    let query = || text.windows(3).any(|part| matches!(part, b"?u=" | b"&u="));
    text.contains(&b'?') && query()
}

/// The schemes of authorization, which stand before the secret in a header.
const SCHEMES: [&[u8]; 3] = [b"Bearer ", b"Basic ", b"Token "];

/// The place of the value after the `=` at `equals`, if the name before it is a secret's.
fn assignment(text: &[u8], equals: usize, stops: &Stops, spaced: bool) -> Option<Range<usize>> {
    let in_name = |b: &u8| b.is_ascii_alphanumeric() || b"_.-:/@".contains(b);
    let (head, value) = (text.get(..equals)?, text.get(equals + 1..)?);
    // So that many assignments in one word take linear time.
    let near = value.get(..value.len().min(256))?;
    let start = equals - head.iter().rev().take_while(|b| in_name(b)).count();
    let name = head.get(start..)?;
    let before = head.get(..start)?.last().copied();
    let query = matches!(before, Some(b'?' | b'&'));
    // `-DNAME=value` of compilers, docker and gradle.
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
    // `SKYLIGHT_AUTHENTICATION`: the name of a method, too.
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
    if !(sure > Sure::No || bundler || key() || query && (names::is_signature(name) || coded())) {
        return None;
    }
    let scheme = SCHEMES.iter().find(|scheme| value.starts_with(scheme));
    let (from, end) = (
        equals + 1 + scheme.map_or(0, |scheme| scheme.len()),
        text.len(),
    );
    let range = match (before, value.first()) {
        // A comparison: the version of a package.
        (None, Some(b'=')) => return None,
        // The name of a test, and a key by a plain name.
        _ if before == Some(b'[') && text.windows(2).any(|pair| pair == b"::") => return None,
        // The name of a field of a secret.
        _ if value == b"password" && name.to_ascii_lowercase().ends_with(b"key") => return None,
        _ if names::is_bare_key(defined) && names::is_plain(near) => return None,
        _ if name != defined && value.len() <= 4 && value.iter().all(u8::is_ascii_digit) => {
            return None
        }
        // Of Bundler: a host, then its user and password.
        _ if name.starts_with(b"BUNDLE_") => match near.iter().position(|b| *b == b':') {
            Some(at) => from + at + 1..end,
            None if (looks::is_code(near) || looks::is_strong(near))
                && name.windows(2).any(|part| part == b"__") =>
            {
                from..end
            }
            None => return None,
        },
        _ if sure == Sure::Weak && near.contains(&b'@') && near.contains(&b'.') => return None,
        // Between the quotes. The search ends at the next quote of this kind, where the
        // search from that quote begins.
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
        // The stop that is noted is before the credentials of a scheme.
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

/// The length of a short value after which only settings follow: `X` of `apitoken=X,host=h`.
fn ends_before_settings(value: &[u8]) -> Option<usize> {
    let comma = value.iter().take(256).position(|b| *b == b',')?;
    let rest = value.get(comma + 1..)?;
    (rest.len() <= 256 && rest.split(|b| *b == b',').all(is_assignment)).then_some(comma)
}

/// The length of a value after which all words are assignments: `X` of Ansible's variables
/// `password=X connection=ssh`.
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

/// The words of a script, roughly as a shell would find them: between separators, with quoted text kept
/// together, and without the quotes around a whole word. A quote without an end is an ordinary character.
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
            // A comment, to the end of its line.
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
