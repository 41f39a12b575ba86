//! Tests the characters that the escaping function of each output format lets through, for any text.

use proptest::prelude::*;
use tr_text::escape;

/// Texts made of pieces that some output format takes for a command, markup, a formula or a link, and of any other
/// pieces.
fn text() -> impl Strategy<Value = String> {
    let pieces = prop::sample::select(vec![
        "::",
        "##[",
        "##vso[",
        "error",
        "=",
        "+",
        "-",
        "@",
        "#",
        "GH-1",
        "user",
        "\n",
        "\r",
        "\t",
        "\u{1b}[",
        "31m",
        "2J",
        "\u{9b}",
        "\u{200b}",
        "\u{202e}",
        "\u{e0041}",
        "\u{ad}",
        "<",
        ">",
        "&",
        "&#64;",
        "'",
        "\"",
        "`",
        "|",
        "\\",
        " ",
        "a",
        "://",
        "www.",
        "abcdef0",
        "é",
        "語",
        "0",
    ]);
    let piece =
        prop_oneof![4 => pieces.prop_map(str::to_owned), 1 => any::<char>().prop_map(String::from)];
    prop::collection::vec(piece, 0..12).prop_map(|pieces| pieces.concat())
}

fn log_is_safe(text: &str) -> bool {
    let line_is = |line: &str| !line.trim_start().starts_with("::");
    text.split('\n').all(line_is)
        && !text.contains("##[")
        && !text.contains("##vso[")
        && !text.contains(|c: char| c != '\n' && c != '\u{1b}' && escape::is_hidden(c))
}

proptest! {
    #[test]
    fn text_is_one_line_of_visible_characters(text in text()) {
        let safe = escape::text(text.as_bytes());
        prop_assert!(!safe.contains(escape::is_hidden));
        prop_assert!(!safe.contains("##[") && !safe.contains("##vso["), "{safe}");
        prop_assert_eq!(escape::text(safe.as_bytes()), safe);
    }

    #[test]
    fn a_page_holds_no_command(text in text()) {
        let page = escape::page(&text);
        prop_assert!(log_is_safe(&page), "{page:?}");
        for (at, _) in page.match_indices('\u{1b}') {
            let rest = page[at..].strip_prefix("\u{1b}[").unwrap_or_default();
            let rest = rest.trim_start_matches(|c: char| c.is_ascii_digit() || c == ';');
            prop_assert!(rest.starts_with('m'), "{page:?}");
        }
        prop_assert_eq!(page.lines().count(), text.split_inclusive('\n').count());
    }

    #[test]
    fn a_cell_is_no_formula(text in text()) {
        let cell = escape::cell(&text);
        prop_assert!(!cell.trim_start().starts_with(['=', '+', '-', '@']), "{cell}");
        prop_assert!(!cell.contains(escape::is_hidden) && log_is_safe(&cell), "{cell}");
    }

    #[test]
    fn markdown_holds_no_markup_and_no_link(text in text()) {
        let safe = escape::markdown(&text);
        let bare = safe.replace("<code>", "").replace("</code>", "");
        prop_assert!(!bare.contains(['<', '>', '`', '|', '@', '[', '*', '\\']), "{safe}");
        let around = |c: Option<char>| c.is_some_and(|c| c.is_ascii_alphanumeric());
        let inside = |(at, mark): (usize, &str)| {
            around(bare[..at].chars().next_back()) && around(bare[at + mark.len()..].chars().next())
        };
        prop_assert!(bare.match_indices('_').all(inside), "{safe}");
        prop_assert!(!bare.replace("&#", "").contains(['#', '&']), "{safe}");
        let open: String = safe.split("<code>").enumerate().map(|(at, part)| {
            if at == 0 { part } else { part.split_once("</code>").map_or("", |(_, rest)| rest) }
        }).collect();
        for link in ["@", "GH-1", "#user", "://", "www"] {
            let coded: String = link.chars().map(|c| if c.is_ascii_punctuation() && c != '-' && c != '/' {
                format!("&#{};", u32::from(c))
            } else { c.to_string() }).collect();
            prop_assert!(link == "@" || link == "www" || !open.contains(&coded), "{link}: {safe}");
        }
    }

    #[test]
    fn html_holds_no_markup(text in text()) {
        let safe = escape::html(&text);
        prop_assert!(!safe.contains(['<', '>', '"', '\'']), "{safe}");
    }

    #[test]
    fn json_is_safe_in_a_log_and_says_the_same(text in text()) {
        let value = serde_json::Value::from(text);
        let json = tr_text::json::document(&value, true).unwrap_or_default();
        prop_assert!(log_is_safe(&json) && !json.contains('\u{1b}'), "{json}");
        let back: serde_json::Value = serde_json::from_str(&json).unwrap_or_default();
        prop_assert_eq!(back, value);
    }
}

/// HTML entities do not keep a forge from making links of words. Only the HTML element `<code>` does.
#[test]
fn words_that_a_forge_links_become_code() {
    for word in [
        "@user",
        "GH-1",
        "#1",
        "a/b#2",
        "www.a.org",
        "http://a.org",
        "0123abcd",
        "!5",
    ] {
        assert!(escape::markdown(word).starts_with("<code>"), "{word}");
    }
    for word in ["cc", "-O2", "src/a.c", "6.18.2", "12", "a:b"] {
        assert!(!escape::markdown(word).contains("<code>"), "{word}");
    }
    for plain in [
        "cc -O2 src/a",
        "exit 1 after 7.7 ms: wait for it.",
        "kernels_4 3.21 s (70 %), (2), \"a\"?",
    ] {
        assert_eq!(escape::markdown(plain), plain);
    }
    for (text, escaped) in [
        ("1. a", "1&#46; a"),
        ("1) a", "1&#41; a"),
        ("a.sh", "a&#46;sh"),
        ("_a_", "&#95;a&#95;"),
        (":x: a", "&#58;x: a"),
    ] {
        assert_eq!(escape::markdown(text), escaped);
    }
    assert_eq!(escape::markdown("&lt;"), "<code>&#38;lt;</code>");
}

/// A printed command line means the same arguments when a shell reads it.
#[test]
fn a_shell_reads_what_is_quoted() {
    for arg in [
        "plain",
        "'jest' -w 2",
        "it's \"x\" $y",
        "a  b",
        "",
        "`x` 'y'",
        "'!'",
        "a\\'b",
        "*",
        "~",
    ] {
        let line = escape::quoted([arg.as_bytes()]);
        let mut shell = std::process::Command::new("sh");
        let shell = shell.args(["-c", &format!("printf %s {line}")]).output();
        let read = shell.expect("a shell").stdout;
        assert_eq!(String::from_utf8_lossy(&read), arg, "{line}");
    }
    assert_eq!(escape::in_quotes("'jest' -w 2"), "\"'jest' -w 2\"");
    assert_eq!(escape::in_quotes("sleep 1; exit"), "'sleep 1; exit'");
}
