//! Reads the table of programs, `programs.txt`, once.

use std::collections::HashMap;
use std::sync::LazyLock;

/// How the words after a program's name are read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Kind {
    /// A word that names a program of the table is taken for that program, unless it is short.
    #[default]
    Open,
    /// Any word that names a program of the table is taken for that program.
    Runs,
    /// No word is taken for a program.
    Plain,
    /// The words are text or patterns, and none is taken for a program.
    Text,
    /// The words are text, which is printed.
    Prints,
    /// The words may be headers, which the program sends.
    Sends,
}

/// The place of a secret in the command line of a program.
#[derive(Debug)]
pub(super) enum Place {
    /// The secret is the value of an option.
    Option {
        name: &'static str,
        joined: bool,
        apart: bool,
        after: Option<u8>,
    },
    /// The secret is the word with this number after the subcommands and, with `rest`, each word after it.
    Position {
        number: usize,
        rest: bool,
        after: Option<u8>,
        only: Only,
    },
    /// The secret is the last word of the command.
    Last,
}

/// Which of the words at a position are secrets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Only {
    /// Every word at the position is a secret.
    All,
    /// Words at the position that look like a code which a service has made are secrets.
    Code,
    /// Words at the position that follow the name of a secret are secrets.
    Named,
}

/// A rule for the command lines of a program: one line of the table.
#[derive(Debug)]
pub(super) struct Rule {
    /// The subcommands after which the rule is valid, each with its alternatives.
    pub path: Vec<&'static str>,
    pub places: Vec<Place>,
    /// The options whose value is no secret.
    pub values: Vec<&'static str>,
    /// The options whose names are those of secrets, but whose values are none.
    pub names: Vec<&'static str>,
    /// The options whose value is text for people.
    pub texts: Vec<&'static str>,
    /// A word without which the rule is not valid.
    pub with: Option<&'static str>,
}

#[derive(Debug, Default)]
pub(super) struct Program {
    pub kind: Kind,
    pub rules: Vec<usize>,
}

#[derive(Debug)]
pub(super) struct Table {
    pub programs: HashMap<&'static [u8], Program>,
    pub rules: Vec<Rule>,
    /// For each first byte of names of programs, the lengths of these names, as bits. Most words are no
    /// program, which this shows at once.
    pub lengths: [u32; 256],
}

pub(super) static TABLE: LazyLock<Table> =
    LazyLock::new(|| Table::new(include_str!("../programs.txt")));

impl Table {
    fn new(text: &'static str) -> Table {
        let mut table = Table {
            programs: HashMap::new(),
            rules: Vec::new(),
            lengths: [0; 256],
        };
        for line in text.lines().filter(|line| !line.starts_with('#')) {
            let Some((head, places)) = line.split_once(" : ") else {
                continue;
            };
            if let Some(kind) = head.strip_prefix('@') {
                let kind = match kind {
                    "run" => Kind::Runs,
                    "plain" => Kind::Plain,
                    "prints" => Kind::Prints,
                    "sends" => Kind::Sends,
                    _ => Kind::Text,
                };
                for name in places.split(' ') {
                    table.program(name).kind = kind;
                }
                continue;
            }
            let (names, path) = head.split_once(" | ").unwrap_or((head, ""));
            let number = table.rules.len();
            table.rules.push(Rule::new(path, places));
            for name in names.split(',') {
                table.program(name).rules.push(number);
            }
        }
        table
    }

    fn program(&mut self, name: &'static str) -> &mut Program {
        let name = name.as_bytes();
        if let Some(lengths) = name
            .first()
            .and_then(|b| self.lengths.get_mut(usize::from(*b)))
        {
            *lengths |= 1 << name.len().min(31);
        }
        self.programs.entry(name).or_default()
    }

    /// The program of the table that a word names: `/usr/bin/mysql`, `ProxyCommand=sshpass`, `SignTool.exe`.
    pub fn named(&self, word: &[u8]) -> Option<&Program> {
        let base = base(word);
        let base = [&b".exe"[..], b".jar", b".cmd", b".sh", b".bat"]
            .iter()
            .find_map(|end| base.strip_suffix(*end))
            .unwrap_or(base);
        let first = base.first()?.to_ascii_lowercase();
        let lengths = self.lengths.get(usize::from(first))?;
        if base.len() > 30 || lengths & (1 << base.len()) == 0 {
            return None;
        }
        let mut lower = [0; 31];
        let lower = lower.get_mut(..base.len())?;
        lower.copy_from_slice(base);
        lower.make_ascii_lowercase();
        self.programs.get(&*lower)
    }
}

impl Rule {
    fn new(path: &'static str, places: &'static str) -> Rule {
        let mut rule = Rule {
            path: path.split(' ').filter(|word| !word.is_empty()).collect(),
            places: Vec::new(),
            values: Vec::new(),
            names: Vec::new(),
            texts: Vec::new(),
            with: None,
        };
        for place in places.split(' ') {
            if let Some(option) = place.strip_prefix('~') {
                rule.values.push(option);
            } else if let Some(option) = place.strip_prefix('!') {
                rule.names.push(option);
            } else if let Some(word) = place.strip_prefix('&') {
                rule.with = Some(word);
            } else if let Some(option) = place.strip_prefix('"') {
                rule.texts.push(option);
            } else {
                rule.places.push(Place::new(place));
            }
        }
        rule
    }
}

impl Place {
    fn new(text: &'static str) -> Place {
        let (name, after) = match text.split_once('>') {
            Some((name, byte)) => (name, byte.bytes().next()),
            None => (text, None),
        };
        let (name, only) = match (name.strip_suffix('?'), name.strip_suffix('^')) {
            (Some(name), _) => (name, Only::Code),
            (_, Some(name)) => (name, Only::Named),
            _ => (name, Only::All),
        };
        let position = |number: &str, rest| Place::Position {
            number: number.parse().unwrap_or(1),
            rest,
            after,
            only,
        };
        match name.strip_prefix('#') {
            Some(number) => match number.strip_suffix('+') {
                Some(number) => position(number, true),
                None => position(number, false),
            },
            None if name == "*" => position("1", true),
            None if name == "$" => Place::Last,
            None => {
                let bare = name.trim_end_matches(['+', '.']);
                let prefix = bare.ends_with([':', '=']);
                let short = bare.len() == 2 && bare.starts_with('-');
                Place::Option {
                    name: bare,
                    joined: prefix || name.ends_with('+') || short && !name.ends_with('.'),
                    apart: !prefix && !name.ends_with('+'),
                    after,
                }
            }
        }
    }
}

/// The last part of a path, or the part after `=` as in `ProxyCommand=sshpass`.
pub(super) fn base(word: &[u8]) -> &[u8] {
    let from = word.iter().rposition(|b| b"/=\\".contains(b));
    word.get(from.map_or(0, |at| at + 1)..).unwrap_or_default()
}
