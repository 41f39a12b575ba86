//! Recognizes names of options and settings whose values are secrets: `DB_PASSWORD`, `clientSecret`.

/// Words that make a name stand for a secret if the name's last word ends with one of them or with its plural:
/// `DB_PASSWORD`. In a name without small letters, this holds for every word.
#[rustfmt::skip]
const SECRET_ENDINGS: [&str; 24] = [
    "psk", "mnemonic", "password", "passwd", "passphrase", "passcode", "secret", "credential", "passwrd", "pswd",
    "passphr", "pword",
    // The following words mean "password" in other languages.
    "passwort", "kennwort", "motdepasse", "contrasena", "senha", "wachtwoord", "haslo", "passord",
    "losenord", "salasana", "jelszo", "heslo",
];

/// Words that make a name stand for a secret if one of them is the name's last word: `requirepass`. In a name without
/// small letters, this holds for every word.
#[rustfmt::skip]
const SECRET_WORDS: [&str; 12] = [
    "requirepass", "masterauth", "passkey",
    "passin", "passout", "storepass", "keypass", "srcstorepass", "deststorepass", "creds", "bearer",
    "authorization",
];

/// Words that mean that a name may stand for a secret if they are the name's last word: `db_cred`.
#[rustfmt::skip]
const SECRET_LAST: [&str; 11] = [
    "cred", "pat", "puk", "jwt", "passw", "userpin", "hmac", "pass", "auth", "otp", "pw",
];

/// Letters that form a harmless word with the `pass` that follows them, so that the name does not stand for a secret:
/// `bypass`, `lowpass`.
#[rustfmt::skip]
const NO_OWNERS: [&str; 27] = [
    "by", "com", "encom", "tres", "sur", "over", "under", "low", "high", "band", "all", "multi", "one", "single", "two",
    "first", "second", "last", "per", "sub", "no", "xfail", "render", "geo", "is", "en", "ask",
];

/// The short forms of the word "password" in names of options and settings.
const SHORT_FORMS: [&str; 4] = ["pass", "pwd", "pw", "passw"];

/// Words that, before `key` at the end of a name, make the name stand for a secret: `api_key`, `apikey`.
#[rustfmt::skip]
const SECRET_KEY: [&str; 49] = [
    "api", "access", "private", "priv", "secret", "signing", "encryption", "deploy", "account", "master",
    "shared", "preshared", "auth", "app", "license", "licence", "subscription", "client", "service",
    "admin", "jwt", "hmac", "session", "write", "storage", "activation", "setup", "registration", "publish",
    "decryption", "wandb", "openai", "anthropic", "datadog", "sendgrid", "mailgun", "rollbar", "bugsnag", "algolia",
    "stripe", "honeycomb", "crypto", "crypt", "join", "agent", "ingest", "cookie", "integration", "webhook",
];

/// Words that, before `code` at the end of a name, make the name stand for a secret: `mfa_code`.
const CODES: [&str; 6] = ["mfa", "otp", "totp", "verification", "pin", "2fa"];

/// Words that, before `key` or `token` in a name, show that the name stands for no secret: `cache_key`.
#[rustfmt::skip]
const HARMLESS_KIND: [&str; 28] = [
    "public", "pub", "cache", "sort", "primary", "foreign", "partition", "object", "row", "map",
    "group", "routing", "idempotency", "hot", "meta", "page", "next", "continuation", "eos", "bos",
    "pad", "unk", "sep", "mask", "cls", "stop", "websocket", "surrogate",
];

/// Words that, before `pass` in a name, mean the pass of a compiler, an encoder or a renderer and no password.
#[rustfmt::skip]
const HARMLESS_PASS: [&str; 10] = [
    "debug", "render", "first", "second", "multi", "two", "single", "opt", "dump", "lto",
];

/// Words at the end of a secret's name that only say which secret it is (`prod`, `old`) or how it is encoded (`pem`,
/// `hex`). These words are ignored.
#[rustfmt::skip]
const WHICH_WORDS: [&str; 24] = [
    "prod", "production", "dev", "development", "staging", "stage", "test", "testing", "live", "ci",
    "local", "pem", "base", "raw", "hex", "value", "text", "string", "plain", "new", "old",
    "current", "primary", "secondary",
];

/// Last words of a name, such as `file`, that make it stand for the place or a property of a
/// secret, and not for the secret.
#[rustfmt::skip]
const HARMLESS_LAST: [&str; 117] = [
    "dropout", "weights", "embedding", "loss", "map", "ids", "level", "per", "hash", "refs",
    "encoding", "bits", "char", "chars", "symbols", "stringize", "paste", "dim", "lookup",

    "file", "files", "path", "dir", "stdin", "fd", "env", "id", "name", "names", "type", "length",
    "len", "format", "url", "uri", "expiry", "expires", "expiration", "ttl", "age", "lifetime",
    "timeout", "store", "max", "min", "count", "size", "limit", "prefix", "policy", "manager",
    "provider", "prompt", "prompts", "helper", "authentication", "regex", "pattern", "header",
    "endpoint", "issuer", "audience", "algorithm", "version", "enabled", "disabled", "required",
    "hint", "strength", "rotation", "reset", "index", "position", "kind", "class", "separator",
    "budget", "usage", "rate", "bucket", "scope", "scopes", "mode", "service", "ref", "backend",
    "method", "arn", "region", "group", "user", "username", "list", "host", "port", "command",
    "script", "src", "tests", "field", "column", "alias", "encoder", "identity",
    "storage", "driver", "engine", "library", "plugin", "adapter",
    "hasher", "hashers", "hashing", "rounds", "iterations", "validator", "validators",
];

/// First words of names of options that take no secret. Either the option is a switch (`--with-password`), or its value
/// is only the name of a secret (`--delete-secret NAME`).
#[rustfmt::skip]
const SWITCH_WORDS: [&str; 33] = [
    "load", "stdin", "insecure", "unmask", "full", "only", "try", "connect", "reveal",
    "export", "list", "delete", "edit", "unset",
    "no", "without", "with", "enable", "disable", "ask", "use", "allow", "has", "have", "print",
    "show", "require", "skip", "get", "existing", "generate", "hide", "check",
];

/// Words that exclude a name that ends with `key` from the names that [`is_key`] recognizes. Most are actions of gpg
/// (`import-key`); others say what the key belongs to (`host-key`).
#[rustfmt::skip]
const KEY_OF: [&str; 22] = [
    "install", "import", "export", "delete", "receive", "search", "refresh", "fetch", "edit", "list",
    "default", "signing", "sign", "lsign", "recv", "host", "gpg", "local", "trusted", "user", "signingkey", "kms",
];

/// How certain it is that the name of an option or a setting stands for a secret.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Certainty {
    No,
    /// The name of the option or setting may stand for a secret, because it contains a word that
    /// also has other meanings: `pass`, `auth`, `KEY`.
    Weak,
    /// The name of the option or setting certainly stands for a secret: `password`, `token`, `api_key`.
    Strong,
}

/// The largest length in bytes of a name of an option or a setting that is examined. Programs have no longer names.
const LONGEST_NAME: usize = 256;

/// Splits the name of an option or a setting into its words, in lower case and without digits at
/// their ends: `trustStorePassword2` has three words.
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
    for part in &mut parts {
        let kept = part.trim_end_matches(|c: char| c.is_ascii_digit()).len();
        part.truncate(kept);
    }
    parts.retain(|part| !part.is_empty());
    parts
}

/// The last words of the name of an option or a setting. Only the name's last [`LONGEST_NAME`] bytes are examined.
fn last_parts(name: &[u8]) -> Vec<String> {
    let from = name.len().saturating_sub(LONGEST_NAME);
    parts(name.get(from..).unwrap_or_default())
}

fn is(list: &[&str], part: &str) -> bool {
    list.contains(&part)
}

/// How certain it is that an option or a setting with this name has a secret as its value.
pub fn secret(name: &[u8]) -> Certainty {
    if name.len() > LONGEST_NAME || name == b"PWD" || name == b"OLDPWD" {
        return Certainty::No;
    }
    if name.ends_with(b"npmAuthIdent") {
        return Certainty::Strong;
    }
    // Hadoop's setting for the key of a storage account does not end with `key`: the host of the account follows.
    if name.windows(20).any(|part| part == b"fs.azure.account.key") {
        return Certainty::Strong;
    }
    // The option `--client-key` takes the name of a file with the key of a TLS certificate. A file name is no secret.
    // If the value looks like the key itself, `is_key` recognizes it.
    if name.starts_with(b"-") && name.ends_with(b"client-key") {
        return Certainty::No;
    }
    // The options of QEMU with these names take the name of an object that has the secret.
    if name.ends_with(b"key-secret") || name.ends_with(b"password-secret") {
        return Certainty::No;
    }
    // The option of a development server with this name takes the token itself, and not its identifier.
    if name.to_ascii_lowercase().ends_with(b"root_token_id") {
        return Certainty::Strong;
    }
    // The `secret_id` of Vault's AppRole is a secret. In AWS `secret-id`, with a hyphen, is only a name.
    if name.to_ascii_lowercase().ends_with(b"secret_id") {
        return Certainty::Strong;
    }
    let mut parts = parts(name);
    // The value in a list of secrets is a secret: `secret-environment-variables.0.value`.
    let content = parts
        .last()
        .is_some_and(|last| last == "value" || last == "data");
    if content
        && parts
            .iter()
            .any(|part| part == "secret" || part == "secrets")
    {
        return Certainty::Strong;
    }
    while parts.len() > 1 && parts.last().is_some_and(|last| is(&WHICH_WORDS, last)) {
        parts.pop();
    }
    let Some((last, before)) = parts.split_last() else {
        return Certainty::No;
    };
    if is_about(&parts, last, before) {
        return Certainty::No;
    }
    let root = |part: &String| {
        let one = part.strip_suffix('s').unwrap_or(part);
        let ends = |root: &&str| part.ends_with(root) || one.ends_with(root);
        SECRET_ENDINGS.iter().any(ends) || is(&SECRET_WORDS, part)
    };
    let kind = before.iter().any(|part| is(&HARMLESS_KIND, part));
    let is_token = |part: &String| part.ends_with("token");
    let env_style = !name.iter().any(u8::is_ascii_lowercase);
    let joined_key = last.strip_suffix("key").filter(|kind| !kind.is_empty());
    let key = if last == "key" {
        before.last().map(String::as_str)
    } else {
        joined_key
    };
    let of_secret = |key: &str| is(&SECRET_KEY, key);
    // The name of a key may say at its end what the key is for: `API_KEY_X`.
    let inner = || {
        let mut pairs = parts.iter().zip(parts.iter().skip(1));
        env_style && pairs.any(|(kind, key)| key == "key" && of_secret(kind))
    };
    // `NPM_TOKEN_X` stands for a token. But a name whose first word is `token`, such as `TOKEN_RING`, may stand for
    // something else.
    let tokens = if env_style && parts.len() > 1 {
        parts.get(1..).unwrap_or_default()
    } else {
        std::slice::from_ref(last)
    };
    if root(last) || env_style && before.iter().any(root) || !kind && tokens.iter().any(is_token) {
        Certainty::Strong
    } else if kind && (is_token(last) || last.ends_with("key")) {
        Certainty::No
    } else if key.is_some_and(of_secret) || inner() {
        Certainty::Strong
    } else if last == "pass" && before.iter().any(|part| is(&HARMLESS_PASS, part))
        // make passes the option `--jobserver-auth` to each make that it runs, and its value is no secret.
        || last == "auth" && before.last().is_some_and(|part| part == "jobserver")
    {
        Certainty::No
    } else if last == "code" && before.last().is_some_and(|kind| is(&CODES, kind)) {
        Certainty::Strong
    } else if is(&SECRET_LAST, last)
        || last == "pwd"
        || is_owned(last)
        || name == b"--pin"
        || last == "key" && env_style
        || name.ends_with(b"sonar.login")
    {
        Certainty::Weak
    } else {
        Certainty::No
    }
}

/// Whether a word of a name means the password of something: `dbpass`, `remotepass`.
fn is_owned(word: &str) -> bool {
    let owner = SHORT_FORMS
        .iter()
        .find_map(|short| word.strip_suffix(short));
    owner.is_some_and(|owner| owner.len() >= 2 && !is(&NO_OWNERS, owner))
}

/// Whether a name is only about a secret and does not stand for the secret, although the name contains a word such as
/// `password`.
fn is_about(parts: &[String], last: &String, before: &[String]) -> bool {
    let first = parts.first().map(String::as_str).unwrap_or_default();
    // `--with-db-password=X` sets the password, although most options that begin with `with` are switches.
    let switch = is(&SWITCH_WORDS, first) && !(parts.len() > 2 && first == "with");
    if switch || is(&HARMLESS_LAST, last) || before.iter().any(|p| p == "existing") {
        return true;
    }
    // The value of `checksum/secret` is only the checksum of a secret, and the value of `secret.passwordKey` is the
    // name of the field that contains the password.
    let field = last == "key" && before.last().is_some_and(|kind| kind.ends_with("password"));
    first == "checksum" || field
}

/// Whether an option or a setting with this name has a key of any kind, or a session, as its value. The value is a
/// secret if it looks like one.
pub fn is_key(name: &[u8]) -> bool {
    let parts = last_parts(name);
    let Some((last, before)) = parts.split_last() else {
        return false;
    };
    let harmless = |part: &String| is(&HARMLESS_KIND, part) || is(&KEY_OF, part);
    // The kind of key can be in the same word: `logkey`.
    let kind = last.strip_suffix("key").filter(|kind| kind.len() > 2);
    if kind.is_some_and(|kind| !is(&HARMLESS_KIND, kind) && !is(&KEY_OF, kind)) {
        return !before.iter().any(harmless);
    }
    (last == "key" || last == "session") && !before.is_empty() && !before.iter().any(harmless)
}

/// Whether the last word of a name is `key`, including primary and secondary keys, but not public ones.
pub fn ends_in_key(name: &[u8]) -> bool {
    let parts = last_parts(name);
    let public = |part: &String| part == "public" || part == "pub";
    parts.last().is_some_and(|last| last == "key") && !parts.iter().any(public)
}

/// Whether a name belongs to the key of a cache, a table or a request, or has only one word. The value of such a name
/// may be a digest, and is no secret.
pub fn is_of_data(name: &[u8]) -> bool {
    let parts = last_parts(name);
    let harmless = |part: &String| part != "routing" && is(&HARMLESS_KIND, part);
    parts.len() < 2 || parts.iter().any(harmless)
}

/// Whether a name ends with a word such as `mnemonic`, which means the words from which a wallet or a key is restored.
pub fn is_seed(name: &[u8]) -> bool {
    let parts = last_parts(name);
    let seed = |part: &String| matches!(part.as_str(), "seed" | "mnemonic" | "phrase" | "words");
    parts.last().is_some_and(seed)
}

/// Whether a name is only the word `key`, which has many meanings.
pub fn is_bare_key(name: &[u8]) -> bool {
    last_parts(name) == ["key"]
}

/// Whether the value of a setting, up to the first comma, has at most 20 characters and is a word in small letters or
/// a constant, and therefore no secret key: `primary`, `KEY_F1`.
pub fn is_plain(value: &[u8]) -> bool {
    let value = value.split(|b| *b == b',').next().unwrap_or_default();
    let small = |b: &u8| b.is_ascii_lowercase() || b"-_.".contains(b);
    let upper = |b: &u8| b.is_ascii_uppercase() || b.is_ascii_digit() || *b == b'_';
    value.len() <= 20 && (value.iter().all(small) || value.iter().all(upper))
}

/// Whether a parameter with this name in the query of a URL may have a secret as its value. The value counts as a
/// secret only if it looks like one.
pub fn is_vague(name: &[u8]) -> bool {
    let list: [&[u8]; 5] = [b"key", b"appid", b"app_key", b"code", b"sid"];
    list.contains(&name)
}

/// Whether the name of a parameter ends in `sig` or `signature`.
pub fn is_signature(name: &[u8]) -> bool {
    let parts = last_parts(name);
    parts.last().is_some_and(|p| p == "sig" || p == "signature")
}

#[cfg(test)]
#[path = "tests/names.rs"]
mod tests;
