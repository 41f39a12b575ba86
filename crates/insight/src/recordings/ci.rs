//! Finds the identifiers of the CI run in which a recording was made, such as its number and commit.

use tr_format::meta::Metadata;

use tr_text::escape;

/// The CI identifiers that text and tables show. JSON and datasets have all identifiers.
const SHOWN_IDENTIFIERS: [&str; 6] = ["project", "run", "attempt", "job", "commit", "branch"];

/// The identifiers of the CI run in which a recording was made, each with a name and a value.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Ci(Vec<(&'static str, String)>);

impl Ci {
    pub fn new(meta: &Metadata) -> Ci {
        let known = tr_format::ci::identifiers(&meta.ci).into_iter();
        let known = known.map(|(name, value)| (name, escape::raw(value.as_bytes())));
        Ci(known.collect())
    }

    /// The names and the values of all identifiers; none if the recording was not made in CI.
    pub fn all(&self) -> impl Iterator<Item = (&'static str, &str)> {
        self.0.iter().map(|(name, value)| (*name, value.as_str()))
    }

    /// The names and the values of the identifiers that text and tables show.
    pub fn shown(&self) -> impl Iterator<Item = (&'static str, &str)> {
        self.all()
            .filter(|(name, _)| SHOWN_IDENTIFIERS.contains(name))
    }

    pub fn get(&self, name: &str) -> Option<&str> {
        let found = self.0.iter().find(|(known, _)| *known == name);
        found.map(|(_, value)| value.as_str())
    }
}

#[cfg(test)]
mod tests {
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
        let expected = [("run", "17"), ("commit", "=1+1"), ("branch", "main")];
        assert!(github.shown().eq(expected));
        let gitlab = ci(&[("CI_JOB_NAME", "test"), ("CI_PIPELINE_ID", "4")]);
        assert!(gitlab.shown().eq([("run", "4"), ("job", "test")]));
        assert_eq!(ci(&[]).all().next(), None);
    }
}
