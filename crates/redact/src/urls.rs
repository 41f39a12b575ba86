//! Finds secrets in URLs: a password, a token in place of the user, and the secret part of a webhook's path.

use std::ops::Range;
use std::sync::LazyLock;

use regex::bytes::{Captures, Regex};

use crate::harmless::is_harmless;
use crate::looks;
use crate::masks::MASK;
use crate::matching::{compiled, first_group};
use crate::names::{self, Certainty};

/// Matches a URL with a password (`scheme://user:password@host`), even with characters that should
/// have been encoded, or a URL with only a token in place of the user.
static URL: LazyLock<Regex> = LazyLock::new(|| {
    compiled(concat!(
        r#"(?-u)://[^\s/?#:@"']*:([^\s"'/?#]+)@|://[^\s/?#:@"']*:([^\s"'@]+)@"#,
        r"|https?://([A-Za-z0-9_~=+-]{16,})@|:pserver:[^\s:@]*:([^\s@]+)@",
        // The first of the next two patterns is for addresses without a scheme. The second one is for addresses of
        // Oracle databases.
        r"|^[\w.-]+:([^\s:@/]+)@(?:(?:tcp|unix)\(|(?:[A-Za-z][\w.-]*|[0-9]+(?:\.[0-9]+){3})(?::[0-9]+)?(?::?/[\w./-]*)?$)",
        r"|:thin:[^\s/:]+/([^\s@]+)@",
        // The secret is the token in the address of a service for notifications: `discord://X@ID`.
        r"|[a-z0-9]://([A-Za-z0-9_-]{40,})@",
    ))
});

/// Matches a URL that is cut off inside its password, because the recorded command line is incomplete.
static CUT: LazyLock<Regex> =
    LazyLock::new(|| compiled(r#"(?-u)://[^\s/?#:@"']*:([^\s"'@/?#]+)$"#));

/// Matches a URL and yields its path and its query, to search them for the secrets of webhooks.
static PATH: LazyLock<Regex> =
    LazyLock::new(|| compiled(r#"(?i-u)https?://[^\s/?#"'<>]+(/[^\s?#"'<>]+)(\?[^\s#"'<>]+)?"#));

/// The longest path and the longest query of a URL, in bytes, that are examined for the secret of a webhook.
const LONGEST_PATH: usize = 512;

/// The byte ranges of the passwords and tokens that stand before the hosts of URLs in a text.
pub fn credentials(text: &[u8]) -> impl Iterator<Item = Range<usize>> + '_ {
    let found = URL.captures_iter(text);
    found.filter_map(|found| of_url(&found))
}

/// Whether a word of a command line may be an address with a password and without a scheme,
/// `user:X@host/path`, where the host has a domain, a port or a path. The check takes bounded time.
pub fn may_have_password(word: &[u8]) -> bool {
    let word = word.get(..word.len().min(256)).unwrap_or_default();
    let mut parts = word.splitn(2, |b| *b == b'@');
    let user = parts.next().unwrap_or_default();
    let Some(host) = parts.next() else {
        return false;
    };
    let password = user.splitn(2, |b| *b == b':').nth(1);
    password.is_some_and(looks::is_no_word) && host.iter().any(|b| b".:/".contains(b))
}

/// The byte range of the password of a URL that is cut off at the end of a text.
pub fn cut(text: &[u8]) -> Option<Range<usize>> {
    let found = CUT.captures(text)?;
    Some(found.get(1)?.range())
}

fn of_url(found: &Captures<'_>) -> Option<Range<usize>> {
    let secret = first_group(found, 1..8)?;
    let text = secret.as_bytes();
    if found.get(2).is_some() {
        // In `http://host:80/a@b`, a port and a path stand before the `@`, and no password.
        let digits = text.iter().take_while(|b| b.is_ascii_digit()).count();
        if text.get(digits).is_some_and(|b| b"/?#".contains(b)) {
            return None;
        }
    }
    let mixed = text.iter().any(u8::is_ascii_digit) && text.iter().any(u8::is_ascii_alphabetic);
    let alone = found.get(3).is_some() || found.get(7).is_some();
    if alone && !mixed {
        return None;
    }
    (!is_harmless(text)).then(|| secret.range())
}

/// The byte ranges of the secrets in the URLs of webhooks in a text. Anybody who knows the URL of a
/// webhook may call it.
pub fn hooks(text: &[u8]) -> impl Iterator<Item = Range<usize>> + '_ {
    PATH.captures_iter(text).filter_map(|found| {
        let path = found.get(1)?;
        if path.len() > LONGEST_PATH {
            return None;
        }
        let query = found.get(2).filter(|query| query.len() <= LONGEST_PATH);
        let query = query.and_then(|query| {
            let (part, secret) = of_query(path.as_bytes(), query.as_bytes())?;
            Some((query.start() + part.start..query.start() + part.end, secret))
        });
        match query {
            Some((part, secret)) => secret.then_some(part),
            None => {
                let part = of_path(path.as_bytes())?;
                Some(path.start() + part.start..path.start() + part.end)
            }
        }
    })
}

/// The byte range of the last segment of a URL's path such as `/hooks/…/X`, `/deploy/ID/X` or
/// `/key/X`, if it looks like a secret.
fn of_path(path: &[u8]) -> Option<Range<usize>> {
    let path = path.strip_suffix(b"/").unwrap_or(path);
    let from = path.iter().rposition(|b| *b == b'/')? + 1;
    let (before, last) = path.split_at(from);
    let place = Place::of(before);
    let secret = match place {
        Place::Hook => looks::is_code(last) || looks::is_careful(last),
        Place::Deploy => looks::is_careful(last),
        Place::Other => false,
    };
    (secret && !last.contains(&b'.') && !is_harmless(last)).then_some(from..path.len())
}

/// The byte range of `X` in the query `?key=X` of a URL, and whether X is a secret. `None` if the query has no such
/// parameter, or if the URL is not that of a webhook or a deployment.
fn of_query(path: &[u8], query: &[u8]) -> Option<(Range<usize>, bool)> {
    if Place::of(path) == Place::Other {
        return None;
    }
    let mut at = 1;
    for part in query.get(1..)?.split(|b| *b == b'&') {
        let equals = part.iter().position(|b| *b == b'=');
        let (name, value) = part.split_at(equals.map_or(0, |equals| equals + 1));
        let name = name.strip_suffix(b"=").unwrap_or_default();
        let named = names::is_vague(name) || names::secret(name) > Certainty::No;
        if named {
            let secret = looks::is_no_word(value) && !is_harmless(value) && value != MASK;
            return Some((at + name.len() + 1..at + part.len(), secret));
        }
        at += part.len() + 1;
    }
    None
}

/// The subject of a URL's path: a webhook, a deployment, or something else.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    /// The URL's path belongs to a webhook, or has a segment `key` or `token`.
    Hook,
    /// The URL's path triggers a deployment. Such a path also contains an identifier that is no secret.
    Deploy,
    /// The URL's path leads neither to a webhook nor to a deployment, or leads to a file in a repository.
    Other,
}

impl Place {
    /// Finds out from the first 16 segments of a URL's path whether the path leads to a webhook, a deployment or
    /// something else.
    fn of(path: &[u8]) -> Place {
        let mut place = Place::Other;
        for segment in path.split(|b| *b == b'/').take(16) {
            let lower = segment.to_ascii_lowercase();
            match lower.as_slice() {
                b"commit" | b"commits" | b"blob" | b"tree" | b"raw" | b"archive" | b"releases" => {
                    return Place::Other
                }
                b"hook" | b"hooks" | b"key" | b"token" => place = Place::Hook,
                b"deploy" | b"trigger" if place == Place::Other => place = Place::Deploy,
                name if name.ends_with(b"webhook")
                    || name.ends_with(b"webhooks")
                    || name.ends_with(b"_hooks") =>
                {
                    place = Place::Hook;
                }
                _ => {}
            }
        }
        place
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_secret_part_of_a_hook_is_found() {
        for (url, secret) in [
            ("https://h/hook/0f0e1d2c-0f0e-0f0e-0f0e-0f0e1d2c3b4a", 36),
            ("https://h/deploy/srv-1?key=aB3-dE4x", 8),
            ("https://h/deploy/prj_1/aB3dE4xYz0/", 10),
            ("https://h/trigger/done/with/key/aB3dE4xYz0", 10),
        ] {
            let found: Vec<_> = hooks(url.as_bytes()).map(|part| part.len()).collect();
            assert_eq!(found, [secret], "{url}");
        }
        for url in [
            "https://h/acme/webhooks/commit/0123456789abcdef0123456789abcdef01234567",
            "https://h/hooks/list",
            "https://h/deploy/0f0e1d2c-0f0e-0f0e-0f0e-0f0e1d2c3b4a",
            "https://h/search?key=name",
        ] {
            assert_eq!(hooks(url.as_bytes()).count(), 0, "{url}");
        }
    }

    #[test]
    fn every_expression_compiles() {
        for expression in [&URL, &CUT, &PATH] {
            assert!(!expression.is_match(b"x"));
        }
    }
}
