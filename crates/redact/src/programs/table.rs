//! Reads `programs.txt`, the table that says where command lines of known programs have secrets. The table is read only
//! once.

use std::collections::HashMap;
use std::sync::LazyLock;

/// How the words that follow a program's name on a command line are read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum ProgramKind {
    /// If the table has no rules for the program, a later word of at least five bytes that names a program with rules
    /// is taken for that program.
    #[default]
    Open,
    /// Any word after the program's name that names another program of the table is taken for a
    /// program that this one runs, as with `sudo`.
    Runs,
    /// No word after the program's name is taken for another program.
    Plain,
    /// The words after the program's name are text or patterns, as with grep, and none is taken for another program.
    Text,
    /// The words after the program's name are text that the program prints, as with echo.
    Prints,
    /// The words after the program's name may be HTTP headers that the program sends.
    Sends,
}

/// The place of a secret on the command line of a program, according to the table.
#[derive(Debug)]
pub(super) enum Place {
    /// The secret is the value of an option. The secret may be joined with the option, be the next word, or be the part
    /// of a word after the character `after`.
    Option {
        name: &'static str,
        joined: bool,
        apart: bool,
        after: Option<u8>,
    },
    /// The secret is the word at this position after the subcommands, counted from 1 without options and their
    /// values. With `rest`, all later words are secrets as well.
    Position {
        number: usize,
        rest: bool,
        after: Option<u8>,
        only: Only,
    },
    /// The secret is the last word of the command.
    Last,
}

/// The words at a given position of a command line that are secrets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Only {
    /// Any word at the given position of the command line is a secret.
    All,
    /// A word at the given position of the command line is a secret if it looks like a code that a service has
    /// generated, or like a password that a careful person made up.
    Code,
    /// A word at the given position of the command line is a secret if it follows the name of a secret.
    Named,
}

/// A rule for the secrets on the command lines of a program: one line of the table.
#[derive(Debug)]
pub(super) struct Rule {
    /// The subcommands after which the rule applies, in order, each with its alternatives.
    pub path: Vec<&'static str>,
    pub places: Vec<Place>,
    /// The program's options whose value is no secret.
    pub values: Vec<&'static str>,
    /// The program's options that are named like a secret, but whose value is no secret.
    pub names: Vec<&'static str>,
    /// The program's options whose value is text for people, such as a commit message.
    pub texts: Vec<&'static str>,
    /// A word that the command line must contain for the rule to apply, if there is one.
    pub with: Option<&'static str>,
}

#[derive(Debug, Default)]
pub(super) struct Program {
    pub kind: ProgramKind,
    pub rules: Vec<usize>,
}

#[derive(Debug)]
pub(super) struct Table {
    pub programs: HashMap<&'static [u8], Program>,
    pub rules: Vec<Rule>,
    /// For each first byte of a program's name, the lengths of the names that begin with that byte, as a bit set. The
    /// lengths show quickly that most words of command lines name no program of the table.
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
                    "run" => ProgramKind::Runs,
                    "plain" => ProgramKind::Plain,
                    "prints" => ProgramKind::Prints,
                    "sends" => ProgramKind::Sends,
                    _ => ProgramKind::Text,
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

    /// The program of the table that a word of a command line names: `/usr/bin/mysql`,
    /// `ProxyCommand=sshpass`, `SignTool.exe`.
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

/// The program name in a word of a command line: the last part of a path, or the part after `=` as
/// in `ProxyCommand=sshpass`.
pub(super) fn base(word: &[u8]) -> &[u8] {
    let from = word.iter().rposition(|b| b"/=\\".contains(b));
    word.get(from.map_or(0, |at| at + 1)..).unwrap_or_default()
}
