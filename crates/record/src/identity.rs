//! Finds the user that COMMAND runs as, and the environment of COMMAND.

use std::ffi::{CString, OsString};
use std::io::{Error, ErrorKind};
use std::os::unix::ffi::OsStrExt;
use std::process::Command;

use nix::errno::Errno;
use nix::unistd::{Gid, Uid};
use tr_format::ci::TRACEPARENT;

use crate::{host, marks};

/// The user that COMMAND runs as.
#[derive(Clone, Debug)]
pub struct Identity {
    uid: Uid,
    gid: Gid,
    groups: Vec<Gid>,
    home: CString,
    shell: CString,
    name: CString,
}

impl Identity {
    /// Looks up the user with this name or number.
    ///
    /// # Errors
    /// There is no such user, or `tr` may not become another user.
    pub fn of(name: &str) -> Result<Identity, Error> {
        let [name, _, uid, gid, _, home, shell] = entry(name)?;
        let number = |text: &str| {
            text.parse()
                .map_err(|_| Error::from(ErrorKind::InvalidData))
        };
        let (uid, gid) = (Uid::from_raw(number(&uid)?), Gid::from_raw(number(&gid)?));
        if !Uid::effective().is_root() && uid != Uid::effective() {
            return Err(Errno::EPERM.into());
        }
        let groups = answer("id", &["-G", "--", &name])?;
        let groups = groups.split_ascii_whitespace();
        let groups = groups.map(|group| number(group).map(Gid::from_raw));
        Ok(Identity {
            uid,
            gid,
            groups: groups.collect::<Result<_, _>>()?,
            home: CString::new(home)?,
            shell: CString::new(shell)?,
            name: CString::new(name)?,
        })
    }

    /// The numbers of the user and of the user's group (uid, gid).
    pub fn ids(&self) -> (Uid, Gid) {
        (self.uid, self.gid)
    }

    /// Whether this user is not the one who runs `tr`.
    pub fn is_other(&self) -> bool {
        self.uid != Uid::effective()
    }

    /// Makes this process run as this user, irrevocably.
    pub fn assume(&self) -> Result<(), Errno> {
        if Uid::effective().is_root() {
            nix::unistd::setgroups(&self.groups)?;
            nix::unistd::setresgid(self.gid, self.gid, self.gid)?;
        }
        nix::unistd::setresuid(self.uid, self.uid, self.uid)
    }
}

/// The name of the user with this number (uid); `None` if there is no such user.
pub fn user_name(uid: u32) -> Option<String> {
    let [name, ..] = entry(&uid.to_string()).ok()?;
    Some(name)
}

/// The seven fields of the passwd(5) entry for the user with this name or number. They are read by running `getent`.
/// glibc's `getpwnam` is not used, because it loads shared modules, which a statically linked `tr` can only use if
/// they belong to the same version of glibc.
fn entry(user: &str) -> Result<[String; 7], Error> {
    // No user name begins with `-`, and getent would take such a name for an option. A `--` before the name does not
    // help, because Alpine's getent takes `--` for a name.
    if user.starts_with('-') {
        return Err(no_such_user());
    }
    let line = answer("getent", &["passwd", user])?;
    let fields: Vec<String> = line.trim_end().split(':').map(str::to_owned).collect();
    fields.try_into().map_err(|_| ErrorKind::InvalidData.into())
}

/// Runs a program that looks up users, and returns its standard output.
fn answer(program: &str, args: &[&str]) -> Result<String, Error> {
    let output = Command::new(program).args(args).output();
    let output = output.map_err(|error| Error::new(error.kind(), format!("{program}: {error}")))?;
    if !output.status.success() {
        // getent(1) has the status 2 for: "One or more supplied key could not be found in the database."
        return Err(match output.status.code() {
            Some(2) => no_such_user(),
            _ => Error::other(format!("{program}: {}", output.status)),
        });
    }
    String::from_utf8(output.stdout).map_err(|_| ErrorKind::InvalidData.into())
}

fn no_such_user() -> Error {
    Error::new(ErrorKind::NotFound, "there is no such user")
}

/// The environment that COMMAND gets; `None` if it equals the environment of `tr`. `original` is the environment from
/// before the dynamic loader changed it; `None` if the loader has not changed the environment.
pub fn environment(
    user: Option<&Identity>,
    original: Option<Vec<CString>>,
) -> Option<Vec<CString>> {
    let context = host::own_context();
    if user.is_none() && original.is_none() && context.is_none() {
        return None;
    }
    let mut variables = original.unwrap_or_else(|| {
        let word = |(name, value): (OsString, OsString)| {
            CString::new([name.as_bytes(), b"=", value.as_bytes()].concat()).ok()
        };
        std::env::vars_os().filter_map(word).collect()
    });
    if let Some(user) = user {
        // The variables that sudo has set describe another user than the one that COMMAND runs as.
        for name in ["SUDO_UID", "SUDO_GID", "SUDO_USER", "SUDO_COMMAND"] {
            replace(&mut variables, name, None);
        }
        for (name, value) in [
            ("HOME", &user.home),
            ("USER", &user.name),
            ("LOGNAME", &user.name),
            ("SHELL", &user.shell),
        ] {
            replace(&mut variables, name, Some(value.as_bytes()));
        }
    }
    // `tr` has set this variable for COMMAND since its own start, so the environment `original`, from before that,
    // lacks the variable.
    if let Some(path) = std::env::var_os(marks::VARIABLE) {
        replace(&mut variables, marks::VARIABLE, Some(path.as_bytes()));
    }
    if let Some(context) = context {
        let value = context.to_string();
        replace(&mut variables, TRACEPARENT, Some(value.as_bytes()));
    }
    Some(variables)
}

/// Sets the variable `name` of an environment to this value, or removes the variable.
fn replace(variables: &mut Vec<CString>, name: &str, value: Option<&[u8]>) {
    let begin = [name.as_bytes(), b"="].concat();
    variables.retain(|variable| !variable.as_bytes().starts_with(&begin));
    variables.extend(value.and_then(|value| CString::new([&begin, value].concat()).ok()));
}
