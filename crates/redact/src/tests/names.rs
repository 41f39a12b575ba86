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
        assert!(secret(name.as_bytes()) > Sure::No, "{name}");
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
        assert_eq!(secret(name.as_bytes()), Sure::No, "{name}");
    }
}

#[test]
fn words_with_other_meanings_are_weak() {
    for (name, sure) in [
        ("pass", Sure::Weak),
        ("--auth", Sure::Weak),
        ("KEY", Sure::Weak),
        ("password", Sure::Strong),
        ("TOKEN1", Sure::Strong),
        ("API_KEY_PROD", Sure::Strong),
        ("secret_id", Sure::Strong),
        ("VAULT_SECRET_ID", Sure::Strong),
        ("--secret-id", Sure::No),
    ] {
        assert_eq!(secret(name.as_bytes()), sure, "{name}");
    }
}
