//! Reads shell scripts byte by byte. Each loop moves forward in the text, and the depth of the
//! recursion is bounded.

mod calculations;
mod cursor;
mod expansions;
mod redirections;

use std::collections::BTreeMap;
use std::rc::Rc;

use self::cursor::{Reader, DELIMITERS};
use super::builtins;
use super::tree::{
    Arm, Assignment, CaseArm, Command, CommandIx, ForLoop, Function, Link, Outline, Trap, Tree,
};
use super::words::{Expansion, Word};
use crate::words::split_name;

/// The largest depth of nested commands in a script. The reader stops at deeper commands, and the outline is
/// incomplete.
const DEEPEST_NESTING: usize = 48;

/// The largest number of `trap` commands that are read in a script.
const TRAPS: usize = 16;

/// The keywords that end a list of commands in a shell script.
const CLOSERS: [&[u8]; 8] = [
    b"then", b"elif", b"else", b"fi", b"do", b"done", b"esac", b"}",
];

pub(super) fn read(text: &[u8]) -> Outline {
    let mut reader = Reader::of(text);
    let body = Rc::new(reader.script());
    let traps = reader.traps(0);
    Outline {
        text: reader.text.to_vec(),
        commands: reader.commands,
        body,
        functions: reader.functions,
        traps,
        loops: reader.loops,
        is_whole: reader.is_whole,
        files: Vec::new(),
        sources: BTreeMap::new(),
    }
}

/// The byte ranges of the values that a shell script assigns to variables, in the order of the
/// text. Each has the first byte and the byte after the last one. Returns `None` if parts of the
/// script were not understood.
pub(super) fn values(text: &[u8]) -> Option<Vec<(usize, usize)>> {
    let mut reader = Reader::of(text);
    reader.script();
    reader.values.sort_unstable();
    reader.is_whole.then_some(reader.values)
}

/// Reads a sourced file, and appends its commands, functions and traps to the outline of the script that sources it.
/// Returns the body of the file. If parts of the file were not understood, or if there are too many traps, the outline
/// is left unchanged and `None` is returned.
pub(super) fn append(outline: &mut Outline, text: &[u8]) -> Option<Rc<Tree>> {
    let (commands, functions) = (outline.commands.len(), outline.functions.len());
    let mut reader = Reader {
        commands: std::mem::take(&mut outline.commands),
        functions: std::mem::take(&mut outline.functions),
        ..Reader::of(text)
    };
    let body = Rc::new(reader.script());
    let traps = reader.traps(commands);
    outline.commands = reader.commands;
    outline.functions = reader.functions;
    if !reader.is_whole || outline.traps.len() + traps.len() > TRAPS {
        outline.commands.truncate(commands);
        outline.functions.truncate(functions);
        return None;
    }
    outline.traps.extend(traps);
    outline.loops.extend(reader.loops);
    Some(body)
}

impl Reader<'_> {
    /// Reads a keyword that must come next in the script, such as `done`. If another word comes,
    /// the outline is marked as incomplete.
    fn expect(&mut self, keyword: &[u8]) {
        self.separators();
        if !self.keyword(keyword) {
            self.is_whole = false;
        }
    }

    /// Skips blanks and line ends in the script, and reads the here-documents that begin after a line end.
    fn newlines(&mut self) {
        self.blanks();
        while self.peek() == Some(b'\n') {
            self.next();
            self.here_texts();
            self.blanks();
        }
    }

    /// Skips blanks, line ends and semicolons in the script.
    fn separators(&mut self) {
        self.newlines();
        while self.peek() == Some(b';') && !self.starts_with(b";;") && !self.starts_with(b";&") {
            self.at += 1;
            self.newlines();
        }
    }

    /// Reads the whole script. Text that cannot be part of a script is skipped and makes the
    /// outline incomplete.
    fn script(&mut self) -> Tree {
        let mut lists = vec![self.list()];
        while self.at < self.text.len() {
            self.is_whole = false;
            let closer = CLOSERS.iter().find(|closer| self.is_at(closer));
            match closer {
                Some(closer) => {
                    self.eat(closer);
                }
                None => {
                    self.next();
                }
            }
            lists.push(self.list());
        }
        self.is_whole &= self.heres.is_empty();
        match <[Tree; 1]>::try_from(lists) {
            Ok([only]) => only,
            Err(lists) => Tree::List(lists),
        }
    }

    /// Reads a list of commands of the script, up to a keyword or an operator that ends the list.
    fn list(&mut self) -> Tree {
        let mut all = Vec::new();
        loop {
            self.separators();
            let is_end = self.starts_with(b";") || self.starts_with(b")");
            if is_end || self.peek().is_none() || CLOSERS.iter().any(|word| self.is_at(word)) {
                return Tree::List(all);
            }
            let before = self.at;
            let chain = self.chain();
            self.blanks();
            if self.peek() == Some(b'&') && !self.starts_with(b"&&") {
                self.at += 1;
                all.push(Tree::Background(Rc::new(chain)));
            } else {
                all.push(chain);
            }
            if self.at == before {
                self.is_whole = false;
                self.next();
            }
        }
    }

    fn chain(&mut self) -> Tree {
        let mut all = vec![(Link::And, self.pipe())];
        loop {
            self.blanks();
            let link = if self.eat(b"&&") {
                Link::And
            } else if self.eat(b"||") {
                Link::Or
            } else {
                break;
            };
            self.newlines();
            all.push((link, self.pipe()));
        }
        match <[(Link, Tree); 1]>::try_from(all) {
            Ok([(_, only)]) => only,
            Err(all) => Tree::Chain(all),
        }
    }

    fn pipe(&mut self) -> Tree {
        let mut negated = false;
        self.blanks();
        loop {
            if self.keyword(b"!") {
                negated = !negated;
            } else if self.keyword(b"time") {
                self.blanks();
                self.keyword(b"-p");
            } else {
                break;
            }
            self.blanks();
        }
        let mut members = vec![self.command()];
        loop {
            self.blanks();
            if self.starts_with(b"||") || !self.eat(b"|") {
                break;
            }
            self.eat(b"&");
            self.newlines();
            members.push(self.command());
        }
        if negated || members.len() > 1 {
            let members = members.into_iter().map(Rc::new).collect();
            return Tree::Pipe { members, negated };
        }
        members.pop().unwrap_or_default()
    }

    /// Reads one command of the script: a simple command, a compound one or the definition of a
    /// function.
    fn command(&mut self) -> Tree {
        self.blanks();
        if self.depth >= DEEPEST_NESTING {
            self.give_up();
            return Tree::default();
        }
        self.depth += 1;
        let tree = self.any_command();
        self.depth -= 1;
        tree
    }

    fn any_command(&mut self) -> Tree {
        let compound = if self.keyword(b"if") {
            self.conditions()
        } else if self.keyword(b"while") {
            self.repeated(false)
        } else if self.keyword(b"until") {
            self.repeated(true)
        } else if self.keyword(b"for") || self.keyword(b"select") {
            self.each()
        } else if self.keyword(b"case") {
            self.cases()
        } else if self.keyword(b"{") {
            let list = self.list();
            self.expect(b"}");
            list
        } else if self.starts_with(b"((") && self.arithmetic(self.at + 2).is_some() {
            return self.calculation();
        } else if self.eat(b"(") {
            let list = self.list();
            self.end_parenthesis();
            Tree::Subshell(Rc::new(list))
        } else if self.keyword(b"function") {
            self.blanks();
            let name = self.word().text;
            self.blanks();
            if self.eat(b"(") {
                self.blanks();
                self.eat(b")");
            }
            self.newlines();
            return self.define(name);
        } else if self.keyword(b"coproc") {
            self.is_whole = false;
            let command = self.command();
            return Tree::Background(Rc::new(command));
        } else {
            return self.simple();
        };
        self.redirected(compound)
    }

    fn end_parenthesis(&mut self) {
        self.separators();
        if !self.eat(b")") {
            self.is_whole = false;
        }
    }

    fn conditions(&mut self) -> Tree {
        let mut arms = Vec::new();
        let mut otherwise = None;
        loop {
            let condition = self.list();
            self.expect(b"then");
            let body = self.list();
            arms.push(Arm { condition, body });
            self.separators();
            if self.keyword(b"elif") {
                continue;
            }
            if self.keyword(b"else") {
                otherwise = Some(Box::new(self.list()));
            }
            self.expect(b"fi");
            return Tree::If { arms, otherwise };
        }
    }

    fn repeated(&mut self, until: bool) -> Tree {
        let condition = self.list();
        let body = self.block();
        let arm = Box::new(Arm { condition, body });
        Tree::Loop { until, arm }
    }

    /// Reads the body of a loop in the script: `do … done`, or `{ … }` as bash allows it.
    fn block(&mut self) -> Tree {
        self.separators();
        if self.keyword(b"{") {
            let list = self.list();
            self.expect(b"}");
            return list;
        }
        self.expect(b"do");
        let list = self.list();
        self.expect(b"done");
        list
    }

    fn each(&mut self) -> Tree {
        self.blanks();
        let words = self.begin();
        if self.starts_with(b"((") {
            match self.arithmetic(self.at + 2) {
                Some(end) => self.skip_to(end),
                None => self.give_up(),
            }
        } else {
            let variable = self.word().text;
            self.loops.push(ForLoop { variable, words });
            self.newlines();
            if self.keyword(b"in") {
                self.until_the_end_of_the_line(words);
            }
        }
        self.finish(words);
        let body = Box::new(self.block());
        Tree::For { words, body }
    }

    fn until_the_end_of_the_line(&mut self, words: CommandIx) {
        loop {
            self.blanks();
            if self.is_at_a_delimiter() {
                return;
            }
            let word = self.word();
            self.give(words, |command| command.words.push(word));
        }
    }

    /// Whether no word of the script begins at the reader's position.
    fn is_at_a_delimiter(&self) -> bool {
        let is_beside = self.starts_with(b"<(") || self.starts_with(b">(");
        let is_delimiter = |byte| DELIMITERS.contains(&byte);
        !is_beside && self.peek().is_none_or(is_delimiter)
    }

    fn cases(&mut self) -> Tree {
        self.blanks();
        let word = self.begin();
        let text = self.word();
        self.give(word, |command| command.words.push(text));
        self.finish(word);
        self.newlines();
        self.expect(b"in");
        let mut arms = Vec::new();
        let mut has_default = false;
        loop {
            self.separators();
            if self.keyword(b"esac") {
                break;
            }
            if self.peek().is_none() {
                self.is_whole = false;
                break;
            }
            let before = self.at;
            self.eat(b"(");
            let mut patterns = Vec::new();
            loop {
                self.blanks();
                if self.is_at_a_delimiter() {
                    break;
                }
                let pattern = self.word();
                has_default |= pattern.text == b"*";
                patterns.push(pattern);
                self.blanks();
                if !self.eat(b"|") {
                    break;
                }
            }
            if !self.eat(b")") {
                self.is_whole = false;
            }
            let body = self.list();
            arms.push(CaseArm { patterns, body });
            // After `;;&` or `;&` the commands of another pattern may run as well, which the outline cannot represent.
            self.is_whole &= !self.starts_with(b";;&") && !self.starts_with(b";&");
            let _ = self.eat(b";;&") || self.eat(b";;") || self.eat(b";&");
            if self.at == before {
                self.is_whole = false;
                self.next();
            }
        }
        Tree::Case {
            word,
            arms,
            has_default,
        }
    }

    /// Reads an arithmetic command of the script, `((…))`.
    fn calculation(&mut self) -> Tree {
        let at = self.begin();
        let from = self.at + 2;
        let end = self.arithmetic(from).unwrap_or(self.text.len());
        let inside = self.text.get(from..end).unwrap_or_default();
        let inside = inside.strip_suffix(b"))").unwrap_or(inside);
        let (test, setting) = (calculations::test(inside), calculations::setting(inside));
        self.skip_to(end);
        let word = Word {
            text: b"((".to_vec(),
            head: 2,
            ..Word::default()
        };
        self.give(at, |command| {
            command.words.push(word);
            command.words.extend(test);
            command.assignments.extend(setting);
        });
        self.finish(at);
        Tree::Simple(at)
    }

    fn skip_to(&mut self, end: usize) {
        while self.at < end && self.next().is_some() {}
    }

    /// Finds the position after the `))` that ends an arithmetic expression of the script. `from` is the position after
    /// its `((`. Returns `None` if the two parentheses are not closed together, because then they contain commands.
    fn arithmetic(&self, from: usize) -> Option<usize> {
        let mut depth = 2;
        let mut at = from;
        while let Some(byte) = self.text.get(at) {
            match byte {
                b'(' => depth += 1,
                b')' if depth == 2 => {
                    return (self.text.get(at + 1) == Some(&b')')).then_some(at + 2);
                }
                b')' => depth -= 1,
                _ => {}
            }
            at += 1;
        }
        // An expression without an end continues to the end of the script.
        Some(self.text.len())
    }

    /// Adds to the outline a new simple command that begins at the reader's position in the script.
    fn begin(&mut self) -> CommandIx {
        self.commands.push(Command {
            line: self.line,
            span: (self.at, self.at),
            ..Command::default()
        });
        self.commands.len() - 1
    }

    fn give(&mut self, ix: CommandIx, change: impl FnOnce(&mut Command)) {
        let found = std::mem::take(&mut self.found);
        let insists = std::mem::take(&mut self.insists);
        if let Some(command) = self.commands.get_mut(ix) {
            change(command);
            command.substitutions.extend(found);
            command.insists |= insists;
        }
    }

    fn finish(&mut self, ix: CommandIx) {
        let read = self.text.get(..self.at).unwrap_or_default();
        let end = read.trim_ascii_end().len();
        self.give(ix, |command| command.span.1 = end.max(command.span.0));
    }

    fn simple(&mut self) -> Tree {
        let ix = self.begin();
        let mut is_test = false;
        loop {
            self.blanks();
            if is_test && self.peek().is_some_and(|byte| b"()<>&|\n".contains(&byte)) {
                // Inside of `[[ … ]]`, parentheses, `<`, `>`, `&`, `|` and line ends belong to the test and do not end
                // the command.
                self.next();
                continue;
            }
            if self.redirection(ix) {
                continue;
            }
            if self.starts_with(b"(") {
                if let Some(function) = self.function(ix) {
                    return function;
                }
                self.is_whole = false;
                break;
            }
            if self.is_at_a_delimiter() {
                break;
            }
            let begin = self.at;
            let word = self.word();
            let is_number = !word.text.is_empty() && word.text.iter().all(u8::is_ascii_digit);
            let is_next = matches!(self.peek(), Some(b'<' | b'>'));
            if is_number && !word.is_quoted && is_next {
                self.redirection(ix);
                continue;
            }
            let is_end = is_test && word.text == b"]]";
            is_test &= !is_end;
            let is_first = self
                .commands
                .get(ix)
                .is_none_or(|command| command.words.is_empty());
            is_test |= is_first && word.text == b"[[" && !word.is_quoted;
            let name = assigned(&word);
            if name.is_some() && (is_first || self.sets(ix)) {
                self.set_value(begin);
            }
            if let Some(name) = name.filter(|_| is_first) {
                let value = value_of(word, name.len());
                let assignment = Assignment {
                    name: name.0,
                    value,
                };
                self.give(ix, |command| command.assignments.push(assignment));
            } else {
                self.give(ix, |command| command.words.push(word));
            }
        }
        self.finish(ix);
        self.give(ix, |command| {
            let (first, rest) = command.words.split_first().unzip();
            if first.and_then(Word::literal) == Some(b"let") {
                let words = rest.unwrap_or_default().iter();
                let set = words.filter_map(|word| calculations::setting(&word.text));
                command.assignments.extend(set);
            }
        });
        Tree::Simple(ix)
    }

    /// Whether the command of the script sets the variables that its arguments name, as
    /// `export x=1` does.
    fn sets(&self, ix: CommandIx) -> bool {
        let command = self.commands.get(ix);
        let first = command.and_then(|command| command.words.first()?.literal());
        first.is_some_and(builtins::assigns)
    }

    /// Records the byte range of the value in a word such as `x=1`, which began at the byte `begin`
    /// of the script and ends at the reader's position.
    fn set_value(&mut self, begin: usize) {
        let word = self.text.get(begin..self.at).unwrap_or_default();
        let sign = word.iter().position(|byte| *byte == b'=');
        self.values
            .extend(sign.map(|sign| (begin + sign + 1, self.at)));
    }

    /// Reads the definition of a shell function, after its name was read as the only word of a command. Returns `None`
    /// if the text is no definition of a function.
    fn function(&mut self, ix: CommandIx) -> Option<Tree> {
        let command = self.commands.get_mut(ix)?;
        let [name] = command.words.as_slice() else {
            return None;
        };
        let name = name.text.clone();
        command.words.clear();
        self.eat(b"(");
        self.blanks();
        if !self.eat(b")") {
            return None;
        }
        self.newlines();
        Some(self.define(name))
    }

    /// Reads the body of a shell function and adds the function to the outline.
    fn define(&mut self, name: Vec<u8>) -> Tree {
        let body = Rc::new(self.command());
        self.functions.push(Function { name, body });
        Tree::Function(self.functions.len() - 1)
    }

    /// Reads the commands that the script sets with `trap` for the end of the shell (`EXIT`) and for errors (`ERR`).
    /// Only commands of the script from `first` on are examined.
    fn traps(&mut self, first: CommandIx) -> Vec<Trap> {
        let is_trap = |command: &&Command| {
            let first = command.words.first();
            first.and_then(Word::literal) == Some(b"trap")
        };
        let new = self.commands.iter().skip(first);
        let traps = new.filter(is_trap).take(TRAPS);
        let traps = traps.filter_map(|command| {
            let (action, signals) = command.words.get(1..)?.split_first()?;
            let names = |name: &[u8]| signals.iter().any(|signal| signal.text == name);
            let is_of_errors = names(b"ERR");
            let is_of_end = names(b"EXIT") || names(b"0");
            let is_known = is_of_errors || is_of_end;
            is_known.then(|| {
                (
                    is_of_errors,
                    action.text.clone(),
                    command.line,
                    command.span,
                )
            })
        });
        let traps: Vec<_> = traps.collect();
        let traps = traps
            .into_iter()
            .map(|(is_of_errors, action, line, span)| Trap {
                is_of_errors,
                body: Rc::new(self.inner(&action, line, span)),
            });
        traps.collect()
    }

    /// Reads a text inside the script that is a script itself, such as the argument of `trap` or
    /// the inside of backquotes.
    fn inner(&mut self, text: &[u8], line: u32, span: (usize, usize)) -> Tree {
        if self.depth >= DEEPEST_NESTING {
            self.give_up();
            return Tree::default();
        }
        let mut reader = Reader {
            text,
            line,
            depth: self.depth + 1,
            is_whole: true,
            commands: std::mem::take(&mut self.commands),
            functions: std::mem::take(&mut self.functions),
            ..Reader::default()
        };
        let first = reader.commands.len();
        let body = reader.script();
        self.is_whole &= reader.is_whole;
        self.commands = reader.commands;
        self.functions = reader.functions;
        for command in self.commands.iter_mut().skip(first) {
            command.span = span;
        }
        body
    }
}

/// The name of the variable that a word of a script assigns (`CFLAGS=-O2`, `path+=x`), and the
/// number of bytes before the value.
struct Name(Vec<u8>, usize);

impl Name {
    fn len(&self) -> usize {
        self.1
    }
}

fn assigned(word: &Word) -> Option<Name> {
    let (name, rest) = split_name(&word.text);
    let end = name.len();
    // An element of an array: `job[$!]=x`
    let subscript = rest
        .starts_with(b"[")
        .then(|| rest.iter().position(|byte| *byte == b']'));
    let after = subscript.map_or(Some(0), |end| Some(end? + 1))?;
    let sign = rest.get(after..)?;
    let sign_length = [&b"="[..], b"+="]
        .iter()
        .find(|form| sign.starts_with(form))?
        .len();
    let is_name = name.first().is_some_and(|byte| !byte.is_ascii_digit());
    // The unexpanded beginning of the word (`word.head` bytes) must include the equals sign. For an element of an array
    // (`job[$!]=x`), this beginning may also end before the `[`, because the `[` could begin a pattern of file names.
    let is_unquoted = if after > 0 {
        word.head >= end
    } else {
        word.head >= end + sign_length
    };
    (is_name && is_unquoted).then(|| Name(name.to_vec(), end + after + sign_length))
}

/// The value in a word of a script that assigns a variable: the word without its first `before`
/// bytes, which contain no expansion.
fn value_of(mut word: Word, before: usize) -> Word {
    let before = before.min(word.text.len());
    word.text.drain(..before);
    word.head = word.head.saturating_sub(before);
    if word.head == 0 && word.expansion == Expansion::Any && word.tail == 0 {
        // The shell does not divide the value of `x=$y` into several words.
        word.expansion = Expansion::One;
    }
    word
}
