//! Writes the identifiers of the CI run in which a recording was made: as words, as columns of a
//! table, and as an object in JSON.

use serde_json::{Map, Value};
use tr_insight::recordings::ci::Ci;
use tr_text::table::Sheet;

/// The identifiers of the CI run in words for people, such as `run 17` and `commit 1f3a…`.
pub fn words(ci: &Ci) -> Vec<String> {
    ci.shown()
        .map(|(name, value)| format!("{name} {value}"))
        .collect()
}

/// Adds a column to a sheet for each identifier of the CI run, such as `ci_commit`, after the columns that the sheet
/// has.
pub fn add_columns(ci: &Ci, sheet: &mut Sheet) {
    for (name, value) in ci.shown() {
        sheet.add_constant(format!("ci_{name}"), value);
    }
}

/// The identifiers of the CI run as a JSON object; `None` if the recording was not made in CI.
pub fn json(ci: &Ci) -> Option<Value> {
    let members = ci
        .all()
        .map(|(name, value)| (name.to_owned(), value.into()));
    let members: Map<String, Value> = members.collect();
    (!members.is_empty()).then_some(Value::Object(members))
}

#[cfg(test)]
mod tests {
    use super::*;
    use tr_format::meta::Metadata;
    use tr_text::table::Table;

    const GITHUB: [(&str, &str); 3] = [
        ("GITHUB_REF", "refs/heads/main"),
        ("GITHUB_RUN_ID", "17"),
        ("GITHUB_SHA", "=1+1"),
    ];

    fn ci(variables: &[(&str, &str)]) -> Ci {
        let variables = variables.iter();
        let variables = variables.map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        Ci::new(&Metadata {
            ci: variables.collect(),
            ..Metadata::default()
        })
    }

    fn csv(rows: [&str; 2], variables: &[(&str, &str)]) -> String {
        let table = Table::new("", |row: &&str| (*row).to_owned()).named("name");
        let mut sheet = table.data("size", |row| row.len()).sheet(rows);
        add_columns(&ci(variables), &mut sheet);
        String::from_utf8(sheet.csv().unwrap()).unwrap()
    }

    #[test]
    fn every_row_has_the_identifiers() {
        assert_eq!(
            csv(["a,b", ""], &GITHUB),
            "name,size,ci_run,ci_commit,ci_branch\n\"a,b\",3,17,'=1+1,main\n,0,17,'=1+1,main\n"
        );
        assert_eq!(csv(["a", "b"], &[]), "name,size\na,1\nb,1\n");
    }

    #[test]
    fn identifiers_have_words() {
        assert_eq!(
            words(&ci(&GITHUB)),
            ["run 17", "commit =1+1", "branch main"]
        );
        assert!(words(&ci(&[])).is_empty());
        assert_eq!(json(&ci(&[])), None);
    }
}
