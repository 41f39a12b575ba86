//! Reads defaults of the command line from configuration files: the user's file, and that of the project in whose
//! directory `tr` is called.
//!
//! A project's file may come from strangers. So both files can only have masks for secrets (in addition to those of
//! the command line), names of steps, settings of the display, and thresholds. No key can choose a file to write, a
//! recording method or a program to run.

use std::fs::{File, OpenOptions};
use std::io::Read;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use crate::errors;
use crate::subcommand::{Key, KeyKind, Row};
use clap::builder::Resettable;
use toml::de::{DeTable, DeValue};
use tr_programs::own::OwnRule;

const PROJECT: &str = "tr.toml";
/// The name of the key, and option of `tr diff`, whose threshold decides the exit status.
const GATE: &str = "fail-over";
/// The size in bytes of the largest configuration file (`tr.toml`) that is read, and the largest number of
/// values of one key.
const LARGEST_CONFIG: (u64, usize) = (64 << 10, 100);
/// The key `pager` of the configuration files (`tr.toml`): whether `tr` uses a pager. It is the only key that
/// is no option of a subcommand.
const PAGER: Key = Key::new("display", "pager", KeyKind::Pager);

/// A key of a configuration file (`tr.toml`) with the values that the file gives it.
#[derive(Clone, Debug)]
pub struct Setting {
    key: &'static Key,
    /// The names of the subcommands whose option this setting sets.
    commands: Vec<&'static str>,
    values: Vec<String>,
    /// The user's rules for naming steps, if the key of this setting is one of the table `steps`; otherwise
    /// empty.
    rules: Vec<OwnRule>,
}

impl Setting {
    /// The setting's key as it stands in the configuration file, with its table: `display.pager`.
    #[cfg(feature = "record")]
    pub fn name(&self) -> String {
        format!("{}.{}", self.key.table, self.key.name)
    }

    /// The values that the configuration file gives the key, joined by commas.
    pub fn value(&self) -> String {
        self.values.join(", ")
    }

    /// The name of the command line option to which this setting gives a default.
    fn option(&self) -> &'static str {
        self.key.option.unwrap_or(self.key.name)
    }
}

/// A configuration file (`tr.toml`) that exists, with its settings.
#[derive(Clone, Debug)]
pub struct Settings {
    pub path: PathBuf,
    /// The settings in the configuration file, or the reason why the file is not used.
    pub content: Result<Vec<Setting>, Unused>,
}

/// The reason why a configuration file (`tr.toml`) is not used.
#[derive(Clone, Debug)]
pub enum Unused {
    /// The file is not trusted, because it belongs to another user than this one, or it is a symbolic link, no regular
    /// file or unreadable. The text is the reason. The settings are those in the file; `None` if they are not known.
    Foreign(String, Option<Vec<Setting>>),
    /// The configuration file has an error, which the text describes for the user.
    Wrong(String),
}

impl Unused {
    #[cfg(feature = "record")]
    pub fn why(&self) -> &str {
        match self {
            Unused::Foreign(why, _) | Unused::Wrong(why) => why,
        }
    }
}

/// The configuration files (`tr.toml`) that exist: the user's file first, then the project's, which overrides
/// it.
pub fn files(rows: &'static [Row]) -> Vec<Settings> {
    let user = user().and_then(|path| read(path, Writer::User, rows));
    let project = project().and_then(|path| read(path, Writer::Strangers, rows));
    user.into_iter().chain(project).collect()
}

/// The users who may have written a configuration file. The file in the user's directory of settings is the user's own,
/// but a project's file may come from strangers.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Writer {
    User,
    Strangers,
}

/// The path of the user's configuration file: `tr/config.toml` in the directory for settings
/// (XDG_CONFIG_HOME, or `.config` in the home directory).
fn user() -> Option<PathBuf> {
    let absolute = |name: &str| {
        std::env::var_os(name)
            .map(PathBuf::from)
            .filter(|path| path.is_absolute())
    };
    let base = absolute("XDG_CONFIG_HOME").or_else(|| Some(absolute("HOME")?.join(".config")))?;
    Some(base.join("tr/config.toml"))
}

/// The path of the project's configuration file: the nearest `tr.toml` from the working directory up to the
/// top of its git repository; outside of a repository, only the one in the working directory.
fn project() -> Option<PathBuf> {
    let here = std::env::current_dir().ok()?;
    let top = here
        .ancestors()
        .find(|dir| dir.join(".git").exists())
        .unwrap_or(&here);
    let dirs = here.ancestors().take_while(|dir| dir.starts_with(top));
    let mut files = dirs.map(|dir| dir.join(PROJECT));
    files.find(|file| std::fs::symlink_metadata(file).is_ok())
}

/// Reads a configuration file (`tr.toml`) of `tr`; `None` if there is no such file.
fn read(path: PathBuf, writer: Writer, rows: &'static [Row]) -> Option<Settings> {
    let strangers = writer == Writer::Strangers;
    // If a project's file were a link, an error message could print parts of any file. Opening a pipe would wait for a
    // writer.
    let flags = libc::O_NONBLOCK | if strangers { libc::O_NOFOLLOW } else { 0 };
    let opened = OpenOptions::new()
        .read(true)
        .custom_flags(flags)
        .open(&path);
    let content = match opened {
        Err(error) => match error.raw_os_error() {
            Some(libc::ENOENT | libc::ENOTDIR) => return None,
            // The user may not enter the home directory, which belongs to another user, as under setpriv or in
            // container images. That counts as having no configuration file.
            Some(libc::EACCES) if !strangers => return None,
            Some(libc::ELOOP) => Err(Unused::Foreign("it is a symbolic link".to_owned(), None)),
            _ => Err(Unused::Foreign(error.to_string(), None)),
        },
        Ok(file) => content(file, rows),
    };
    Some(Settings { path, content })
}

fn content(file: File, rows: &'static [Row]) -> Result<Vec<Setting>, Unused> {
    let meta = file.metadata();
    let meta = meta.map_err(|error| Unused::Foreign(error.to_string(), None))?;
    if !meta.is_file() {
        return Err(Unused::Foreign("it is no regular file".to_owned(), None));
    }
    let content = text(file).and_then(|text| settings(&text, rows).map_err(Unused::Wrong));
    if meta.uid() != nix::unistd::geteuid().as_raw() {
        let why = format!("it belongs to the user {}", meta.uid());
        return Err(Unused::Foreign(why, content.ok()));
    }
    content
}

fn text(file: File) -> Result<String, Unused> {
    let mut text = String::new();
    let read = file.take(LARGEST_CONFIG.0 + 1).read_to_string(&mut text);
    read.map_err(|error| match error.kind() {
        std::io::ErrorKind::InvalidData => Unused::Wrong(error.to_string()),
        _ => Unused::Foreign(error.to_string(), None),
    })?;
    if text.len() as u64 > LARGEST_CONFIG.0 {
        return Err(Unused::Wrong("larger than 64 KiB".to_owned()));
    }
    Ok(text)
}

/// Parses the settings in the text of a configuration file. The error is text for the user.
fn settings(text: &str, rows: &'static [Row]) -> Result<Vec<Setting>, String> {
    let line = |at: usize| text.bytes().take(at).filter(|byte| *byte == b'\n').count() + 1;
    let top = DeTable::parse(text).map_err(|error| {
        let at = error.span().map_or(1, |span| line(span.start));
        format!("line {at}: {}", error.message())
    })?;
    let mut settings = Vec::new();
    for (table, content) in top.get_ref() {
        let at = line(table.span().start);
        let table: &str = table.get_ref();
        let DeValue::Table(content) = content.get_ref() else {
            return Err(format!("line {at}: write {table} as a table: [{table}]"));
        };
        for (key, value) in content {
            let at = line(key.span().start);
            let key: &str = key.get_ref();
            let Some(known) = known(table, key, rows) else {
                return Err(format!("line {at}: unknown key {table}.{key}"));
            };
            let is_switch = matches!(known.kind, KeyKind::MaskAll | KeyKind::Pager);
            let typed = |value: &DeValue<'_>| !is_switch || value.is_bool();
            let value = value.get_ref();
            let values = Some(value)
                .filter(|value| typed(value))
                .and_then(values)
                .ok_or_else(|| {
                    format!(
                        "line {at}: {table}.{key}: wrong type, more than {} values, or hidden characters",
                        LARGEST_CONFIG.1
                    )
                })?;
            let rules = if let KeyKind::Steps(kind) = known.kind {
                let rules = values.iter().map(|rule| OwnRule::parse(kind, rule));
                let rules: Result<_, String> = rules.collect();
                rules.map_err(|why| format!("line {at}: {table}.{key}: {why}"))?
            } else {
                Vec::new()
            };
            settings.push(Setting {
                key: known,
                commands: commands(known, rows),
                values,
                rules,
            });
        }
    }
    Ok(settings)
}

/// The definition of the key with this name in the given table of a configuration file (`tr.toml`), if `tr`
/// knows such a key.
fn known(table: &str, name: &str, rows: &'static [Row]) -> Option<&'static Key> {
    let mut keys = rows
        .iter()
        .flat_map(|row| row.keys)
        .chain(std::iter::once(&PAGER));
    keys.find(|key| key.table == table && key.name == name)
}

/// The names of the subcommands that have the option which this key sets.
fn commands(key: &Key, rows: &'static [Row]) -> Vec<&'static str> {
    let is = |other: &Key| other.table == key.table && other.name == key.name;
    let having = rows.iter().filter(|row| row.keys.iter().any(is));
    having.map(Row::name).collect()
}

/// The values of a key in a configuration file as texts for the command line: one value, or the elements of a
/// list. `None` if a value has a type that no option accepts.
fn values(value: &DeValue<'_>) -> Option<Vec<String>> {
    // clap prints a refused value unchanged, so a value with control characters is not passed to clap.
    let shown = |text: &str| !text.chars().any(char::is_control);
    let one = |value: &DeValue<'_>| match value {
        DeValue::String(text) => Some(text.to_string()).filter(|text| shown(text)),
        DeValue::Integer(number) if number.radix() == 10 => Some(number.as_str().replace('_', "")),
        DeValue::Float(number) => Some(number.as_str().replace('_', "")),
        DeValue::Boolean(is) => Some(is.to_string()),
        _ => None,
    };
    match value {
        DeValue::Array(all) if all.len() <= LARGEST_CONFIG.1 => {
            all.iter().map(|value| one(value.get_ref())).collect()
        }
        value => Some(vec![one(value)?]),
    }
}

/// The settings of all trusted configuration files (`tr.toml`). Those of a later file, which override earlier
/// ones, come last.
///
/// # Errors
/// The first file with an error. The command must not go on then: without a mask that the file asks
/// for, a secret would be kept.
pub fn used(files: &[Settings]) -> Result<Vec<Setting>, String> {
    let mut all = Vec::new();
    for file in files {
        match &file.content {
            Ok(settings) => all.extend(settings.iter().cloned()),
            Err(Unused::Foreign(..)) => {}
            Err(Unused::Wrong(why)) => {
                let path = errors::shown(&file.path);
                return Err(format!("{path}: {}", tr_text::escape::text(why.as_bytes())));
            }
        }
    }
    Ok(all)
}

/// Warns on standard error about configuration files that are not trusted, so that the masks for secrets in
/// them are not applied.
pub fn warn_of_unused(files: &[Settings]) {
    for file in files {
        if let Err(Unused::Foreign(why, _)) = &file.content {
            let path = errors::shown(&file.path);
            message!("{path} is not used: {why}");
        }
    }
}

/// Handles configuration files that are not trusted and may set a threshold of `tr diff`. Only thresholds that neither
/// the command line (`given`) nor a later file sets count. If such a threshold is the gate's (`--fail-over`), returns
/// the reason why the gate cannot decide. For others, and for a file whose settings are not known unless the command
/// line sets the gate's threshold, prints a warning.
pub fn without_thresholds(files: &[Settings], given: impl Fn(&str) -> bool) -> Option<String> {
    let mut gate = None;
    for (at, file) in files.iter().enumerate() {
        let Err(Unused::Foreign(why, known)) = &file.content else {
            continue;
        };
        let path = errors::shown(&file.path);
        let later = files.iter().skip(at + 1);
        let later = later.flat_map(|file| file.content.iter().flatten());
        let later: Vec<&str> = later.map(Setting::option).collect();
        let missing = known.iter().flatten().filter(|setting| {
            let option = setting.option();
            setting.key.kind == KeyKind::Threshold && !given(option) && !later.contains(&option)
        });
        let missing: Vec<&str> = missing.map(Setting::option).collect();
        if missing.contains(&GATE) {
            gate = Some(format!(
                "{path} has a limit for --{GATE}, and is not used: {why}\n    \
                 nothing is decided; give --{GATE} on the command line"
            ));
        } else if known.is_none() && !given(GATE) {
            message!("{path} is not used: {why}");
        } else if !missing.is_empty() {
            let missing = missing.join(", --");
            message!("{path} is not used: {why}; it sets --{missing}");
        }
    }
    gate
}

/// The path of the configuration file whose setting is the default of an option; `None` if none sets it.
pub fn origin<'a>(files: &'a [Settings], option: &str) -> Option<&'a Path> {
    let mut files = files.iter().rev();
    let sets = |file: &&Settings| {
        let settings = file.content.iter().flatten();
        settings
            .map(Setting::option)
            .any(|name| option.trim_start_matches('-').split([' ', '=']).next() == Some(name))
    };
    files.find(sets).map(|file| file.path.as_path())
}

/// Whether the settings of the configuration files allow a pager for long text, as is the default.
pub fn pager(settings: &[Setting]) -> bool {
    let pager = settings
        .iter()
        .rev()
        .find(|setting| setting.key.kind == KeyKind::Pager);
    pager.is_none_or(|setting| setting.value() != "false")
}

/// Adds the settings of the configuration files to the definition of the command line, as default values of
/// options. If `display` is false, because a machine reads the output, settings about the display are left
/// out.
pub fn defaults(mut command: clap::Command, settings: &[Setting], display: bool) -> clap::Command {
    let applies = |setting: &&Setting| match setting.key.kind {
        KeyKind::Display => display,
        KeyKind::Threshold => true,
        KeyKind::MaskAll => setting.value() == "true",
        KeyKind::Mask | KeyKind::Pager | KeyKind::Steps(_) => false,
    };
    for setting in settings.iter().filter(applies) {
        for name in &setting.commands {
            // A program that was built without this subcommand ignores its settings.
            if command.find_subcommand(name).is_some() {
                command =
                    command.mut_subcommand(name, |subcommand| with_default(subcommand, setting));
            }
        }
    }
    command
}

/// The definition of a subcommand in which the setting's values are the default of its option.
fn with_default(subcommand: clap::Command, setting: &Setting) -> clap::Command {
    let id = |option: &str| option.replace('-', "_");
    let own = id(setting.option());
    // A program that was built without recording knows `record` only as a word without options.
    if !subcommand
        .get_arguments()
        .any(|arg| arg.get_id() == own.as_str())
    {
        return subcommand;
    }
    // clap requires texts that live as long as the program, so this memory is never freed.
    let leak = |value: &String| -> &'static str { value.clone().leak() };
    let values: Vec<&'static str> = setting.values.iter().map(leak).collect();
    let subcommand = subcommand.mut_arg(own, |arg| arg.default_values(values));
    // clap does not count a default value as given. So clap would refuse an option that requires this one, although the
    // file sets this one. The requirement is therefore removed.
    let free = |arg: clap::Arg| arg.requires(Resettable::<clap::Id>::Reset);
    let requiring = setting.key.required_by.iter();
    requiring.fold(subcommand, |subcommand, option| {
        subcommand.mut_arg(id(option), free)
    })
}

/// The user's rules for naming steps from all configuration files. Rules of a later file come first, because
/// the first rule that matches counts.
pub fn step_rules(settings: &[Setting]) -> Vec<OwnRule> {
    let rules = settings.iter().rev().flat_map(|setting| &setting.rules);
    rules.cloned().collect()
}

/// The options with masks for secrets that the configuration files add to the command line of a subcommand,
/// such as `--mask REGEX`.
pub fn masks(settings: &[Setting], row: &Row) -> Vec<String> {
    let ours = |setting: &&Setting| {
        setting.key.kind == KeyKind::Mask && setting.commands.contains(&row.name())
    };
    let options = settings.iter().filter(ours);
    let each = |setting: &'_ Setting| -> Vec<String> {
        let values = setting.values.iter();
        values
            .map(|value| format!("--{}={value}", setting.option()))
            .collect()
    };
    options.flat_map(each).collect()
}
