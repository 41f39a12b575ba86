//! Reads the redirections of commands in a shell script, and the texts of its here-documents.

use super::super::tree::{CommandIx, Tree};
use super::super::words::Word;
use super::cursor::{Here, Reader, DELIMITERS};
use super::expansions::Draft;

impl Reader<'_> {
    /// Reads a redirection of a command in the script, such as `2>FILE`. Returns whether there was
    /// one.
    pub(super) fn redirection(&mut self, ix: CommandIx) -> bool {
        if self.starts_with(b"<(") || self.starts_with(b">(") {
            return false;
        }
        let before = self.text.get(..self.at).unwrap_or_default();
        let is_of_errors = match before {
            [.., last, b'2'] => DELIMITERS.contains(last),
            _ => false,
        };
        let is_both = self.eat(b"&>");
        let is_output = is_both || self.starts_with(b">");
        if !is_output && !self.starts_with(b"<") {
            return false;
        }
        if self.eat(b"<<<") {
            self.blanks();
            self.target();
            self.give(ix, |_| {});
            return true;
        }
        if self.eat(b"<<") {
            let strips = self.eat(b"-");
            self.blanks();
            let end = self.word();
            self.give(ix, |_| {});
            self.heres.push(Here {
                command: ix,
                end: end.text,
                strips,
                is_quoted: end.is_quoted,
            });
            return true;
        }
        while self.peek().is_some_and(|byte| b"<>|".contains(&byte)) {
            if self.starts_with(b"<(") || self.starts_with(b">(") {
                break;
            }
            self.at += 1;
        }
        let is_copy = self.eat(b"&");
        self.blanks();
        if self.is_at_a_delimiter() {
            self.is_whole = false;
            return true;
        }
        let file = self.target();
        let is_number = file
            .text
            .iter()
            .all(|byte| byte.is_ascii_digit() || *byte == b'-');
        let is_file = !(is_copy && is_number);
        let is_null = file.text.starts_with(b"/dev/");
        self.give(ix, |command| {
            command.opens |= is_file && !is_null;
            if is_file && is_output && !is_of_errors && command.output.is_none() {
                command.output = Some(file);
            }
        });
        true
    }

    /// Reads the word after a redirection operator in the script. If the command is a program, bash expands this word
    /// in the program's process. Then the shell itself does not start the commands of a `$(…)` in the word.
    fn target(&mut self) -> Word {
        let before = self.found.len();
        let word = self.word();
        for substitution in self.found.iter_mut().skip(before) {
            substitution.may_be_left_out = true;
        }
        word
    }

    /// The number of digits before a redirection operator at the reader's position, as in `2>`;
    /// `None` if neither `<` nor `>` follows.
    fn descriptor(&self) -> Option<usize> {
        let rest = self.text.get(self.at..)?;
        let digits = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
        rest.get(digits)
            .filter(|byte| b"<>".contains(byte))
            .map(|_| digits)
    }

    /// Reads the redirections that follow a compound command of the script, and returns the command
    /// with them.
    pub(super) fn redirected(&mut self, compound: Tree) -> Tree {
        self.blanks();
        if !self.starts_with(b"&>") && self.descriptor().is_none() {
            return compound;
        }
        let words = self.begin();
        loop {
            self.blanks();
            self.at += self.descriptor().unwrap_or(0);
            if !self.redirection(words) {
                break;
            }
        }
        self.finish(words);
        let body = Box::new(compound);
        Tree::Redirected { words, body }
    }

    /// Reads the texts of the here-documents whose operators stood on the script's line that has
    /// just ended.
    pub(super) fn here_texts(&mut self) {
        let heres = std::mem::take(&mut self.heres);
        for here in heres {
            let (from, first_line) = (self.at, self.line);
            let mut to = self.text.len();
            let mut has_end = false;
            while self.at < self.text.len() {
                let start = self.at;
                let rest = self.text.get(start..).unwrap_or_default();
                let length = rest.iter().position(|byte| *byte == b'\n');
                let line = rest.get(..length.unwrap_or(rest.len())).unwrap_or_default();
                self.at += line.len();
                self.next();
                let tabs = line
                    .iter()
                    .take_while(|byte| here.strips && **byte == b'\t')
                    .count();
                if line.get(tabs..) == Some(here.end.as_slice()) {
                    to = start;
                    has_end = true;
                    break;
                }
            }
            self.is_whole &= has_end;
            if here.is_quoted {
                continue;
            }
            let (after, line) = (self.at, self.line);
            let inside = self.text.get(..to).unwrap_or_default();
            let text = std::mem::replace(&mut self.text, inside);
            (self.at, self.line) = (from, first_line);
            let found = std::mem::take(&mut self.found);
            let mut draft = Draft::default();
            while self.peek().is_some() {
                self.expandable(&mut draft, true);
            }
            self.give(here.command, |_| {});
            self.found = found;
            (self.text, self.at, self.line) = (text, after, line);
        }
    }
}
