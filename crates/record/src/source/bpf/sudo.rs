//! Uses BPF programs that were attached by the loader, a `tr` that sudo runs. This `tr` itself has no right to load
//! programs, but may read their memory and, on most kernels, their iterators.

use std::io::{ErrorKind, Read};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use tr_bpf::{Helper, Programs, Settings, Tracer};
use zerocopy::IntoBytes;

use super::loader::ITERATOR;
use super::request::{Reply, Request};
use crate::error::{Error, SudoRefusal as Refusal, LOADER_LIMIT};
use crate::{host, passing};

/// The first argument with which `tr` is executed as the loader.
pub const LOADER: &str = "bpf-loader";
/// The longest wait for the end of sudo after an error. Then sudo's message is read.
const LAST_WORDS: Duration = Duration::from_millis(500);

pub struct Attached {
    pub tracer: Tracer,
    /// The process of sudo that ran the loader. sudo ends after the loader.
    pub sudo: Option<Sudo>,
}

pub fn attach(settings: &Settings) -> Result<Attached, Error> {
    let request = Request::of(settings).ok_or_else(|| failed("too many processes to follow"))?;
    let (ours, theirs) = UnixStream::pair().map_err(Error::System)?;
    // The time-out limits each wait for a message from the loader.
    let limited = ours.set_read_timeout(Some(LOADER_LIMIT));
    limited.map_err(Error::System)?;
    let mut sudo = Sudo::start(theirs.into())?;
    let mut reply = Reply::empty();
    let begun = Instant::now();
    let received = passing::send(&ours, request.as_bytes(), &[])
        .and_then(|()| passing::receive(&ours, reply.as_mut_bytes()));
    let descriptors = received.map_err(|_| {
        if begun.elapsed() >= LOADER_LIMIT {
            Refusal::Silent
        } else {
            sudo.refusal()
        }
    })?;
    let parts = reply.read().map_err(|reason| failed(&reason))?;
    let programs = Programs::from_descriptors(descriptors, parts);
    let programs = programs.ok_or_else(|| failed("the loader is another version of tr"))?;
    // If the kernel refuses iterators to `tr`, the loader keeps running and opens them for `tr`.
    let helper = match programs.iterator() {
        Ok(_) => None,
        Err(_) => Some(Box::new(move || iterator(&ours)) as Helper),
    };
    Ok(Attached {
        tracer: Tracer::new(programs, settings)?.with_helper(helper),
        sudo: Some(sudo),
    })
}

/// Requests a BPF iterator over the tasks from the loader, and returns its descriptor.
fn iterator(loader: &UnixStream) -> std::io::Result<OwnedFd> {
    passing::send(loader, &ITERATOR, &[])?;
    let mut descriptors = passing::receive(loader, &mut [0])?;
    let none = || std::io::Error::from(ErrorKind::PermissionDenied);
    descriptors.pop().ok_or_else(none)
}

fn failed(reason: &str) -> Refusal {
    Refusal::Failed(reason.to_owned())
}

/// Whether this is a machine that a CI provider uses for a single job and where, by the provider's
/// documentation, sudo asks for no password. Elsewhere a refused `sudo -n` would be reported to the
/// administrator.
pub fn is_usual() -> bool {
    let is = |name: &str, value: &str| std::env::var(name).is_ok_and(|found| found == value);
    is("GITHUB_ACTIONS", "true") && is("RUNNER_ENVIRONMENT", "github-hosted")
}

#[derive(Debug)]
pub struct Sudo(Option<Child>);

impl Sudo {
    fn start(socket: OwnedFd) -> Result<Sudo, Error> {
        let mut command = Command::new("sudo");
        // Standard output is a pipe as well, because sudo changes the modes of a terminal.
        command
            .args(["-n", "--"])
            .arg(program()?)
            .arg(LOADER)
            .env("LC_ALL", "C")
            .stdin(socket)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        match command.spawn() {
            Ok(child) => Ok(Sudo(Some(child))),
            Err(error) if error.kind() == ErrorKind::NotFound => Err(Refusal::Absent.into()),
            Err(error) => Err(failed(&format!("cannot execute sudo: {error}")).into()),
        }
    }

    /// Takes the exit status of sudo if sudo has ended, so that its process does not remain a zombie.
    pub fn reap(&mut self) {
        let Some(child) = &mut self.0 else { return };
        if !matches!(child.try_wait(), Ok(None)) {
            self.0 = None;
        }
    }

    /// The reason why the loader has closed its socket, as found in sudo's messages.
    fn refusal(&mut self) -> Refusal {
        let Some(mut child) = self.0.take() else {
            return failed("sudo has ended");
        };
        let end = Instant::now() + LAST_WORDS;
        while matches!(child.try_wait(), Ok(None)) && Instant::now() < end {
            host::pause(Duration::from_millis(2));
        }
        let mut said = [0; 1024];
        let len = match (child.try_wait(), &mut child.stderr) {
            // sudo has ended, so that its messages are complete and can be read without a wait.
            (Ok(Some(_)), Some(stderr)) => stderr.read(&mut said).unwrap_or(0),
            _ => 0,
        };
        let said = String::from_utf8_lossy(said.get(..len).unwrap_or_default());
        let line = said.lines().rfind(|line| !line.trim().is_empty());
        match line.map(str::trim) {
            Some(line) if line.contains("password is required") => Refusal::Password,
            Some(line) => failed(line),
            None => failed("the loader was killed"),
        }
    }
}

/// The path by which root can execute the present `tr` program.
fn program() -> Result<PathBuf, Error> {
    std::env::current_exe().map_err(|error| failed(&format!("/proc/self/exe: {error}")).into())
}
