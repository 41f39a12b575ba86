//! Holds names and sentences in two lengths: whole for machine formats (JSON, Parquet, traces of other tools), and
//! short for people.

use serde::{Serialize, Serializer};

use crate::units;

/// The length in bytes to which a name that has no other bound is cut, also in machine formats. A recording may be
/// hostile, and many rows of a document can have the same name.
pub const LONGEST_NAME: usize = 4096;

/// A name, or a sentence with names, that is whole in machine formats and shortened for people.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Phrase {
    whole: String,
    /// The text for people; `None` if it is the same as the whole text.
    short: Option<Box<str>>,
}

impl Phrase {
    /// A phrase with these two texts.
    pub fn new(whole: String, short: String) -> Phrase {
        let short = (short != whole).then(|| short.into_boxed_str());
        Phrase { whole, short }
    }

    /// A name that has at most `columns` columns for people, and at most [`LONGEST_NAME`] bytes in machine formats.
    pub fn name(whole: &str, columns: usize) -> Phrase {
        Phrase::new(bounded(whole), units::shorten(whole, columns))
    }

    /// A sentence with the given names in it. `text` makes the sentence, once of the whole names and once of the short
    /// ones.
    pub fn with<const N: usize>(names: [&Phrase; N], text: impl Fn([&str; N]) -> String) -> Phrase {
        if names.iter().all(|name| name.short.is_none()) {
            return text(names.map(Phrase::whole)).into();
        }
        Phrase::new(
            text(names.map(Phrase::whole)),
            text(names.map(Phrase::short)),
        )
    }

    /// The text for machine formats.
    pub fn whole(&self) -> &str {
        &self.whole
    }

    /// The text for people, and the text for machine formats if it differs from the text for people.
    pub fn into_short(self) -> (String, Option<String>) {
        match self.short {
            Some(short) => (short.into(), Some(self.whole)),
            None => (self.whole, None),
        }
    }

    /// The text for people.
    pub fn short(&self) -> &str {
        self.short.as_deref().unwrap_or(&self.whole)
    }
}

/// JSON is a machine format, so it has the whole text.
impl Serialize for Phrase {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.whole)
    }
}

impl From<String> for Phrase {
    fn from(whole: String) -> Phrase {
        Phrase { whole, short: None }
    }
}

impl From<&str> for Phrase {
    fn from(whole: &str) -> Phrase {
        whole.to_owned().into()
    }
}

/// The first [`LONGEST_NAME`] bytes of a text, with an ellipsis if there are more.
pub fn bounded(text: &str) -> String {
    if text.len() <= LONGEST_NAME {
        return text.to_owned();
    }
    let mut end = LONGEST_NAME;
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    format!("{}…", text.get(..end).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sentence_has_whole_names_and_short_ones() {
        let [long, brief] = ["a-generator-of-code", "ld"].map(|name| Phrase::name(name, 9));
        assert_eq!(
            (long.whole(), long.short()),
            ("a-generator-of-code", "a-ge…code")
        );
        let both = Phrase::with([&long, &brief], |[one, other]| {
            format!("{one} waits for {other}")
        });
        assert_eq!(both.whole(), "a-generator-of-code waits for ld");
        assert_eq!(both.short(), "a-ge…code waits for ld");
        let plain = Phrase::with([&brief], |[name]| format!("{name} links"));
        assert_eq!((plain.whole(), plain.short()), ("ld links", "ld links"));
    }

    /// A hostile name may have millions of characters, and some characters take no column on a terminal, so the number
    /// of columns alone is no bound.
    #[test]
    fn a_whole_name_has_a_bound() {
        for text in [
            "é".repeat(LONGEST_NAME),
            "a\u{301}".repeat(LONGEST_NAME),
            "x".repeat(LONGEST_NAME + 1),
        ] {
            let name = Phrase::name(&text, 10);
            assert!(name.whole().len() <= LONGEST_NAME + '…'.len_utf8());
            assert!(
                name.whole().ends_with('…') && text.starts_with(name.whole().trim_end_matches('…'))
            );
        }
        assert_eq!(bounded("x"), "x");
    }
}
