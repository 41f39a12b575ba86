//! Reads the words of a shell script: quotes, expansions, and the commands inside them.

use std::rc::Rc;

use super::super::tree::Substitution;
use super::super::words::{Expansion, Word};
use super::cursor::{Reader, DELIMITERS};
use super::DEEPEST_NESTING;
use crate::words::is_name_byte;

/// A word of a shell script while it is being read.
#[derive(Default)]
pub(super) struct Draft {
    word: Word,
    /// Whether an expansion of the word was read. The bytes that follow then count as the unchanged
    /// end of the word.
    has_expansion: bool,
}

impl Draft {
    fn push(&mut self, byte: u8) {
        self.word.text.push(byte);
        if self.has_expansion {
            self.word.tail += 1;
        } else {
            self.word.head += 1;
        }
    }

    fn expand(&mut self, text: &[u8], expansion: Expansion) {
        self.word.text.extend_from_slice(text);
        self.has_expansion = true;
        self.word.tail = 0;
        self.word.expansion = match (self.word.expansion, expansion) {
            (Expansion::None, expansion) if self.word.head == 0 => expansion,
            (Expansion::None | Expansion::One, Expansion::One) => Expansion::One,
            _ => Expansion::Any,
        };
    }
}

impl Reader<'_> {
    /// Reads one word of the script. At least one byte is read unless a delimiter comes next.
    pub(super) fn word(&mut self) -> Word {
        let mut draft = Draft::default();
        while let Some(byte) = self.peek() {
            match byte {
                b'<' | b'>' if self.starts_with(b"<(") || self.starts_with(b">(") => {
                    let from = self.at;
                    self.at += 2;
                    self.substitution(from, &mut draft, true, false);
                }
                b'(' if draft
                    .word
                    .text
                    .last()
                    .is_some_and(|last| b"?*+@!".contains(last)) =>
                {
                    self.group(&mut draft);
                }
                b'(' if is_array(&draft.word.text) => {
                    self.array(&mut draft);
                }
                _ if DELIMITERS.contains(&byte) => break,
                b'\'' => {
                    draft.word.is_quoted = true;
                    self.at += 1;
                    self.quoted(&mut draft);
                }
                b'"' => {
                    draft.word.is_quoted = true;
                    self.at += 1;
                    while self.peek().is_some_and(|byte| byte != b'"') {
                        self.expandable(&mut draft, true);
                    }
                    self.end_quote(b"\"");
                }
                b'*' | b'?' | b'[' if draft.word.text != b"[" || byte == b'*' => {
                    self.at += 1;
                    let is_test = byte == b'[' && draft.word.text.is_empty();
                    if is_test && self.is_at_the_end_of_a_test() {
                        draft.push(byte);
                    } else {
                        draft.expand(&[byte], Expansion::Any);
                    }
                }
                b'{' if self.is_a_list_in_braces() => {
                    self.at += 1;
                    draft.expand(b"{", Expansion::Any);
                }
                b'~' if draft.word.text.is_empty() => {
                    self.at += 1;
                    draft.expand(b"~", Expansion::One);
                }
                _ => self.expandable(&mut draft, false),
            }
        }
        draft.word
    }

    /// Whether the word of the script whose first `[` was just read is `[` or `[[`.
    pub(super) fn is_at_the_end_of_a_test(&self) -> bool {
        let rest = self.text.get(self.at..).unwrap_or_default();
        let rest = rest.strip_prefix(b"[").unwrap_or(rest);
        rest.first().is_none_or(|byte| DELIMITERS.contains(byte))
    }

    /// Whether a brace expansion of the shell, such as `{a,b}` or `{1..3}`, begins at the reader's
    /// position in the script.
    pub(super) fn is_a_list_in_braces(&self) -> bool {
        let rest = self
            .text
            .get(self.at..)
            .unwrap_or_default()
            .iter()
            .take(256);
        let inside = rest.skip(1);
        let inside = inside.take_while(|byte| **byte != b'}' && !DELIMITERS.contains(byte));
        let inside: Vec<u8> = inside.copied().collect();
        inside.contains(&b',') || inside.windows(2).any(|pair| pair == b"..")
    }

    pub(super) fn end_quote(&mut self, quote: &[u8]) {
        if !self.eat(quote) {
            self.is_whole = false;
        }
    }

    pub(super) fn quoted(&mut self, draft: &mut Draft) {
        while let Some(byte) = self.peek().filter(|byte| *byte != b'\'') {
            self.next();
            draft.push(byte);
        }
        self.end_quote(b"'");
    }

    /// Reads the parentheses of a pattern such as `@(a|b)` in a word of the script.
    pub(super) fn group(&mut self, draft: &mut Draft) {
        let mut depth = 0;
        while let Some(byte) = self.next() {
            draft.expand(&[byte], Expansion::Any);
            match byte {
                b'(' => depth += 1,
                b')' if depth == 1 => return,
                b')' => depth -= 1,
                _ => {}
            }
        }
        self.is_whole = false;
    }

    /// Reads the values of an array in a script, such as `(a b c)` of `name=(a b c)`.
    pub(super) fn array(&mut self, draft: &mut Draft) {
        self.at += 1;
        draft.expand(b"(", Expansion::Any);
        loop {
            self.newlines();
            if self.eat(b")") {
                return;
            }
            if self.is_at_a_delimiter() || self.depth >= DEEPEST_NESTING {
                self.is_whole = false;
                return;
            }
            self.depth += 1;
            let word = self.word();
            self.depth -= 1;
            draft.expand(&word.text, Expansion::Any);
        }
    }

    /// Reads one byte, escaped byte or expansion of a word in the script. `is_quoted` is whether this part of the word
    /// is inside double quotes.
    pub(super) fn expandable(&mut self, draft: &mut Draft, is_quoted: bool) {
        let expansion = if is_quoted {
            Expansion::One
        } else {
            Expansion::Any
        };
        let Some(byte) = self.next() else {
            return;
        };
        match byte {
            b'\\' => match self.next() {
                Some(b'\n') | None => {}
                Some(escaped) => {
                    let is_special = b"$`\"\\".contains(&escaped);
                    if is_quoted && !is_special {
                        draft.push(b'\\');
                    }
                    draft.word.is_quoted |= !is_quoted;
                    draft.push(escaped);
                }
            },
            b'$' => self.dollar(draft, expansion),
            b'`' => self.backquotes(draft, expansion),
            _ => draft.push(byte),
        }
    }

    /// Reads an expansion of the script, such as `$x` or `$(…)`, after its `$`.
    pub(super) fn dollar(&mut self, draft: &mut Draft, expansion: Expansion) {
        let from = self.at - 1;
        match self.peek() {
            Some(b'(') if self.starts_with(b"((") && self.arithmetic(self.at + 2).is_some() => {
                let end = self.arithmetic(self.at + 2).unwrap_or(self.text.len());
                self.is_whole &= self
                    .text
                    .get(..end)
                    .is_some_and(|text| text.ends_with(b"))"));
                self.skip_to(end);
                draft.expand(self.text.get(from..end).unwrap_or_default(), expansion);
            }
            Some(b'(') => {
                self.at += 1;
                self.substitution(from, draft, false, expansion == Expansion::One);
            }
            Some(b'{') => {
                self.at += 1;
                self.braces(from, draft, expansion);
            }
            Some(b'\'') if expansion == Expansion::Any => {
                self.at += 1;
                draft.word.is_quoted = true;
                while let Some(byte) = self.peek().filter(|byte| *byte != b'\'') {
                    self.next();
                    if byte == b'\\' {
                        self.next();
                        draft.expand(b"\\", Expansion::One);
                    } else {
                        draft.push(byte);
                    }
                }
                self.end_quote(b"'");
            }
            Some(b'"') if expansion == Expansion::Any => {}
            Some(b'@') => {
                self.at += 1;
                draft.expand(b"$@", Expansion::Arguments);
            }
            Some(byte) if byte.is_ascii_digit() || b"?#*!$-".contains(&byte) => {
                self.at += 1;
                let is_status = matches!(byte, b'?' | b'#' | b'!' | b'$');
                let expansion = if is_status { Expansion::One } else { expansion };
                draft.expand(&[b'$', byte], expansion);
            }
            Some(byte) if byte.is_ascii_alphabetic() || byte == b'_' => {
                while self.peek().is_some_and(|byte| is_name_byte(&byte)) {
                    self.at += 1;
                }
                draft.expand(self.text.get(from..self.at).unwrap_or_default(), expansion);
            }
            _ => draft.push(b'$'),
        }
    }

    /// Reads an expansion `${…}` of the script after its opening brace.
    pub(super) fn braces(&mut self, from: usize, draft: &mut Draft, expansion: Expansion) {
        if self.depth >= DEEPEST_NESTING {
            self.give_up();
            return;
        }
        self.depth += 1;
        let before = self.found.len();
        let mut inside = Draft::default();
        while self.peek().is_some_and(|byte| is_name_byte(&byte)) {
            self.at += 1;
        }
        self.insists |= self.starts_with(b":?") || self.starts_with(b"?");
        let is_all = self.starts_with(b"@}");
        loop {
            match self.peek() {
                None => {
                    self.is_whole = false;
                    break;
                }
                Some(b'}') => {
                    self.at += 1;
                    break;
                }
                Some(b'\'') if expansion == Expansion::Any => {
                    self.at += 1;
                    self.quoted(&mut inside);
                }
                Some(b'"') => {
                    self.at += 1;
                    while self.peek().is_some_and(|byte| byte != b'"') {
                        self.expandable(&mut inside, true);
                    }
                    self.end_quote(b"\"");
                }
                Some(_) => self.expandable(&mut inside, true),
            }
        }
        self.depth -= 1;
        for substitution in self.found.iter_mut().skip(before) {
            substitution.may_be_left_out = true;
        }
        let text = self.text.get(from..self.at).unwrap_or_default();
        let is_array = text.ends_with(b"[@]}");
        let expansion = match expansion {
            _ if is_all && text.len() == b"${@}".len() => Expansion::Arguments,
            _ if is_array || is_all => Expansion::Any,
            expansion => expansion,
        };
        draft.expand(text, expansion);
    }

    /// Reads the commands of a substitution `$(…)` or `<(…)` in the script, after the opening
    /// parenthesis.
    pub(super) fn substitution(
        &mut self,
        from: usize,
        draft: &mut Draft,
        is_beside: bool,
        is_quoted: bool,
    ) {
        if self.depth >= DEEPEST_NESTING {
            self.give_up();
            return;
        }
        self.depth += 1;
        let found = std::mem::take(&mut self.found);
        let insists = self.insists;
        let heres = std::mem::take(&mut self.heres);
        let body = Rc::new(self.list());
        self.end_parenthesis();
        self.heres = heres;
        self.depth -= 1;
        self.found = found;
        self.insists = insists;
        self.found.push(Substitution {
            body,
            is_beside,
            may_be_left_out: false,
        });
        let expansion = if is_beside || is_quoted {
            Expansion::One
        } else {
            Expansion::Any
        };
        draft.expand(self.text.get(from..self.at).unwrap_or_default(), expansion);
    }

    /// Reads the commands between backquotes in the script, after the opening backquote.
    pub(super) fn backquotes(&mut self, draft: &mut Draft, expansion: Expansion) {
        let from = self.at - 1;
        let line = self.line;
        let mut inside = Vec::new();
        loop {
            match self.next() {
                None => {
                    self.is_whole = false;
                    break;
                }
                Some(b'`') => break,
                Some(b'\\') if self.peek().is_some_and(|next| b"$`\\".contains(&next)) => {
                    inside.extend(self.next());
                }
                Some(byte) => inside.push(byte),
            }
        }
        let body = Rc::new(self.inner(&inside, line, (from, self.at)));
        self.found.push(Substitution {
            body,
            is_beside: false,
            may_be_left_out: false,
        });
        draft.expand(self.text.get(from..self.at).unwrap_or_default(), expansion);
    }
}

/// Whether a word of the script ends in an assignment (`x=`, `x+=`), so that a following
/// parenthesis begins an array.
fn is_array(word: &[u8]) -> bool {
    let name = word.strip_suffix(b"=").unwrap_or_default();
    let name = name.strip_suffix(b"+").unwrap_or(name);
    !name.is_empty() && name.iter().all(is_name_byte)
}
