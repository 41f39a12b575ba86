//! Runs the tools that an agent calls: makes a `tr` command line from the arguments that the agent
//! gives, and runs it.

use std::ffi::OsString;
use std::io::{PipeReader, Read};
use std::os::fd::AsFd;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use nix::poll::{poll, PollFd, PollFlags, PollTimeout};
use nix::sys::signal::{kill, Signal};
use serde_json::{json, Map, Value};
use tr_text::called::TR;

use crate::answer::{self, Page};
use crate::server::Server;
use crate::tool::{AgentTool, Takes, TakesKind};

/// `LIMIT` is the longest time for which the tool `record` may run. `GRACE` is the further time in which the recorder
/// has to end by itself after this limit.
const LIMIT: Duration = Duration::from_secs(3600);
const GRACE: Duration = Duration::from_secs(10);
/// `ANSWER` is the longest time for which a tool other than `record` may run, because MCP clients wait for a minute.
/// The `tr` command gets this limit as an option. A command that does not keep the limit is killed when it has run for
/// the time in `KILL_AFTER`.
const ANSWER: Duration = Duration::from_secs(45);
const KILL_AFTER: Duration = Duration::from_secs(50);
/// The number of bytes that are kept from the end of a command's messages.
const MESSAGE_BYTES: usize = 4096;
/// The number of bytes that a pipe holds by default (pipe(7)). After a command has ended, its pipe contains at most
/// this many bytes of unread output.
const PIPE: usize = 64 << 10;
/// The smallest exit status of a `tr` command that could not do what was requested.
const FAILED_STATUS: i32 = 2;
/// The largest number of characters of an agent's own words that an error message repeats.
pub const REPEATED_CHARS: usize = 200;

/// The tools that the server offers to the agent. The tools that run commands come last, and are offered only if the
/// user permits the agent to run commands.
fn offered(server: &Server) -> impl Iterator<Item = &'static AgentTool> + '_ {
    let all = || server.tools.iter().copied();
    let others = all().filter(|tool| !tool.records());
    others.chain(all().filter(|tool| server.records && tool.records()))
}

/// The tool with this name, if the server offers it to the agent.
pub fn find(server: &Server, name: &str) -> Option<&'static AgentTool> {
    offered(server).find(|tool| tool.name == name)
}

/// The list of offered tools in the JSON form that the Model Context Protocol demands.
pub fn list(server: &Server) -> Vec<Value> {
    offered(server)
        .map(|tool| described(server, tool))
        .collect()
}

fn described(server: &Server, tool: &AgentTool) -> Value {
    let mut properties = Map::new();
    let mut required = Vec::new();
    for Takes(name, kind, about) in tool.takes {
        let list = json!({ "type": "array", "items": { "type": "string" }, "description": about });
        let one = |kind: &str| json!({ "type": kind, "description": about });
        let property = match kind {
            TakesKind::Files | TakesKind::Texts | TakesKind::Command => list,
            TakesKind::Word(words) => {
                json!({ "type": "string", "enum": words, "description": about })
            }
            TakesKind::Number => one("integer"),
            TakesKind::Switch => one("boolean"),
            TakesKind::File | TakesKind::Report | TakesKind::Text | TakesKind::Output => {
                one("string")
            }
        };
        properties.insert((*name).into(), property);
        if matches!(kind, TakesKind::Files | TakesKind::Command) {
            required.push(*name);
        }
    }
    if !tool.records() {
        let about = "from an answer that said there is more";
        properties.insert(
            "cursor".into(),
            json!({ "type": "string", "description": about }),
        );
    }
    let about = if tool.takes(TakesKind::Report) {
        format!("{}: {}", tool.about, server.reports.join(", "))
    } else {
        tool.about.to_owned()
    };
    json!({
        "name": tool.name,
        "description": about,
        "inputSchema": {
            "type": "object", "properties": properties, "required": required, "additionalProperties": false,
        },
        "annotations": { "readOnlyHint": !tool.records(), "openWorldHint": tool.records() },
    })
}

/// The `tr` command line for a tool call with these arguments, without the program's name. If the
/// tool records a command, that command comes last.
fn line(
    server: &Server,
    tool: &AgentTool,
    given: &Map<String, Value>,
) -> Result<Vec<OsString>, String> {
    let root = server.root.as_path();
    let mut words: Vec<OsString> = tool.words.iter().map(Into::into).collect();
    if let Some(name) = given.keys().find(|name| !has(tool, name)) {
        return Err(format!("no argument {}", quoted(name)));
    }
    for Takes(name, kind, _) in tool.takes {
        let value = given.get(*name).filter(|value| !value.is_null());
        let wrong = || format!("{name} is not of its type");
        match (kind, value) {
            (TakesKind::File, None) => words.push(below(root, server.recording)?.into()),
            // The recorder writes to its default file. This path is tested as well, because the file may be a link to a
            // place outside of the folder.
            (TakesKind::Output, None) => drop(new_below(root, server.recording)?),
            (TakesKind::Files | TakesKind::Command, None) => {
                return Err(format!("{name} is missing"))
            }
            (_, None) => {}
            (TakesKind::File, Some(value)) => {
                words.push(below(root, text(value).ok_or_else(wrong)?)?.into())
            }
            (TakesKind::Files, Some(value)) => {
                for file in texts(value).ok_or_else(wrong)? {
                    words.push(option(name, below(root, file)?.as_os_str()));
                }
            }
            (TakesKind::Report | TakesKind::Word(_) | TakesKind::Text, Some(value)) => {
                words.push(option(name, text(value).ok_or_else(wrong)?))
            }
            (TakesKind::Texts, Some(value)) => {
                let values = texts(value).ok_or_else(wrong)?.into_iter();
                words.extend(values.map(|value| option(name, value)));
            }
            (TakesKind::Number, Some(value)) => {
                let number = value.as_u64().ok_or_else(wrong)?;
                words.push(option(name, number.to_string()));
            }
            (TakesKind::Switch, Some(value)) => {
                if value.as_bool().ok_or_else(wrong)? {
                    words.push(format!("--{name}").into());
                }
            }
            (TakesKind::Output, Some(value)) => {
                words.push(option(
                    name,
                    new_below(root, text(value).ok_or_else(wrong)?)?,
                ));
            }
            // The command comes last on the command line, so it is added below.
            (TakesKind::Command, Some(_)) => {}
        }
    }
    if let Some(command) = given.get("command").filter(|_| tool.records()) {
        let command = texts(command).filter(|words| !words.is_empty());
        words.push("--".into());
        words.extend(
            command
                .ok_or("command is no list of words")?
                .into_iter()
                .map(Into::into),
        );
    }
    Ok(words)
}

fn has(tool: &AgentTool, name: &str) -> bool {
    tool.takes.iter().any(|takes| takes.0 == name) || name == "cursor" && !tool.records()
}

/// A name that the agent gave, for an error message: in quotes, and shortened if it is long.
fn quoted(name: &str) -> String {
    let short: String = name.chars().take(REPEATED_CHARS).collect();
    let rest = if short.len() < name.len() { "…" } else { "" };
    format!("{short:?}{rest}")
}

fn option(name: &str, value: impl AsRef<std::ffi::OsStr>) -> OsString {
    let mut option = OsString::from(format!("--{name}="));
    option.push(value);
    option
}

/// The text of a JSON value from the agent, if it can be a word of a command line.
fn text(value: &Value) -> Option<&str> {
    value.as_str().filter(|text| !text.contains('\0'))
}

fn texts(value: &Value) -> Option<Vec<&str>> {
    value.as_array()?.iter().map(text).collect()
}

/// The path of an existing file that the agent names. After symbolic links were followed, the file
/// must be in the server's folder or below it.
fn below(root: &Path, name: &str) -> Result<PathBuf, String> {
    // If the file is elsewhere, the error does not show whether it exists.
    let file = std::fs::canonicalize(root.join(name)).ok();
    let file = file.filter(|file| file.starts_with(root) && file.is_file());
    file.ok_or_else(|| {
        let name = quoted(name);
        format!("{name} is no file below the folder that {TR} mcp was started in")
    })
}

/// The path of a new file that the agent names. It must be in the server's folder or below it, and no link.
fn new_below(root: &Path, name: &str) -> Result<PathBuf, String> {
    let wanted = root.join(name);
    let place = wanted.parent().zip(wanted.file_name());
    let place = place.and_then(|(dir, file)| Some(std::fs::canonicalize(dir).ok()?.join(file)));
    let is_link = |file: &PathBuf| {
        std::fs::symlink_metadata(file).is_ok_and(|metadata| metadata.is_symlink())
    };
    let place = place.filter(|file| file.starts_with(root) && file != root && !is_link(file));
    place.ok_or_else(|| {
        let name = quoted(name);
        format!("{name} is no place below the folder that {TR} mcp was started in")
    })
}

/// Calls a tool with the arguments that the agent gives. Returns the MCP result, or an error
/// message.
pub fn call(server: &Server, tool: &AgentTool, given: &Value) -> Result<Value, String> {
    let given = given.as_object().ok_or("the arguments are no object")?;
    let from = match given.get("cursor") {
        None | Some(Value::Null) => 0,
        Some(cursor) => cursor
            .as_str()
            .and_then(|text| text.parse().ok())
            .ok_or("no such cursor")?,
    };
    let words = line(server, tool, given)?;
    let ran = if tool.records() {
        record(words, &server.root)
    } else {
        ask(tool, words, from)
    };
    ran.map_err(|error| error.to_string())
}

/// The command that runs this `tr` program again with another command line. The new process has no access to the
/// server's connection with the agent.
fn command(words: Vec<OsString>) -> Command {
    let mut command = Command::new("/proc/self/exe");
    command.args(words).stdin(Stdio::null());
    std::os::unix::process::CommandExt::arg0(&mut command, TR.name());
    command
}

fn ask(tool: &AgentTool, mut words: Vec<OsString>, from: u64) -> std::io::Result<Value> {
    words.extend(["--width=120", "--color=never"].map(Into::into));
    words.push(format!("--max-time={}s", ANSWER.as_secs()).into());
    let (page, (killed, failed), said) = answered(command(words), from, KILL_AFTER)?;
    let title = format!("{}{killed}, data of a recording:", tool.name);
    Ok(page.result(&title, &said, failed))
}

/// Runs a `tr` command for the agent, and kills it at its time limit. Returns three values: a page of the command's
/// output; how the command ended, as a text for the answer's title and whether it failed; and the command's messages.
fn answered(
    mut command: Command,
    from: u64,
    limit: Duration,
) -> std::io::Result<(Page, (String, bool), Vec<u8>)> {
    let mut said = tempfile::tempfile()?;
    let mut child = command
        .stdout(Stdio::piped())
        .stderr(said.try_clone()?)
        .spawn()?;
    let until = Instant::now() + limit;
    let output = child.stdout.take().map(|output| Until { output, until });
    // The pipe is closed when the page is full, and the rest of the output is lost with it.
    let page = match output {
        Some(output) => answer::page(output, from)?,
        None => answer::page(std::io::empty(), 0)?,
    };
    let ended = loop {
        match child.try_wait()? {
            None if Instant::now() < until => std::thread::sleep(LOOK_INTERVAL),
            ended => break ended,
        }
    };
    let end = match ended {
        Some(status) => judged(status),
        None => {
            child.kill()?;
            child.wait()?;
            (format!(" had no answer after {} s", limit.as_secs()), true)
        }
    };
    Ok((page, end, read(&mut said)?))
}

/// The time between two checks whether a command that the server runs has ended.
const LOOK_INTERVAL: Duration = Duration::from_millis(2);

/// The output pipe of a command that the server runs. Reading from it reports the end of the output
/// at the command's time limit.
struct Until {
    output: ChildStdout,
    until: Instant,
}

impl Read for Until {
    fn read(&mut self, bytes: &mut [u8]) -> std::io::Result<usize> {
        let left = self.until.saturating_duration_since(Instant::now());
        let left = PollTimeout::try_from(left).unwrap_or(PollTimeout::MAX);
        let mut ready = [PollFd::new(self.output.as_fd(), PollFlags::POLLIN)];
        match poll(&mut ready, left) {
            Ok(0) => Ok(0),
            Ok(_) => self.output.read(bytes),
            Err(error) => Err(error.into()),
        }
    }
}

/// The text about the signal that killed a command, for the title of the answer (empty if none did), and whether the
/// command failed.
fn judged(status: ExitStatus) -> (String, bool) {
    match status.signal() {
        // The server closed the pipe before the command had written everything, which is no failure.
        Some(signal) if signal == Signal::SIGPIPE as i32 => (String::new(), false),
        Some(_) => (format!(" was killed ({status})"), true),
        None => (
            String::new(),
            status.code().is_some_and(|code| code >= FAILED_STATUS),
        ),
    }
}

fn record(words: Vec<OsString>, root: &Path) -> std::io::Result<Value> {
    let mut command = command(words);
    command.current_dir(root);
    let (status, in_time, said) = bounded(command, LIMIT)?;
    let title = if in_time {
        format!("record: {status}")
    } else {
        format!("record: ended after {} s: {status}", LIMIT.as_secs())
    };
    let page: Page = answer::page(std::io::empty(), 0)?;
    Ok(page.result(&title, &said, !(in_time && status.success())))
}

/// Runs a command, and ends the command at the time limit. Returns the command's status, whether the command ended by
/// itself in time, and the last part of its output.
fn bounded(mut command: Command, limit: Duration) -> std::io::Result<(ExitStatus, bool, Vec<u8>)> {
    let (output, input) = std::io::pipe()?;
    command.stdout(input.try_clone()?).stderr(input);
    let mut child = command.spawn()?;
    // `command` still holds the pipe's writing end. The end of the output is only seen after all writing ends are
    // closed.
    drop(command);
    let mut said = CommandOutput {
        output: Some(output),
        last: Vec::new(),
    };
    let (status, in_time) = match said.until_end(&mut child, limit)? {
        Some(status) => (status, true),
        None => {
            // `tr record` passes this signal on to COMMAND, and then completes the recording.
            let _ = kill(
                nix::unistd::Pid::from_raw(child.id().cast_signed()),
                Signal::SIGTERM,
            );
            let ended = said.until_end(&mut child, GRACE)?;
            let killed = || child.kill().and_then(|()| child.wait());
            (ended.map_or_else(killed, Ok)?, false)
        }
    };
    Ok((status, in_time, said.rest()))
}

/// The output of a command that the server runs: the pipe, until its end is reached, and the last
/// part of the text read so far.
struct CommandOutput {
    output: Option<PipeReader>,
    last: Vec<u8>,
}

impl CommandOutput {
    /// Reads a part of the command's output, if the command writes something within `time` milliseconds. Returns the
    /// number of bytes that were read.
    fn read(&mut self, time: u8) -> std::io::Result<usize> {
        let Some(output) = &mut self.output else {
            std::thread::sleep(Duration::from_millis(time.into()));
            return Ok(0);
        };
        let mut ready = [PollFd::new(output.as_fd(), PollFlags::POLLIN)];
        if !matches!(poll(&mut ready, time), Ok(1..)) {
            return Ok(0);
        }
        let mut part = [0; MESSAGE_BYTES];
        let length = output.read(&mut part)?;
        self.last
            .extend_from_slice(part.get(..length).unwrap_or_default());
        let more = self.last.len().saturating_sub(MESSAGE_BYTES);
        self.last.drain(..more);
        if length == 0 {
            self.output = None;
        }
        Ok(length)
    }

    /// The exit status of the command that the server runs, if it ends within the time limit.
    fn until_end(
        &mut self,
        child: &mut Child,
        limit: Duration,
    ) -> std::io::Result<Option<ExitStatus>> {
        let begun = Instant::now();
        loop {
            match child.try_wait()? {
                None if begun.elapsed() < limit => self.read(20)?,
                status => return Ok(status),
            };
        }
    }

    /// The last part of the command's output, after the command has ended. A process that the command left behind may
    /// still print, and would be killed if the pipe were closed. So a thread goes on reading, but nobody waits for that
    /// thread.
    fn rest(mut self) -> Vec<u8> {
        let mut read = 0;
        while let Ok(length @ 1..) = self.read(0) {
            read += length;
            if read >= PIPE {
                break;
            }
        }
        let output = self.output.take();
        std::thread::spawn(move || {
            output.map(|mut stream| std::io::copy(&mut stream, &mut std::io::sink()))
        });
        self.last
    }
}

/// Reads the last bytes of a file with a command's messages.
fn read(file: &mut std::fs::File) -> std::io::Result<Vec<u8>> {
    use std::io::{Seek, SeekFrom};
    let length = file.seek(SeekFrom::End(0))?;
    file.seek(SeekFrom::Start(length.saturating_sub(MESSAGE_BYTES as u64)))?;
    let mut bytes = Vec::new();
    file.read_to_end(&mut bytes)?;
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn a_killed_command_has_failed() {
        let judged = |raw| judged(ExitStatus::from_raw(raw));
        let killed = " was killed (signal: 9 (SIGKILL))".to_owned();
        assert_eq!(judged(9), (killed, true));
        assert_eq!(judged(Signal::SIGPIPE as i32), (String::new(), false));
        for (code, failed) in [(0, false), (1, false), (2, true)] {
            assert_eq!(judged(code << 8), (String::new(), failed));
        }
    }

    #[test]
    fn an_answer_has_a_limit_of_time() {
        let answered = |script: &str, milliseconds| {
            let mut command = Command::new("sh");
            command.args(["-c", script]).stdin(Stdio::null());
            let limit = Duration::from_millis(milliseconds);
            let (page, end, said) = answered(command, 0, limit).unwrap();
            let text = page.result("", &said, end.1)["content"][0]["text"].to_string();
            (end, text)
        };
        let begun = Instant::now();
        let (end, text) = answered("echo first; echo so >&2; exec sleep 60", 2_000);
        assert_eq!(end, (" had no answer after 2 s".to_owned(), true));
        assert!(text.contains("first") && text.contains("so"), "{text}");
        let (end, _) = answered("exec >&-; exec sleep 60", 100);
        assert!(end.1);
        assert!(begun.elapsed() < Duration::from_secs(50));
        let (end, text) = answered("echo all; exit 1", 60_000);
        assert_eq!(end, (String::new(), false));
        assert!(text.contains("all"), "{text}");
        // The server does not wait for output that does not fit on the page.
        let (end, _) = answered("yes; exit 0", 60_000);
        assert_eq!(end, (String::new(), false));
    }

    fn shell(script: &str, limit: Duration) -> (ExitStatus, bool, Vec<u8>) {
        let mut command = Command::new("sh");
        command.args(["-c", script]).stdin(Stdio::null());
        bounded(command, limit).unwrap()
    }

    #[test]
    fn a_command_has_its_time_and_the_last_of_its_output() {
        let long = Duration::from_secs(60);
        let (status, in_time, said) = shell("seq 100000; echo last >&2; exit 3", long);
        assert_eq!(
            (status.code(), in_time, said.len()),
            (Some(3), true, MESSAGE_BYTES)
        );
        assert!(said.ends_with(b"100000\nlast\n"), "{said:?}");
        // The server does not wait for a process that the command leaves behind.
        let begun = Instant::now();
        let (status, ..) = shell("sleep 30 & echo $!", long);
        assert!(status.success() && begun.elapsed() < Duration::from_secs(25));
        let (status, in_time, said) = shell("echo 1; exec sleep 30", Duration::from_millis(300));
        assert_eq!((status.signal(), in_time), (Some(15), false));
        assert_eq!(said, b"1\n");
    }
}
