//! Recognizes values on a command line that are no secrets, even after a name such as `password`:
//! `none`, `$TOKEN`, `./token.txt`.

/// Words that are never a secret, even as the value of an option such as `--password`.
#[rustfmt::skip]
const HARMLESS_VALUES: [&str; 110] = [
    // The following words name states, kinds and roles.
    "expired", "missing", "invalid", "valid", "revoked", "empty", "unknown", "changed", "rotated", "refreshed",
    "failed", "passed", "skipped", "skip", "error", "denied", "granted", "allowed", "forbidden", "unauthorized",
    "authenticated", "anonymous", "unused", "updated", "deleted", "created", "found", "not", "set", "value", "string",
    "bool", "boolean", "int", "integer", "number", "always", "never", "inherit", "readonly", "manual", "file", "env",
    "environment", "vault", "keyring", "keychain", "interactive", "cookie", "query",
    "y", "n", "ok", "header", "for", "to", "from", "is", "and", "with", "in", "of",
    "token", "jwt", "pam", "kerberos", "gssapi", "md5", "peer", "cert", "strict", "weak", "redacted",
    "[redacted]", "[masked]", "any", "hidden", "unset",
    "none", "no", "yes", "true", "false", "on", "off", "null", "nil", "undefined", "auto", "basic",
    "digest", "ntlm", "negotiate", "bearer", "trust", "disabled", "enabled", "required", "optional",
    "default", "prompt", "ask", "stdin", "oidc", "oauth", "ldap", "saml", "iam", "publickey", "-",
];

/// The beginnings of values that are paths or other places and therefore no secrets.
#[rustfmt::skip]
const PLACES: [&str; 14] = [
    "./", "../", "~/", "/run/", "/etc/", "/var/", "/home/", "/tmp/", "/usr/", "/opt/", "/root/",
    "/dev/", "/bin/", "/proc/",
];

/// The beginnings of values that say where a password is stored (`env:NAME`). `pass:X` is not among
/// them, because it contains the password.
#[rustfmt::skip]
const SOURCES: [&str; 25] = [
    "pass:env:", "pass:file:", "pass:stdin",
    "file:", "env:", "fd:", "stdin:", "id=", "type=", "op://", "arn:", "vault:", "projects/", "ssm:", "secretref:",
    "ref+", "azurekeyvault:", "fileb://", "file://", "sm://", "gcp:", "awssm:", "keyring:", "cmd:", "keychain:",
];

/// File-name extensions by which a value is recognized as a file and therefore as no secret.
#[rustfmt::skip]
const FILES: [&str; 43] = [
    ".js", ".ts", ".py", ".sh", ".go", ".rs", ".rb", ".java", ".html", ".md", ".csv", ".log", ".xml", ".properties",
    ".toml", ".tf", ".tfvars", ".hcl", ".enc", ".der", ".tmpl",
    ".txt", ".pem", ".json", ".key", ".yml", ".yaml", ".p12", ".pfx", ".jks", ".crt", ".cer", ".gpg", ".asc", ".snk",
    ".env", ".creds", ".cfg", ".conf", ".keystore", ".keytab", ".pub", ".ini",
];

/// File-name extensions of libraries. A password may end in `.a` or `.so` by chance. So a value with one of these
/// extensions counts as a file name only if the value is a path.
const LIBRARIES: [&str; 8] = [
    ".rlib", ".rmeta", ".so", ".dll", ".dylib", ".jar", ".a", ".o",
];

/// Whether a value on a command line is certainly no secret, because it is a switch, a small
/// number, a variable, a path or the like. The check takes bounded time.
pub fn is_harmless(value: &[u8]) -> bool {
    if value.len() > 256 {
        return false;
    }
    let Ok(text) = std::str::from_utf8(value) else {
        return false;
    };
    let text = text.trim_matches(['"', '\'']);
    let begins = |list: &[&str]| list.iter().any(|start| text.starts_with(start));
    // The value `anonymous:` is a user name without a password, so a colon at the end is ignored.
    let user = text.strip_suffix(':').unwrap_or(text);
    let word = |w: &&str| w.eq_ignore_ascii_case(user);
    text.is_empty()
        || HARMLESS_VALUES.iter().any(word)
        || text.len() <= 2 && !text.bytes().any(|b| b.is_ascii_alphabetic())
        || is_small_number(text)
        || is_duration(text)
        || is_key_id(text)
        || is_path(text.split(',').next().unwrap_or_default())
        || is_filler(text)
        || begins(&PLACES)
        || begins(&SOURCES)
        || is_file(text)
        || is_variable(text)
        || is_algorithm(text)
        || text
            .split_once(':')
            .is_some_and(|(_, rest)| is_variable(rest))
        || is_decimal(text)
        || is_build(text)
        || is_pattern(text)
        || is_placeholder(text)
}

/// Whether a value is the name of a digest, a key derivation or a signature, and therefore no
/// secret: `SHA256`, `argon2id`, `hmac-sha1`.
fn is_algorithm(text: &str) -> bool {
    const NAMES: [&str; 19] = [
        "scram", "sha", "md5", "hmac", "argon2", "bcrypt", "scrypt", "pbkdf2", "crypt", "aes",
        "des", "rsa", "ecdsa", "ed25519", "x25519", "blake2", "blake3", "rs256", "hs256",
    ];
    /// The numbers in names of digests and keys (sizes and versions). A name with other digits may be a password.
    const SIZES: [&str; 14] = [
        "", "1", "2", "3", "128", "192", "224", "256", "384", "512", "1024", "2048", "3072", "4096",
    ];
    let lower = text.to_ascii_lowercase();
    let plain = lower
        .bytes()
        .all(|b| b.is_ascii_alphanumeric() || b"-_/".contains(&b));
    // The known names of algorithms are removed. What is left of an algorithm's name can only be
    // sizes and short words.
    let mut rest = lower.as_str();
    let mut named = false;
    while let Some(name) = NAMES.iter().find(|name| rest.starts_with(**name)) {
        named = true;
        rest = rest.get(name.len()..).unwrap_or_default();
        rest = rest.trim_start_matches(['-', '_', '/']);
        let after = rest.trim_start_matches(|c: char| c.is_ascii_digit());
        let size = rest.get(..rest.len() - after.len()).unwrap_or_default();
        if !SIZES.contains(&size) {
            return false;
        }
        rest = after.trim_start_matches(['-', '_', '/']);
    }
    named
        && plain
        && lower.len() <= 24
        && matches!(rest, "" | "id" | "i" | "b" | "s" | "gcm" | "cbc" | "ctr")
}

/// Whether a value is a path, such as `/src/token` or `path/to/key`, and not Base64, in which
/// capital and small letters are mixed.
fn is_path(text: &str) -> bool {
    let plain = |b: u8| b.is_ascii_lowercase() || b"/._-".contains(&b);
    let begins = |part: &str| part.len() > 1 && part.starts_with(|c: char| c.is_ascii_lowercase());
    let relative = text.split('/').count() > 2 && text.split('/').all(begins);
    text.len() > 3 && (text.starts_with('/') || relative) && text.bytes().all(plain)
}

/// Whether a value is the identifier of an access key, which is no secret without the key itself:
/// `AKIA…` of AWS, also at the beginning of a credential scope.
fn is_key_id(text: &str) -> bool {
    const PREFIXES: [&str; 5] = ["AKIA", "ASIA", "AKLT", "AKID", "JDC_"];
    let id = PREFIXES.iter().find_map(|prefix| text.strip_prefix(prefix));
    id.is_some_and(|id| {
        let after = id.trim_start_matches(|c: char| c.is_ascii_alphanumeric());
        let scope = after.starts_with('/') || after.starts_with("%2F");
        id.len() - after.len() >= 16 && (after.is_empty() || scope)
    })
}

/// Whether a value is a duration and therefore no secret: `90s`, `2h`, `500ms`.
fn is_duration(text: &str) -> bool {
    let unit = text.trim_start_matches(|c: char| c.is_ascii_digit());
    let digits = text.len() - unit.len();
    (1..=3).contains(&digits) && matches!(unit, "ms" | "s" | "m" | "h" | "d")
}

/// Whether a value is a small negative number, such as `-1`, and therefore no secret.
fn is_small_number(text: &str) -> bool {
    let digits = text.strip_prefix('-').unwrap_or_default();
    matches!(digits.len(), 1 | 2) && digits.bytes().all(|b| b.is_ascii_digit())
}

/// Whether a value is a filler that stands in place of a secret: `xxxx`, `****`, `....`.
fn is_filler(text: &str) -> bool {
    let first = text.bytes().next().unwrap_or_default();
    text.len() >= 3 && b"xX*.-_#?".contains(&first) && text.bytes().all(|b| b == first)
}

/// Whether a value is a number with a point or an exponent (`0.1`, `1e-4`), or a hexadecimal number of at most eight
/// digits (`0x1f`), and therefore no secret.
fn is_decimal(text: &str) -> bool {
    let number = |b: u8| b.is_ascii_digit() || b".-+e".contains(&b);
    let hex = text.strip_prefix("0x");
    if hex.is_some_and(|digits| digits.len() <= 8 && digits.bytes().all(|b| b.is_ascii_hexdigit()))
    {
        return true;
    }
    text.starts_with(|c: char| c.is_ascii_digit())
        && text.contains(['.', 'e'])
        && text.bytes().all(number)
}

/// Whether a value is the version and the build of a conda package, and therefore no secret: `0.18.8=h3dbb7c6_0`.
fn is_build(text: &str) -> bool {
    let Some((version, build)) = text.split_once('=') else {
        return false;
    };
    let in_version = |b: u8| b.is_ascii_digit() || b == b'.';
    let in_build = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b"_.-".contains(&b);
    version.starts_with(|c: char| c.is_ascii_digit())
        && version.contains('.')
        && version.bytes().all(in_version)
        && build.bytes().all(in_build)
}

/// Whether a value is a file name or the path of a library, and therefore no secret:
/// `/build/libjsonwebtoken-c4c7.rlib`.
fn is_file(text: &str) -> bool {
    let ends = |list: &[&str]| list.iter().any(|end| text.ends_with(end));
    !text.contains(' ') && (ends(&FILES) || text.contains('/') && ends(&LIBRARIES))
}

/// Whether a value is part of a regular expression or of an awk program, and therefore no secret.
fn is_pattern(text: &str) -> bool {
    let parts = [
        ".*", ".+", "[^", "\\w", "\\s", "\\d", "\\S", "\\(", "[a-z", "[A-Z", "(.", "/ {", "\\1",
        ")?",
    ];
    // The text can begin with the end of an address in sed or of a condition in awk.
    let end = text.starts_with("/{")
        || text.starts_with("/ ")
        || text.starts_with('/') && text.len() <= 3
        || text.starts_with(['(', ')', '}']);
    end || parts.iter().any(|part| text.contains(part))
}

/// Whether a value is a placeholder as in a synopsis (`PASSWORD`, `YOUR_TOKEN`) or of the tool
/// patator (`FILE0`), and therefore no secret.
fn is_placeholder(text: &str) -> bool {
    if text
        .strip_prefix("FILE")
        .is_some_and(|n| n.len() == 1 && n.bytes().all(|b| b.is_ascii_digit()))
    {
        return true;
    }
    let upper = text.bytes().all(|b| b.is_ascii_uppercase() || b == b'_');
    let plain = !text.contains('_')
        || ["YOUR_", "MY_", "THE_"]
            .iter()
            .any(|start| text.starts_with(start));
    upper && plain && text.len() >= 3 && {
        let words = [
            "PASS",
            "TOKEN",
            "SECRET",
            "KEY",
            "VALUE",
            "PWD",
            "CREDENTIAL",
        ];
        words.iter().any(|word| text.contains(word))
    }
}

/// Whether a value stands for another value that is not on the command line, and is therefore no secret: `$NAME`,
/// `${NAME:-…}`, `$(command)`, `{{ name }}`, `%s`, `<name>`.
fn is_variable(text: &str) -> bool {
    let all = |name: &str, is: fn(&u8) -> bool| name.bytes().all(|b| b == b'_' || is(&b));
    let enclosed = |open: &str, close: &str| text.starts_with(open) && text.ends_with(close);
    let upper = |b: &u8| b.is_ascii_uppercase() || b.is_ascii_digit();
    match text.strip_prefix('$') {
        Some(name) => {
            name.starts_with(['(', '{', '@', '*'])
                || all(name, upper)
                || all(name, u8::is_ascii_alphabetic)
                || name.starts_with("env:")
        }
        None => {
            text == "%s"
                || text.starts_with('`')
                || text.starts_with("***")
                || enclosed("{{", "}}")
                || enclosed("<", ">")
                    && !(text.contains('@') && text.bytes().any(|b| b.is_ascii_digit()))
                || enclosed("[", "]")
                || enclosed("%", "%")
                || enclosed("@", "@")
                || enclosed("__", "__")
                || text
                    .strip_prefix('@')
                    .is_some_and(|name| name.contains(['/', '.']))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_variable_or_a_place_is_no_secret() {
        for value in [
            "",
            "none",
            "5",
            "2h",
            "AKIA0123456789ABCDEF",
            "/k/smb,uid=1000",
            "$TOKEN",
            "${X:-}",
            "$(cat",
            "./t",
            "/run/t",
            "file:x",
            "%s",
        ] {
            assert!(is_harmless(value.as_bytes()), "{value}");
        }
        for value in [
            "hunter2", "123", "$ecret1", "/x+y==", "nono", "pass:x", "2hours",
        ] {
            assert!(!is_harmless(value.as_bytes()), "{value}");
        }
    }
}
