//! Programs whose command line has a secret in a place of its own: behind a short option,
//! or at a position.

use crate::names;

/// The place of the secret.
enum Place {
    /// Joined with one of these options (`-pX`).
    Joined(&'static [&'static str]),
    /// The word after one of these options, or after their `=`.
    Apart(&'static [&'static str]),
    /// Both.
    Both(&'static [&'static str]),
    /// As `Both`, but only what follows the byte (`user,X`), if it is there.
    After(&'static [&'static str], u8),
    /// The n-th word that is neither an option nor an assignment.
    Position(usize),
    /// The last word.
    Last,
}

/// A place of a secret in the command lines of some programs.
struct Rule {
    names: &'static [&'static str],
    /// A word that must stand before: itself, its beginning if it ends with a dot, or a flag
    /// among others.
    from: &'static str,
    place: Place,
}

const fn rule(names: &'static [&'static str], from: &'static str, place: Place) -> Rule {
    Rule { names, from, place }
}

#[rustfmt::skip]
const MYSQL: &[&str] = &[
    "mysql", "mysqldump", "mysqladmin", "mysqlimport", "mysqlcheck", "mysqlshow", "mysqlslap",
    "mysqlbinlog", "mariadb", "mariadb-dump", "mariadb-admin", "mariadb-import", "mariadb-check",
];
#[rustfmt::skip]
const REGISTRIES: &[&str] =
    &["docker", "podman", "buildah", "skopeo", "helm", "oras", "az", "crane", "nerdctl"];
#[rustfmt::skip]
const MONGO: &[&str] = &[
    "mongo", "mongosh", "mongodump", "mongorestore", "mongoexport", "mongoimport", "twine", "cqlsh",
    "cypher-shell", "useradd", "usermod", "altool",
];
#[rustfmt::skip]
const LDAP: &[&str] = &[
    "ldapsearch", "ldapmodify", "ldapadd", "ldapdelete", "ldappasswd", "ldapwhoami", "kadmin",
];
const SQL_SERVER: &[&str] = &["sqlcmd", "bcp", "isql", "tsql", "p4", "ipmitool"];
const ORACLE: &[&str] = &["sqlplus", "expdp", "impdp", "rman"];
const SNMP: &[&str] = &["snmpwalk", "snmpget", "snmpset", "snmptrap", "snmpbulkwalk"];
const PDF: &[&str] = &["pdftotext", "pdftoppm", "pdfimages", "pdfinfo", "pdftohtml"];
const COMPOSER: &[&str] = &["composer", "poetry"];
const KEYCHAINS: Place = Place::Both(&["-p"]);

#[rustfmt::skip]
const RULES: [Rule; 56] = [
    rule(MYSQL, "", Place::Joined(&["-p"])),
    rule(&["curl"], "", Place::Both(&["-u", "-U", "--user", "--proxy-user"])),
    rule(&["curl"], "", Place::After(&["-b", "--cookie"], b'=')),
    rule(&["curl"], "", Place::After(&["-E", "--cert", "--proxy-cert"], b':')),
    rule(&["http", "https", "xh", "xhs"], "", Place::Both(&["-a"])),
    rule(&["lftp", "open"], "", Place::After(&["-u"], b',')),
    rule(&["sshpass"], "", Place::Both(&["-p"])),
    // sshpass runs one of these, which have a -p of their own.
    rule(&["ssh", "scp", "sftp", "rsync"], "", Place::Joined(&[])),
    rule(&["ssh-keygen"], "", Place::Apart(&["-N", "-P"])),
    rule(&["redis-cli"], "", Place::Apart(&["-a"])),
    rule(REGISTRIES, "login", Place::Both(&["-p"])),
    rule(&["az"], "secret", Place::Apart(&["--value"])),
    rule(&["aws"], "put-parameter", Place::Apart(&["--value"])),
    rule(&["gh"], "secret", Place::Both(&["-b", "--body"])),
    rule(&["kubectl", "oc"], "secret", Place::Apart(&["--from-literal"])),
    rule(MONGO, "", Place::Both(&["-p"])),
    rule(LDAP, "", Place::Both(&["-w"])),
    rule(SQL_SERVER, "", Place::Both(&["-P"])),
    rule(ORACLE, "", Place::Position(1)),
    rule(SNMP, "", Place::Apart(&["-A", "-X"])),
    rule(PDF, "", Place::Apart(&["-upw", "-opw"])),
    rule(&["pdftk"], "", Place::Apart(&["user_pw", "owner_pw", "input_pw"])),
    rule(&["zip", "unzip"], "", Place::Both(&["-P"])),
    rule(&["7z", "7za", "7zr", "7zz"], "", Place::Joined(&["-p"])),
    rule(&["rar", "unrar"], "", Place::Joined(&["-p", "-hp"])),
    rule(&["openssl"], "", Place::Apart(&["-k", "-K"])),
    rule(&["openssl"], "passwd", Place::Last),
    rule(&["mkpasswd"], "", Place::Last),
    rule(&["htpasswd"], "-b", Place::Last),
    rule(&["wpa_passphrase"], "", Place::Position(2)),
    rule(&["nmcli"], "", Place::Apart(&["password"])),
    rule(&["smbclient"], "", Place::Apart(&["-U", "--user"])),
    rule(&["xfreerdp", "wlfreerdp"], "", Place::Joined(&["/p:"])),
    rule(&["rdesktop"], "", Place::Both(&["-p"])),
    rule(&["swaks"], "", Place::Apart(&["-ap"])),
    rule(&["security"], "unlock-keychain", KEYCHAINS),
    rule(&["security"], "create-keychain", KEYCHAINS),
    rule(&["security"], "import", Place::Apart(&["-P"])),
    rule(&["security"], "set-key-partition-list", Place::Apart(&["-k"])),
    rule(&["signtool"], "", Place::Apart(&["/p"])),
    rule(&["nuget"], "push", Place::Apart(&["-k"])),
    rule(&["nuget"], "setapikey", Place::Position(1)),
    rule(&["cypress"], "", Place::Apart(&["--key"])),
    rule(&["cargo"], "login", Place::Position(1)),
    rule(&["vault"], "login", Place::Position(1)),
    rule(&["vault"], "unseal", Place::Position(1)),
    rule(&["snyk"], "auth", Place::Position(1)),
    rule(&["ngrok"], "authtoken", Place::Position(1)),
    rule(&["rclone"], "obscure", Place::Position(1)),
    rule(&["mc"], "alias", Place::Position(5)),
    rule(&["rabbitmqctl"], "add_user", Place::Position(2)),
    rule(&["rabbitmqctl"], "change_password", Place::Position(2)),
    rule(&["neo4j-admin"], "set-initial-password", Place::Position(1)),
    rule(COMPOSER, "http-basic.", Place::Position(2)),
    rule(COMPOSER, "github-oauth.", Place::Position(1)),
    rule(COMPOSER, "bearer.", Place::Position(1)),
];

/// Programs that take a secret's name with `--secret`.
const NAMED_SECRETS: [&str; 7] = [
    "docker", "podman", "buildah", "nerdctl", "gcloud", "buildctl", "kubectl",
];

/// The secret in a word, if there is one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Found {
    /// None.
    #[default]
    No,
    /// From this byte of the word.
    From(usize),
    /// The next word; after this byte in it, if there is one.
    Next(Option<u8>),
}

struct Active {
    rule: &'static Rule,
    /// The word that must stand before was there.
    armed: bool,
    /// Words since then.
    words: usize,
}

/// Reads a command line from left to right.
#[derive(Default)]
pub struct Options {
    active: Vec<Active>,
    named_secrets: bool,
}

impl Options {
    /// The secret that the next word holds or announces.
    pub fn see(&mut self, word: &[u8]) -> Found {
        // `ProxyCommand=sshpass`, `/usr/bin/mysql`.
        let base = word
            .rsplit(|b| b"/=".contains(b))
            .next()
            .unwrap_or_default();
        let named = |names: &[&str]| names.iter().any(|name| name.as_bytes() == base);
        let mut rules = RULES.iter().filter(|rule| named(rule.names)).peekable();
        let inside = |active: &Active| active.rule.from.as_bytes() == word;
        if rules.peek().is_some() && !self.active.iter().any(inside) {
            let active = |rule: &'static Rule| Active {
                rule,
                armed: rule.from.is_empty(),
                words: 0,
            };
            self.active = rules.map(active).collect();
            self.named_secrets = named(&NAMED_SECRETS);
            return Found::No;
        }
        self.named_secrets |= named(&NAMED_SECRETS);
        let found = self.active.iter_mut().map(|active| active.see(word));
        found.fold(
            Found::No,
            |first, found| if first == Found::No { found } else { first },
        )
    }

    /// The program's `--secret` takes a name.
    pub fn takes_name(&self, option: &[u8]) -> bool {
        self.named_secrets && option.starts_with(b"--secret")
    }

    /// The last word is a secret.
    pub fn last_is_secret(&self) -> bool {
        let last = |active: &Active| {
            active.armed && active.words > 0 && matches!(active.rule.place, Place::Last)
        };
        self.active.iter().any(last)
    }
}

impl Active {
    fn see(&mut self, word: &[u8]) -> Found {
        if !self.armed {
            self.armed = starts(self.rule.from, word);
            return Found::No;
        }
        let is_word = !word.starts_with(b"-") && !word.contains(&b'=');
        self.words += usize::from(is_word);
        match self.rule.place {
            Place::Joined(options) => option(options, word, true, false, None),
            Place::Apart(options) => option(options, word, false, true, None),
            Place::Both(options) => option(options, word, true, true, None),
            Place::After(options, byte) => option(options, word, true, true, Some(byte)),
            // Oracle's user/X@database.
            Place::Position(1) if self.rule.names == ORACLE => {
                let slash = word.iter().position(|b| *b == b'/');
                match slash.filter(|_| is_word && self.words == 1) {
                    Some(slash) if !word.starts_with(b"@") => Found::From(slash + 1),
                    _ => Found::No,
                }
            }
            Place::Position(n) if is_word && self.words == n => Found::From(0),
            Place::Position(_) | Place::Last => Found::No,
        }
    }
}

/// The word from which on a rule applies.
fn starts(from: &str, word: &[u8]) -> bool {
    let from = from.as_bytes();
    match from {
        [b'-', flag] => {
            let letters = word.strip_prefix(b"-").unwrap_or_default();
            letters.iter().all(u8::is_ascii_alphabetic) && letters.contains(flag)
        }
        [.., b'.'] => word.starts_with(from),
        _ => word == from,
    }
}

fn option(options: &[&str], word: &[u8], joined: bool, apart: bool, after: Option<u8>) -> Found {
    for option in options.iter().map(|option| option.as_bytes()) {
        let long = option.starts_with(b"--");
        let part = |from: usize| match after {
            None => Found::From(from),
            Some(byte) => {
                let value = word.get(from..).unwrap_or_default();
                let at = value.iter().position(|b| *b == byte);
                at.map_or(Found::No, |at| Found::From(from + at + 1))
            }
        };
        match word.strip_prefix(option) {
            Some([]) if apart => return Found::Next(after),
            Some([b'=', _, ..]) if long => return part(option.len() + 1),
            Some([_, ..]) if joined && !long => return part(option.len()),
            _ => {}
        }
        // `-sSu` is `-s -S -u`, of curl.
        let cluster = word.len() <= 5 && word.iter().skip(1).all(u8::is_ascii_alphabetic);
        if option == b"-u" && cluster && word.starts_with(b"-") && word.ends_with(b"u") {
            return Found::Next(after);
        }
    }
    Found::No
}

/// The position of the secret in a word that [`Found::Next`] announced.
pub fn next(word: &[u8], after: Option<u8>) -> Option<usize> {
    let from = match after {
        None => 0,
        Some(byte) => word.iter().position(|b| *b == byte)? + 1,
    };
    let value = word.get(from..)?;
    (!names::is_harmless(value)).then_some(from)
}
