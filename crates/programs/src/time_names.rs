//! Names of tests whose subject is time, such as the end of a lease. Such a test has to take its time.

/// The words in the name of a program that say that it tests something.
const TESTS: [&str; 7] = [
    "test",
    "tests",
    "spec",
    "conformance",
    "check",
    "checks",
    "verify",
];

/// The beginnings of words in the names of programs that say that time is the subject of a test. "timeout" also stands
/// for two words, "time" and "out".
const TIMES: [&str; 16] = [
    "backoff",
    "cooldown",
    "debounc",
    "expir",
    "heartbeat",
    "keepalive",
    "lease",
    "lifetime",
    "pacer",
    "pacing",
    "ratelimit",
    "soak",
    "throttl",
    "timeout",
    "timer",
    "ttl",
];

/// Whether a name says that time is the subject of a test. `is_test` says whether the program is known to be a test; if
/// not, the name has to say so, too. A soak test lasts for a time on purpose, so its word is enough.
pub fn tests_time(name: &str, is_test: bool) -> bool {
    let words = words(name);
    let is_test = is_test || words.iter().any(|word| TESTS.contains(&word.as_str()));
    let pairs = words.windows(2).map(<[String]>::concat);
    let mut all = words.iter().cloned().chain(pairs);
    all.any(|word| {
        let mut times = TIMES.iter().filter(|time| word.starts_with(**time));
        times.any(|time| is_test || *time == "soak")
    })
}

/// The words of a name in lower case. A word ends before a byte that is no letter, and before a capital letter that
/// follows a small one.
fn words(name: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut last = ' ';
    for letter in name.chars() {
        let begins = letter.is_ascii_uppercase() && last.is_ascii_lowercase();
        if begins || !letter.is_ascii_alphabetic() {
            words.push(String::new());
        }
        if let Some(word) = words.last_mut().filter(|_| letter.is_ascii_alphabetic()) {
            word.push(letter.to_ascii_lowercase());
        }
        last = letter;
    }
    words.retain(|word| !word.is_empty());
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_words_of_a_name_say_what_is_tested() {
        for (name, is_test, want) in [
            ("LeaseConformance", false, true),
            ("lease", true, true),
            ("lease.py", false, false),
            ("expire.test.tcl", false, true),
            ("test_rate_limit.py", false, true),
            ("session-time-out.t", true, true),
            ("soak.pl", false, true),
            ("release_test", true, false),
            ("test_api.py", true, false),
            ("prune-times.sh", true, false),
            ("", true, false),
        ] {
            assert_eq!(tests_time(name, is_test), want, "{name}");
        }
    }
}
