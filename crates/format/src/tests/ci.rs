//! Tests which identifiers follow from the environment variables of CI jobs. The variables are taken from the
//! documentation of CI systems and from logs of jobs.

use super::*;

/// Jobs of CI systems: for each job the environment variables, and then the expected identifiers.
const RECORDED: &str = include_str!("environments.txt");

type Pairs = Vec<(String, String)>;

fn sections() -> Vec<(String, Pairs, Pairs)> {
    let mut all = Vec::new();
    for section in RECORDED.split("\n[").skip(1) {
        let (name, rest) = section.split_once("]\n").unwrap();
        let pair = |line: &str| {
            line.split_once('=')
                .map(|it| (it.0.to_owned(), it.1.to_owned()))
        };
        let (variables, expected): (Vec<_>, Vec<_>) =
            rest.lines().partition(|it| !it.starts_with("> "));
        let expected = expected
            .iter()
            .filter_map(|line| pair(line.trim_start_matches("> ")));
        let variables = variables.iter().filter_map(|line| pair(line));
        all.push((name.to_owned(), variables.collect(), expected.collect()));
    }
    all
}

#[test]
fn every_system_has_its_identifiers() {
    let sections = sections();
    for system in &SYSTEMS {
        assert!(
            sections.iter().any(|it| it.0.starts_with(system.name)),
            "{}",
            system.name
        );
    }
    for (name, environment, expected) in sections {
        let recorded = variables();
        let stored = environment
            .into_iter()
            // The recorder stores only certain variables, and treats an empty variable as one that is not set.
            .filter(|it| recorded.contains(&it.0.as_str()) && !it.1.is_empty());
        let stored: Vec<_> = stored.collect();
        let found = identifiers(&stored);
        let found: Vec<_> = found
            .iter()
            .map(|(name, value)| (*name, value.as_str()))
            .collect();
        let expected: Vec<_> = expected
            .iter()
            .map(|it| (it.0.as_str(), it.1.as_str()))
            .collect();
        assert_eq!(found, expected, "{name}");
    }
}

#[test]
fn a_table_names_known_identifiers_alone() {
    for system in &SYSTEMS {
        assert!(system.source.starts_with("https://"));
        for (name, _) in system.identifiers {
            assert!(IDENTIFIERS.contains(name), "{name}");
        }
    }
    assert_eq!(identifiers(&[]), []);
}
