//! Unit tests for recognizing names that stand for secrets.

use super::*;

#[test]
fn names_are_read_in_words() {
    for name in [
        "--password",
        "DB_PASS",
        "clientSecret",
        "x-api-key",
        "KEY",
        "MY_PWD",
        "_authToken",
    ] {
        assert!(secret(name.as_bytes()) > Certainty::No, "{name}");
    }
    for name in [
        "tokens",
        "author",
        "bypass",
        "key",
        "monkey",
        "TOKEN_FILE",
        "passes",
        "",
        "--",
    ] {
        assert_eq!(secret(name.as_bytes()), Certainty::No, "{name}");
    }
}

#[test]
fn words_with_other_meanings_are_weak() {
    for (name, sure) in [
        ("pass", Certainty::Weak),
        ("--auth", Certainty::Weak),
        ("KEY", Certainty::Weak),
        ("password", Certainty::Strong),
        ("TOKEN1", Certainty::Strong),
        ("API_KEY_PROD", Certainty::Strong),
        ("secret_id", Certainty::Strong),
        ("VAULT_SECRET_ID", Certainty::Strong),
        ("--secret-id", Certainty::No),
    ] {
        assert_eq!(secret(name.as_bytes()), sure, "{name}");
    }
}
