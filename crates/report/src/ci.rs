//! Adds the identifiers of the CI run in which a recording was made to a table.

use tr_insight::ci::Ci;
use tr_text::table::Sheet;

/// Adds a column to a sheet for each identifier of the CI run, such as `ci_commit`, after the columns that the sheet
/// has.
pub fn add_columns(ci: &Ci, sheet: &mut Sheet) {
    for (name, value) in ci.shown() {
        sheet.add_constant(format!("ci_{name}"), value);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tr_format::meta::Metadata;
    use tr_text::table::Table;

    fn csv(rows: [&str; 2], variables: &[(&str, &str)]) -> String {
        let variables = variables.iter();
        let variables = variables.map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        let ci = Ci::new(&Metadata {
            ci: variables.collect(),
            ..Metadata::default()
        });
        let table = Table::new("", |row: &&str| (*row).to_owned()).named("name");
        let mut sheet = table.data("size", |row| row.len()).sheet(rows);
        add_columns(&ci, &mut sheet);
        String::from_utf8(sheet.csv().unwrap()).unwrap()
    }

    #[test]
    fn every_row_has_the_identifiers() {
        let github = [
            ("GITHUB_REF", "refs/heads/main"),
            ("GITHUB_RUN_ID", "17"),
            ("GITHUB_SHA", "=1+1"),
        ];
        assert_eq!(
            csv(["a,b", ""], &github),
            "name,size,ci_run,ci_commit,ci_branch\n\"a,b\",3,17,'=1+1,main\n,0,17,'=1+1,main\n"
        );
        assert_eq!(csv(["a", "b"], &[]), "name,size\na,1\nb,1\n");
    }
}
