//! Gives processes, threads and containers their labels.

use tr_analyze::containers::Called;
use tr_analyze::model::{Process, Thread};
use tr_format::event::{Argv, Comm};
use tr_programs::command_line;
use tr_programs::program_name::ProgramName;
use tr_text::phrase::Phrase;
use tr_text::{escape, units};

/// The name of the program that a process runs: the program's file, a script, or a tool with its verb (`git clone`).
/// The name of a process without arguments is its comm; that of a container's first process is `container`.
pub fn program(process: &Process) -> ProgramName {
    if process.role.container.is_some() {
        return ProgramName::new(CONTAINER);
    }
    command_line::program_of(&process.argv, &process.comm)
}

/// The label of a process for people, such as `cc1 lparser.c`, `ld lua`, `make -C src` or `foo.py x`. The text of a
/// script on its command line is shortened.
pub fn label(process: &Process) -> String {
    labelled(process, command_line::label_of)
}

/// The label of a process for machine formats, with the whole text of a script on its command line.
pub fn whole(process: &Process) -> String {
    labelled(process, command_line::whole_label_of)
}

/// The parts of the label of a process for people: the program, and each of the arguments that the label shows. The
/// label has a space between two parts. A label that is not made from a command line is one part.
pub fn parts(process: &Process) -> Vec<String> {
    named(process).map_or_else(
        || command_line::label_parts_of(&process.argv, &process.comm, process.execs.is_empty()),
        |name| vec![name],
    )
}

/// The label of a process. `of_program` makes the label from a command line, unless the process is a kernel thread, a
/// container or a server, which have labels of another kind.
fn labelled(process: &Process, of_program: fn(&Argv, &Comm, bool) -> String) -> String {
    named(process)
        .unwrap_or_else(|| of_program(&process.argv, &process.comm, process.execs.is_empty()))
}

/// The label of a process that is not made from its command line: of a kernel thread, a container or a server.
fn named(process: &Process) -> Option<String> {
    if process.role.kthread {
        return Some(format!("[{}]", escape::raw(process.comm.bytes())));
    }
    if let Some(called) = &process.role.container {
        return Some(container(called));
    }
    let is_server = process.role.shared;
    is_server.then(|| server(&server_name(process)))
}

/// The brief name of a process, for places where its label has no room: the part of the label that distinguishes the
/// process from others of its program. `None` if the label has no such part.
pub fn brief(process: &Process) -> Option<String> {
    if process.role.kthread || process.role.container.is_some() {
        return None;
    }
    if process.role.shared {
        return Some(server_name(process).to_string());
    }
    command_line::brief_of(&process.argv)
}

/// The label of a process, whole for machine formats and shortened for people.
pub fn phrase(process: &Process) -> Phrase {
    Phrase::new(whole(process), label(process))
}

/// The label of a program that a process executed, whole for machine formats and shortened for people.
pub fn of_program(argv: &Argv, comm: &Comm, forked: bool) -> Phrase {
    let whole = command_line::whole_label_of(argv, comm, forked);
    Phrase::new(whole, command_line::label_of(argv, comm, forked))
}

/// The label of a process, whole for machine formats and shortened to at most `columns` columns for people.
pub fn shortened(process: &Process, columns: usize) -> Phrase {
    Phrase::new(whole(process), units::shorten(&label(process), columns))
}

/// The facts from which the label of a process is made. A process is recognized by these facts in other recordings of
/// the same build.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Identity {
    /// A kernel thread, with its comm.
    KernelThread(String),
    /// The first process of a container.
    Container {
        /// The name that somebody gave the container, if it has one.
        name: Option<String>,
        image: String,
    },
    /// A server that several builds share, with its name.
    Server(ProgramName),
    /// Any other process, with the name of its program and the arguments that its label shows.
    Program(ProgramName, Vec<String>),
}

impl Identity {
    /// The facts from which the label of an executed program is made.
    pub fn of_program(argv: &Argv, comm: &Comm) -> Identity {
        let (program, arguments) = command_line::identity_of(argv, comm);
        Identity::Program(program, arguments)
    }

    pub fn of(process: &Process) -> Identity {
        if process.role.kthread {
            return Identity::KernelThread(escape::raw(process.comm.bytes()));
        }
        if let Some(called) = &process.role.container {
            let given = [&called.name, &called.id].into_iter();
            let mut given = given.filter(|name| !name.is_empty() && !is_made(name));
            return Identity::Container {
                name: given.next().map(|name| escape::raw(name)),
                image: escape::raw(&called.image),
            };
        }
        if process.role.shared {
            return Identity::Server(server_name(process));
        }
        Identity::of_program(&process.argv, &process.comm)
    }
}

/// The name that is shown as the program of a container's first recorded process.
const CONTAINER: &str = "container";

/// The number of digits of a container's id that docker shows.
const SHORT_ID: usize = 12;

/// Whether a container's id was made by a program: it has 64 hexadecimal digits, or BuildKit's 25 digits of base 36.
/// Any other id is a name that somebody gave.
fn is_made(id: &[u8]) -> bool {
    let base36 = |byte: &u8| byte.is_ascii_digit() || byte.is_ascii_lowercase();
    match id.len() {
        64 => id.iter().all(u8::is_ascii_hexdigit),
        25 => id.iter().all(base36),
        _ => false,
    }
}

/// The name that a user or a daemon gave a container, or else its id, which is shortened if a program made it
/// (`is_made`). `None` if both are unknown.
pub fn name_of_container(called: &Called) -> Option<String> {
    let short = called.id.get(..SHORT_ID).filter(|_| is_made(&called.id));
    let short = short.unwrap_or(&called.id);
    let mut names = [&*called.name, short].into_iter();
    let name = names.find(|text| !text.is_empty());
    name.map(escape::raw)
}

/// The name of a container for people, such as `container web (alpine:3)`. `container web (alpine:3, inferred)` means
/// that no daemon named the container's client, so that the client is only inferred.
pub fn container(called: &Called) -> String {
    let mut out = CONTAINER.to_owned();
    if let Some(name) = name_of_container(called) {
        out = format!("{out} {name}");
    }
    let image = (!called.image.is_empty()).then(|| escape::raw(&called.image));
    let inferred = called.inferred.then(|| "inferred".to_owned());
    let facts: Vec<String> = image.into_iter().chain(inferred).collect();
    if !facts.is_empty() {
        out = format!("{out} ({})", facts.join(", "));
    }
    out
}

/// The name for people of a server whose program has this name, such as `server postgres (shared)`.
pub fn server(name: &ProgramName) -> String {
    format!("server {name} (shared)")
}

/// The name of a server's program.
pub fn server_name(process: &Process) -> ProgramName {
    command_line::server_of(&process.argv, &process.comm)
}

/// The name of a thread for people: its comm with the label of its process.
pub fn thread(thread: &Thread, process: &Process) -> String {
    comm(thread) + &label(process)
}

/// The name of a thread, whole for machine formats and shortened for people: the thread's comm with the label of its
/// process.
pub fn thread_phrase(thread: &Thread, process: &Process) -> Phrase {
    let comm = comm(thread);
    Phrase::with([&phrase(process)], |[label]| format!("{comm}{label}"))
}

/// The comm of a thread as it is shown before the label of its process.
pub fn comm(thread: &Thread) -> String {
    format!("{} · ", escape::raw(thread.comm.bytes()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_cut_and_names_are_not() {
        let digits = "0123456789abcdef".repeat(4);
        for (id, want) in [
            (&*digits, "container 0123456789ab"),
            ("kqzb0v3m8r1tx5w7y9c2d4f6g", "container kqzb0v3m8r1t"),
            ("postgresdatabase1", "container postgresdatabase1"),
            (
                "PostgresDatabaseOfTests01",
                "container PostgresDatabaseOfTests01",
            ),
            ("web", "container web"),
        ] {
            let called = Called {
                id: id.as_bytes().into(),
                ..Called::default()
            };
            assert_eq!(container(&called), want);
        }
        let inferred = Called {
            name: b"web"[..].into(),
            image: b"alpine:3"[..].into(),
            inferred: true,
            ..Called::default()
        };
        assert_eq!(container(&inferred), "container web (alpine:3, inferred)");
    }
    /// A container is recognized by the name that somebody gave it. An id that a program made differs between runs.
    #[test]
    fn containers_are_recognized_by_their_names() {
        let identity = |name: &str, id: &str| {
            let called = Called {
                id: id.as_bytes().into(),
                name: name.as_bytes().into(),
                image: b"alpine:3"[..].into(),
                inferred: false,
            };
            let mut process = Process::default();
            process.role.container = Some(called.into());
            Identity::of(&process)
        };
        let of = |name: Option<&str>| Identity::Container {
            name: name.map(str::to_owned),
            image: "alpine:3".to_owned(),
        };
        let made = "kqzb0v3m8r1tx5w7y9c2d4f6g";
        assert_eq!(identity("web", made), of(Some("web")));
        assert_eq!(identity("", "web"), of(Some("web")));
        assert_eq!(identity("", made), of(None));
    }
}
