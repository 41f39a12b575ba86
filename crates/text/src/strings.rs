//! Holds a table of texts, to which an HTML page refers by number.

use std::collections::HashMap;

/// A table of texts, to which an HTML page refers by number.
#[derive(Debug)]
pub struct Strings {
    all: Vec<String>,
    places: HashMap<String, u32>,
    /// The number of bytes for which the table still has room, counting only texts of more than `SHORT_TEXT` bytes.
    room: usize,
}

/// The length in bytes to which longer texts of a page are cut. A cut text says how much
/// is missing.
const LONGEST_TEXT: usize = 4096;
/// The length in bytes to which texts are cut when the table of a page's texts has no
/// room left.
const SHORT_TEXT: usize = 120;

impl Strings {
    /// A table that may hold this many bytes of long texts. When these bytes are used up, further texts are cut to
    /// `SHORT_TEXT` bytes. Texts of at most `SHORT_TEXT` bytes are not counted.
    pub fn new(room: usize) -> Strings {
        Strings {
            all: Vec::new(),
            places: HashMap::new(),
            room,
        }
    }

    /// Adds a text to the table and returns its number. A text that is too long is cut.
    pub fn add(&mut self, text: String) -> u32 {
        if let Some(place) = self.places.get(&text) {
            return *place;
        }
        let most = LONGEST_TEXT.min(self.room.max(SHORT_TEXT));
        let kept = if text.len() > most {
            let mut cut = most;
            while !text.is_char_boundary(cut) {
                cut -= 1;
            }
            let (kept, rest) = text.split_at(cut);
            format!("{kept}… ({} bytes more)", rest.len())
        } else {
            text.clone()
        };
        if kept.len() > SHORT_TEXT {
            self.room = self.room.saturating_sub(kept.len());
        }
        let place = u32::try_from(self.all.len()).unwrap_or(u32::MAX);
        self.all.push(kept);
        self.places.insert(text, place);
        place
    }

    /// All texts of the table, in the order of their numbers.
    pub fn list(self) -> Vec<String> {
        self.all
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_room_holds() {
        let mut strings = Strings::new(10_000);
        assert_eq!(strings.add("a".into()), 0);
        assert_eq!(strings.add("b".into()), 1);
        assert_eq!(strings.add("a".into()), 0);
        for n in 0..50 {
            strings.add(format!("{n} {}", "é".repeat(3000)));
        }
        let all = strings.list();
        assert_eq!(all.len(), 52);
        assert!(all.iter().map(String::len).sum::<usize>() < 20_000);
        assert!(all[2].ends_with("… (1906 bytes more)"), "{}", all[2].len());
        assert!(all[51].len() < 150, "{}", all[51]);
    }
}
