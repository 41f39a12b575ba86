//! Finds the identifiers of the CI run in which a recording was made, such as its number and
//! commit.

use serde::Serialize;
use serde_json::{Map, Value};
use tr_format::meta::Metadata;

use tr_text::escape;

/// The CI identifiers that text and tables show. JSON and datasets have all identifiers.
const SHOWN: [&str; 6] = ["project", "run", "attempt", "job", "commit", "branch"];

/// The identifiers of the CI run in which a recording was made, such as its number and
/// commit, each with a name and a value.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(transparent)]
pub struct Ci(Vec<(&'static str, String)>);

impl Ci {
    pub fn new(meta: &Metadata) -> Ci {
        let known = tr_format::ci::identifiers(&meta.ci).into_iter();
        let known = known.map(|(name, value)| (name, escape::raw(value.as_bytes())));
        Ci(known.collect())
    }

    fn shown(&self) -> impl Iterator<Item = &(&'static str, String)> {
        self.0.iter().filter(|(name, _)| SHOWN.contains(name))
    }

    pub fn get(&self, name: &str) -> Option<&str> {
        let found = self.0.iter().find(|(known, _)| *known == name);
        found.map(|(_, value)| value.as_str())
    }

    /// The identifiers of the CI run in words for people, such as `run 17` and `commit
    /// 1f3a…`.
    pub fn words(&self) -> Vec<String> {
        let words = self.shown();
        words
            .map(|(name, value)| format!("{name} {value}"))
            .collect()
    }

    /// The identifiers of the CI run as a JSON object; `None` if the recording was not made
    /// in CI.
    pub fn json(&self) -> Option<Value> {
        let members = self.0.iter();
        let members = members.map(|(name, value)| ((*name).to_owned(), value.clone().into()));
        (!self.0.is_empty()).then(|| Value::Object(members.collect::<Map<_, _>>()))
    }

    /// Adds a column for each identifier of the CI run to a CSV table, after the columns
    /// that the table has.
    ///
    /// # Errors
    ///
    /// If `table` is not CSV.
    pub fn columns(&self, table: Vec<u8>) -> Result<Vec<u8>, csv::Error> {
        if self.0.is_empty() {
            return Ok(table);
        }
        let mut rows = csv::Reader::from_reader(table.as_slice());
        let mut out = csv::Writer::from_writer(Vec::new());
        let names = self.shown().map(|(name, _)| format!("ci_{name}"));
        let titles = rows.headers()?.iter().map(str::to_owned);
        out.write_record(titles.chain(names).collect::<Vec<_>>())?;
        for row in rows.records() {
            let row = row?;
            let values = self.shown().map(|(_, value)| escape::cell(value));
            let cells = row.iter().map(str::to_owned);
            out.write_record(cells.chain(values).collect::<Vec<_>>())?;
        }
        out.into_inner().map_err(|error| error.into_error().into())
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::expect_used)]
    use super::*;

    #[test]
    fn identifiers_have_one_name_in_all_systems() {
        let ci = |all: &[(&str, &str)]| {
            let all = all.iter().map(|(a, b)| ((*a).to_owned(), (*b).to_owned()));
            Ci::new(&Metadata {
                ci: all.collect(),
                ..Metadata::default()
            })
        };
        let github = ci(&[
            ("GITHUB_REF", "refs/heads/main"),
            ("GITHUB_RUN_ID", "17"),
            ("GITHUB_SHA", "=1+1"),
        ]);
        assert_eq!(github.words(), ["run 17", "commit =1+1", "branch main"]);
        let table = github.columns(b"a,b\n1,\"2,3\"\n".to_vec()).expect("CSV");
        let table = String::from_utf8(table).expect("text");
        assert_eq!(
            table,
            "a,b,ci_run,ci_commit,ci_branch\n1,\"2,3\",17,'=1+1,main\n"
        );
        let gitlab = ci(&[("CI_JOB_NAME", "test"), ("CI_PIPELINE_ID", "4")]);
        assert_eq!(gitlab.words(), ["run 4", "job test"]);
        assert_eq!(ci(&[]).json(), None);
    }
}
