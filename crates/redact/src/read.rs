//! Remembers what the words of a command line, read one after the other, say about later words: for example, that the
//! next word may be a password.

use crate::harmless::is_harmless;
use crate::looks;
use crate::masks::{Masks, MASK};
use crate::names::{self, Certainty};
use crate::programs::{self, Options, SecretPlace};
use crate::words::{self, Word};

/// A command line in which secrets are searched. All words up to a certain one have been read, and the fields say what
/// these words announce about later words.
pub struct Read<'a> {
    pub options: Options<'a>,
    /// The word of the command line before the one that is being read.
    pub previous: &'a [u8],
    /// Whether the next word of the command line is a secret, according to the last word and the table of programs.
    next: SecretPlace,
    /// Whether the command line has words such as `config` or `set`, after which a name and its
    /// value are two separate words.
    sets: bool,
    /// Whether the command sets variables of a cloud service, most of which are secrets (`config:set`).
    pub variables: bool,
    /// Whether the command line had the id of an access key of AWS (`AKIA…`), so that the secret key may follow.
    access_key: bool,
    /// Whether the command line has a list whose entries have names and values, and an earlier word gave an entry a
    /// name that stands for a secret, as Helm's `env[0].name=API_TOKEN` does. The value of this entry is then a secret.
    pub entry: bool,
    /// Whether an earlier word of the command was about passwords, so that a later one may be a password.
    pub changes_password: bool,
    /// Whether the command line had an option with the name of a user, so that the user's password may follow.
    pub user: bool,
    /// Whether the command signs in or creates an account, or has an option of one letter with the user's name (`-u`).
    pub signs_in: bool,
    /// The option (`-p`, `-P` or `--port`) whose value was a number. This option stands for the port, so another option
    /// with the letter p stands for the password. Empty if there was no such option.
    port: &'a [u8],
    /// The words of the present command, followed by the words of later commands on the same line.
    line: &'a [Word<'a>],
    /// The number of words without a leading `-` that were read, with the present one, since the word that signs in
    /// (such as `login`) or creates an account. The name of the account follows that word, and the password may
    /// follow the name.
    account: Option<usize>,
}

impl<'a> Read<'a> {
    /// The state before the first word of a command line is read.
    pub fn new(line: &'a [Word<'a>]) -> Read<'a> {
        Read {
            options: Options::new(line),
            previous: b"",
            next: SecretPlace::No,
            sets: false,
            variables: false,
            access_key: false,
            entry: false,
            changes_password: false,
            user: false,
            signs_in: false,
            port: b"",
            line,
            account: None,
        }
    }

    /// Reads a word of the command line. If earlier words announce that the word is a secret, the word is masked.
    /// Otherwise the function remembers what the word says about later words. Returns true if no other rule needs to
    /// read the word, because it is the announced secret, its mask, or the `=` before it.
    pub fn secret(&mut self, word: &Word<'a>, masks: &mut Masks) -> bool {
        let text = word.text;
        if let SecretPlace::Next(after) = std::mem::take(&mut self.next) {
            if text == b"=" {
                self.next = SecretPlace::Next(after);
                return true;
            }
            // This secret is already masked. Archived traces contain masks, and the rules are also applied to such
            // traces.
            if text == MASK {
                self.previous = text;
                self.options.took_value();
                return true;
            }
            let redirects = text.starts_with(b"<") || text.starts_with(b">");
            // The value can lack the `pass:` that the program expects: `--ks-pass changeme`.
            let after =
                after.filter(|byte| text.contains(byte) || !words::names_secret(self.previous));
            let from =
                programs::next(text, after).filter(|_| !words::is_option(text) && !redirects);
            // After a short option, the value `public` is no secret: `public` is the name of SNMP's community that
            // everybody may read.
            let from = from.filter(|_| text != b"public" || self.previous.len() > 2);
            if let Some(from) = from {
                masks.add(word, from..text.len());
                self.previous = text;
                self.options.took_value();
                return true;
            }
        }
        self.next = self.options.see(text);
        match self.next {
            SecretPlace::From(from) if !is_harmless(text.get(from..).unwrap_or_default()) => {
                masks.add(word, from..text.len());
            }
            SecretPlace::No => {
                let equals = text.iter().position(|b| *b == b'=').map(|at| at + 1);
                let inner = equals
                    .and_then(|at| text.get(at..))
                    .filter(|value| value.starts_with(b"--"));
                let named =
                    words::names_secret(inner.unwrap_or(text)) && !self.options.takes_name(text);
                let set = (self.sets || self.previous == b"--arg") && words::sets_secret(text);
                let set = set && !self.options.is_subcommand();
                if named || set {
                    self.next = SecretPlace::Next(None);
                } else if text == b"--cookie" {
                    self.next = SecretPlace::Next(Some(b'='));
                }
            }
            _ => {}
        }
        if self.access_key && looks::is_aws_key(text) {
            masks.add(word, 0..text.len());
        }
        self.note(text, word.first);
        false
    }

    /// Notes what a word of the command line says about the words after it.
    fn note(&mut self, text: &[u8], first: bool) {
        // At the beginning of a command, the word `write` is not taken for a word that sets something: the text may be
        // a sentence such as `write a password policy`.
        self.sets |= words::is_setter(text) && !(first && text == b"write");
        self.variables |= words::sets_variables(text);
        self.sets &= text != b"get";
        self.entry |= text.split(|b| *b == b',').any(|part| {
            let from = part.iter().position(|b| *b == b'=').map_or(0, |at| at + 1);
            let (name, value) = part.split_at(from);
            name.ends_with(b"].name=") && names::secret(value) > Certainty::No
        });
        self.changes_password |= words::changes_password(text);
        self.access_key |= text.len() == 20 && text.starts_with(b"AKIA");
        // The user of `sudo -u` and `docker run -u` is the user who runs a program, and no password follows the user's
        // name.
        let short = self.previous.starts_with(b"--user") && self.previous != b"--user";
        self.user |= words::is_user(self.previous, text) && (short || !self.options.runs());
        let is_account = words::is_account(self.previous, text);
        self.signs_in |= short_user(self.previous) || is_account;
        let option = matches!(self.previous, b"-p" | b"-P" | b"--port");
        if option && self.port.is_empty() && text.iter().all(u8::is_ascii_digit) {
            self.port = self.previous;
        }
        if is_account || self.account.is_none() && words::makes_account(self.previous, text) {
            self.account = Some(0);
        } else if let Some(count) = self.account.as_mut().filter(|_| !text.starts_with(b"-")) {
            *count += 1;
        }
    }

    /// Whether the word that is being read is where a password can be: an earlier word signs in or creates an
    /// account, and the name of the account followed that word.
    pub fn follows_name(&self) -> bool {
        let apart = !self.previous.starts_with(b"-");
        apart && self.account.is_some_and(|count| count >= 2) && !self.options.is_plain()
    }

    /// Whether the command stores a secret (`create-secret`), so that the value of an option may be the secret.
    pub fn stores_secret(&self) -> bool {
        let words = self.line.iter().take(32);
        let pairs = words.clone().zip(words.skip(1));
        pairs
            .take_while(|(_, word)| !word.first)
            .any(|(previous, word)| words::stores_secret(previous.text, word.text))
    }

    /// Whether the command gave the port with the other letter of `-p` and `-P`, so that this
    /// option has the password: `-P 25575 -p X`.
    pub fn has_other_port(&self, option: &[u8]) -> bool {
        let port = self.port;
        !port.is_empty() && port != option && matches!(option, b"-p" | b"-P")
    }

    /// Whether a word of the command, such as `login`, signs in or creates an account.
    pub fn has_account(&self) -> bool {
        self.account.is_some()
    }

    /// Whether the word `text` that is being read is a pattern or is text for people. Such a word is only searched
    /// for secrets of known forms, and for assignments whose values look like tokens.
    pub fn is_text(&self, text: &[u8]) -> bool {
        let prose = |option| words::announces_prose(option) || self.options.announces_text(option);
        let head = text.split(|b| *b == b'=').next().unwrap_or_default();
        let joined = head.len() < text.len() && head.starts_with(b"--") && prose(head);
        let attached = text
            .get(..2)
            .filter(|head| text.len() > 2 && head.starts_with(b"-"));
        prose(self.previous)
            || self.options.takes_name(self.previous)
            || joined
            || attached.is_some_and(|head| self.options.announces_text(head))
            || (self.options.reads_text() || self.options.is_text()) && !text.starts_with(b"-")
    }

    /// Masks the last word of the command if the table of programs says that the last word of this command is a secret.
    pub fn end(&self, last: Option<&Word<'_>>, masks: &mut Masks) {
        if let Some(last) = last.filter(|_| self.options.last_is_secret()) {
            if !is_harmless(last.text) && !last.text.starts_with(b"-") {
                masks.add(last, 0..last.text.len());
            }
        }
    }
}

/// Whether an option for the name of a user has one letter (`-u`). The option for the password then
/// often has one letter, too.
fn short_user(option: &[u8]) -> bool {
    matches!(option, b"-u" | b"/u")
}
