//! Masks words of a recorded command line that look like a secret and stand after words that make a secret likely.

use crate::harmless::is_harmless;
use crate::looks;
use crate::masks::Masks;
use crate::names::{self, Certainty};
use crate::read::Read;
use crate::words::{self, Word};

/// Masks a word of a recorded command line, or a part of it, if it looks like a secret and the words before it make a
/// secret likely.
pub fn mask(word: &Word<'_>, read: &Read<'_>, masks: &mut Masks) {
    let text = word.text;
    let equals = text.iter().position(|b| *b == b'=').map_or(0, |at| at + 1);
    let value = text.get(equals..).unwrap_or_default();
    if is_secret(text, read) {
        masks.add(word, 0..text.len());
    }
    // An option can be joined with its secret: `-k=X`.
    let option = text.get(..equals.saturating_sub(1)).unwrap_or_default();
    if words::may_take_password(option) && looks::is_generated(value) {
        masks.add(word, equals..text.len());
    }
    let stored = matches!(option, b"key" | b"value" | b"data" | b"content")
        && looks::may_be_password(value)
        && read.stores_secret();
    if stored || read.variables && equals > 0 && looks::is_code(value) {
        masks.add(word, equals..text.len());
    }
    cookie(word, masks);
    key_derivation(word, read.previous, masks);
    object(word, masks);
    entries(word, read, masks);
    let user = words::user_and_password(read.previous, text)
        .or_else(|| {
            let at = words::user_and_password(option, value)?;
            Some(equals + at)
        })
        .or_else(|| {
            let at = words::name_and_password(read.previous, text)?;
            (!read.options.is_plain()).then_some(at)
        });
    if let Some(at) = user {
        masks.add(word, at..text.len());
    }
    // A command that prints the password can be the value of an option: `--password-command "echo X"`.
    let name = text.get(..equals).filter(|name| !name.is_empty());
    let passes = |name: &[u8]| {
        name.windows(4)
            .any(|part| part.eq_ignore_ascii_case(b"pass"))
    };
    if value.starts_with(b"echo ") && passes(name.unwrap_or(read.previous)) {
        masks.add(word, equals + 5..text.len());
    }
}

/// Whether a whole word of the command line is a secret, judged by its looks and the words before it.
fn is_secret(text: &[u8], read: &Read<'_>) -> bool {
    let previous = read.previous;
    if text.starts_with(b"-") || is_harmless(text) {
        return false;
    }
    let short = matches!(previous, [b'-', letter] if letter.is_ascii_alphabetic());
    let code = looks::is_code(text) && !read.options.counts();
    if code && (words::announces_code(previous) || words::is_key_option(previous))
        || short && looks::is_password(text)
    {
        return true;
    }
    is_announced(text, read) || is_generated(text, read) || follows_user(text, read)
}

/// Whether the words before this one announce a secret, and this word looks like one. The value of an option such as
/// `--value` in a command that stores a secret, or `--new` in one that changes a password, counts whatever it looks
/// like.
fn is_announced(text: &[u8], read: &Read<'_>) -> bool {
    let previous = read.previous;
    if words::is_content(previous) && read.stores_secret()
        || read.changes_password && words::is_old_or_new(previous)
        || text.ends_with(b"=") && looks::is_base64(text) && words::may_take_key(previous)
        || looks::is_mnemonic(text) && names::is_seed(previous)
    {
        return true;
    }
    let padded = text.ends_with(b"=") && looks::is_base64(text);
    let token = words::announces_token(previous) && !read.options.counts();
    let password = words::is_bare_name(previous) && looks::is_no_word(text);
    !read.options.is_plain()
        && (names_value(previous, text)
            || password && looks::may_be_plain_password(text)
            || token && (padded || looks::is_random(text)))
}

/// Whether a word of the command line looks like a password and follows an option that may take
/// one, or belongs to a command about passwords or accounts.
fn is_generated(text: &[u8], read: &Read<'_>) -> bool {
    let previous = read.previous;
    if words::is_parameter(text) {
        return false;
    }
    // The option may take a password, and the table of programs does not list its value as harmless. So the value may
    // be a password: `-p X`, `-T X`.
    let option = words::may_take_password(previous) && !read.options.takes_name(previous);
    let simple = previous == b"-p" && !read.options.is_plain() && looks::is_simple_password(text);
    option && (simple || looks::is_common_password(text) || looks::is_generated(text))
        || read.changes_password && looks::is_scrambled(text)
        || read.follows_name()
            && (looks::is_careful(text)
                || looks::is_mixed_word(text)
                || looks::is_leet(text)
                || read.changes_password && looks::may_be_password(text))
}

/// Whether a word of the command line is the password that follows a user's name or a port: `X` of
/// `-u USER -p X` or `-P 25575 -p X`.
fn follows_user(text: &[u8], read: &Read<'_>) -> bool {
    let previous = read.previous;
    let takes = !words::is_parameter(text)
        && matches!(
            previous,
            b"-p" | b"-P" | b"-pw" | b"-pass" | b"/p" | b"-a" | b"-A" | b"-k" | b"-K"
        );
    if !takes || read.options.is_plain() || read.options.knows(previous) {
        return false;
    }
    let says = || looks::says_password(text);
    let plain = || looks::may_be_plain_password(text);
    let likely = || {
        looks::may_be_password(text)
            || looks::is_password(text)
            || looks::is_common_password(text)
            || looks::changes_case(text) && plain()
    };
    let other_port = read.has_other_port(previous);
    let account = previous == b"-p" && read.has_account();
    if (other_port || account) && likely() || other_port && previous == b"-P" && says() {
        return true;
    }
    read.user
        && match previous {
            b"-a" | b"-A" | b"-k" | b"-K" => looks::is_code(text) || looks::is_careful(text),
            _ => looks::may_be_password(text) || says() || read.signs_in && plain(),
        }
}

/// Whether the name of a setting has several parts, as in `DB_PASSWORD=X` or `vnc_password=X`, and
/// its value looks like a password.
fn names_value(name: &[u8], value: &[u8]) -> bool {
    let parts = name.contains(&b'_') || looks::changes_case(name);
    parts
        && (looks::is_careful(value) || looks::is_code(value) || looks::is_password(value))
        && words::sets_secret(name)
        && names::secret(value) == Certainty::No
}

/// Masks the value `X` of a cookie on a command line: `--cookie=NAME=X`.
fn cookie(word: &Word<'_>, masks: &mut Masks) {
    let Some(cookie) = word.text.strip_prefix(b"--cookie=") else {
        return;
    };
    let Some(equals) = cookie.iter().position(|b| *b == b'=') else {
        return;
    };
    if !is_harmless(cookie.get(equals + 1..).unwrap_or_default()) {
        masks.add(
            word,
            word.text.len() - cookie.len() + equals + 1..word.text.len(),
        );
    }
}

/// Masks the secret `X` in OpenSSL's option `-kdfopt secret:X` on a command line. The value of the option can also be a
/// digest or a salt, which is kept.
fn key_derivation(word: &Word<'_>, previous: &[u8], masks: &mut Masks) {
    if previous != b"-kdfopt" {
        return;
    }
    let name = word.text.split(|b| *b == b':').next().unwrap_or_default();
    let kind = name.strip_prefix(b"hex").unwrap_or(name);
    if matches!(kind, b"pass" | b"secret" | b"key") && name.len() < word.text.len() {
        masks.add(word, name.len() + 1..word.text.len());
    }
}

/// Masks the secret `X` in QEMU's option `-object secret,id=x,data=X` on a command line.
fn object(word: &Word<'_>, masks: &mut Masks) {
    if !word.text.starts_with(b"secret,") {
        return;
    }
    let mut at = 0;
    for part in word.text.split(|b| *b == b',') {
        let data = part.strip_prefix(b"data=");
        if let Some(data) = data.filter(|data| !is_harmless(data)) {
            masks.add(word, at + part.len() - data.len()..at + part.len());
        }
        at += part.len() + 1;
    }
}

/// Masks the secret `X` of a Helm setting, `--set env[0].name=API_TOKEN --set env[0].value=X`, also
/// if both settings stand in one word.
fn entries(word: &Word<'_>, read: &Read<'_>, masks: &mut Masks) {
    if !word.text.contains(&b']') {
        return;
    }
    let mut at = 0;
    for part in word.text.split(|b| *b == b',') {
        let from = part.iter().position(|b| *b == b'=').map_or(0, |at| at + 1);
        let (name, value) = part.split_at(from);
        let entry = name.ends_with(b"].value=") && (read.entry || looks::is_code(value));
        if entry && !is_harmless(value) {
            masks.add(word, at + from..at + part.len());
        }
        at += part.len() + 1;
    }
}
