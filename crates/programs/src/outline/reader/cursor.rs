//! The position of the reader in a shell script, and what it has found so far.

use super::super::tree::{Command, CommandIx, ForLoop, Function, Substitution, LONGEST_SCRIPT};

/// The bytes that end a word in a shell script.
pub(super) const DELIMITERS: &[u8] = b" \t\r\n;&|()<>";

/// A here-document (`<<END`) of a shell script whose operator was read, but whose text begins only
/// on the next line.
pub(super) struct Here {
    pub(super) command: CommandIx,
    pub(super) end: Vec<u8>,
    /// Whether tabs at the beginnings of the here-document's lines are removed (`<<-`).
    pub(super) strips: bool,
    /// Whether the here-document's end word is quoted, so that the shell expands nothing in the
    /// text.
    pub(super) is_quoted: bool,
}

/// A shell script while it is being read, with the position of the reader and the commands found so
/// far.
#[derive(Default)]
pub(super) struct Reader<'a> {
    pub(super) text: &'a [u8],
    pub(super) at: usize,
    pub(super) line: u32,
    pub(super) depth: usize,
    pub(super) is_whole: bool,
    pub(super) commands: Vec<Command>,
    pub(super) functions: Vec<Function>,
    pub(super) heres: Vec<Here>,
    /// The command substitutions, such as `$(…)`, in the words read so far of the present command.
    pub(super) found: Vec<Substitution>,
    pub(super) insists: bool,
    pub(super) loops: Vec<ForLoop>,
    /// The byte ranges of the values that the script assigns to variables. Each has its first byte and the byte after
    /// its last one.
    pub(super) values: Vec<(usize, usize)>,
}

impl<'a> Reader<'a> {
    /// A reader at the beginning of a script. The reader sees only the first [`LONGEST_SCRIPT`] bytes.
    pub(super) fn of(text: &'a [u8]) -> Reader<'a> {
        Reader {
            text: text.get(..LONGEST_SCRIPT).unwrap_or(text),
            is_whole: text.len() <= LONGEST_SCRIPT && !text.contains(&0),
            line: 1,
            ..Reader::default()
        }
    }
}

impl Reader<'_> {
    pub(super) fn peek(&self) -> Option<u8> {
        self.text.get(self.at).copied()
    }

    pub(super) fn starts_with(&self, part: &[u8]) -> bool {
        self.text
            .get(self.at..)
            .is_some_and(|rest| rest.starts_with(part))
    }

    pub(super) fn next(&mut self) -> Option<u8> {
        let byte = self.peek()?;
        self.at += 1;
        self.line += u32::from(byte == b'\n');
        Some(byte)
    }

    pub(super) fn eat(&mut self, part: &[u8]) -> bool {
        let is_next = self.starts_with(part);
        if is_next {
            for _ in part {
                self.next();
            }
        }
        is_next
    }

    /// Stops reading the script and marks its outline as incomplete.
    pub(super) fn give_up(&mut self) {
        self.is_whole = false;
        self.at = self.text.len();
    }

    /// Whether this keyword of the shell's language stands at the reader's position.
    pub(super) fn is_at(&self, keyword: &[u8]) -> bool {
        let after = self.text.get(self.at + keyword.len());
        self.starts_with(keyword) && after.is_none_or(|byte| DELIMITERS.contains(byte))
    }

    pub(super) fn keyword(&mut self, keyword: &[u8]) -> bool {
        self.is_at(keyword) && self.eat(keyword)
    }

    /// Skips blanks, continued lines and a comment in the script.
    pub(super) fn blanks(&mut self) {
        while let Some(byte) = self.peek() {
            match byte {
                b' ' | b'\t' | b'\r' => self.at += 1,
                b'\\' if self.starts_with(b"\\\n") => {
                    self.eat(b"\\\n");
                }
                b'#' => {
                    while self.peek().is_some_and(|byte| byte != b'\n') {
                        self.at += 1;
                    }
                }
                _ => break,
            }
        }
    }
}
