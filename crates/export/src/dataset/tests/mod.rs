use super::*;

#[test]
fn partitions_are_directories_of_their_own() {
    assert_eq!(directory("owner/name"), "owner%2Fname");
    assert_eq!(directory("../../etc"), "%2E.%2F..%2Fetc");
    assert_eq!(directory("a=b c\u{e9}"), "a%3Db%20c%C3%A9");
    assert_eq!(directory("."), "%2E");
    assert_eq!(directory(""), "__HIVE_DEFAULT_PARTITION__");
    let (long, other) = ("/".repeat(1000), "/".repeat(1001));
    assert!(directory(&long).len() < 200 && directory(&long) != directory(&other));
    assert_eq!(directory(&long).split('-').next(), Some(&*"%2F".repeat(50)));
    let shifted = directory(&format!("a{long}"));
    assert!(
        shifted.starts_with("a%2F") && shifted.contains("%2F-"),
        "{shifted}"
    );
}

#[test]
fn days_are_those_of_the_calendar() {
    let at = |seconds: u64| units::day(seconds * 1_000_000_000);
    // The expected days are those of GNU `date -u -d @N +%F`.
    assert_eq!(at(0), "1970-01-01");
    assert_eq!(at(951_782_399), "2000-02-28");
    assert_eq!(at(951_868_799), "2000-02-29");
    assert_eq!(at(951_868_800), "2000-03-01");
    assert_eq!(at(1_795_564_799), "2026-11-24");
    assert_eq!(at(4_107_542_400), "2100-03-01");
    assert_eq!(units::day(u64::MAX), "2554-07-21");
}

/// As in JSON, the losses of a trace without an end are unknown, because its last part is missing.
#[test]
fn the_losses_of_a_cut_trace_are_not_known() {
    let recording = tr_insight::Recording::default();
    let place = Place::of(&recording.analysis.meta, None, None);
    let tables = tables(&recording, &[], &place);
    let runs = tables.iter().find(|it| it.name == MARKER).unwrap();
    let columns = runs.columns.iter();
    let value = |name: &str| {
        let at = columns.clone().position(|it| it.0 == name).unwrap();
        runs.rows[0][at].clone()
    };
    assert_eq!(value("incomplete"), Some(Value::Bool(true)));
    assert_eq!(value("lost_events"), None);
}
