//! The functions of the recorded frames, after COMMAND's end: a process of their own finds them.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::process::{Child, Command, Stdio};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use tr_format::event::{Ktime, LifeEvent, LifeKind};
use tr_format::stack::{Function, Module, Symbol, INLINED};
use tr_symbols::{Answer, Request};

use crate::source::recorder;

/// The longest search. What has been found until then is kept.
pub const LIMIT: Duration = Duration::from_secs(5);
/// The most bytes of answers.
const ANSWERS: u64 = 256 << 20;

/// The search.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Search {
    /// Frames without names before.
    pub frames: usize,
    /// Frames with a name now.
    pub found: usize,
    /// Its time.
    pub time: Duration,
    /// The limit, or a signal, has ended it.
    pub ended_early: bool,
}

/// A search under way.
struct Server {
    child: Child,
    /// Reads the answers.
    answers: JoinHandle<Vec<Answer>>,
}

impl Server {
    fn start(request: &Request) -> io::Result<Server> {
        let mut child = Command::new("/proc/self/exe")
            .arg(tr_symbols::SERVER)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()?;
        let (stdin, stdout) = (child.stdin.take(), child.stdout.take());
        let answers = std::thread::Builder::new()
            .name("tr-symbols".into())
            .spawn(move || {
                let lines = stdout.map(|out| BufReader::new(out.take(ANSWERS)).lines());
                let lines = lines.into_iter().flatten().map_while(Result::ok);
                let answers = lines.map_while(|line| serde_json::from_str(&line).ok());
                answers.collect()
            })?;
        // It reads all of the request before it answers.
        if let Some(mut stdin) = stdin {
            stdin.write_all(&serde_json::to_vec(request)?)?;
        }
        Ok(Server { child, answers })
    }
}

/// Searches the functions of a request, at most for [`LIMIT`], and while `go_on` waits and returns
/// true.
pub fn search(
    request: &Request,
    end: Ktime,
    go_on: impl FnMut() -> bool,
) -> (Vec<LifeEvent>, Search) {
    let begun = Instant::now();
    let mut search = Search {
        frames: request.frames(),
        ..Search::default()
    };
    let Some(mut server) = Server::start(request).ok().filter(|_| search.frames > 0) else {
        return (Vec::new(), search);
    };
    search.ended_early = !wait(&mut server.child, begun, go_on);
    if search.ended_early {
        let _ = server.child.kill();
    }
    let _ = server.child.wait();
    let answers = server.answers.join().unwrap_or_default();
    let events = events(answers, request);
    search.found = events
        .iter()
        .filter(|it| matches!(it, LifeKind::Symbol(_)))
        .count();
    search.time = begun.elapsed();
    let events = events.into_iter().map(|kind| recorder(end, kind));
    (events.collect(), search)
}

/// True: it has ended by itself.
fn wait(child: &mut Child, begun: Instant, mut go_on: impl FnMut() -> bool) -> bool {
    while matches!(child.try_wait(), Ok(None)) {
        if begun.elapsed() >= LIMIT || !go_on() {
            return false;
        }
    }
    true
}

/// The events of the answers, the last one of each frame.
fn events(answers: Vec<Answer>, request: &Request) -> Vec<LifeKind> {
    let mut modules = Vec::new();
    let mut symbols = std::collections::BTreeMap::new();
    for answer in answers {
        match answer {
            Answer::Path(number, path) => {
                let module = request.modules.iter().find(|it| it.number == number);
                modules.extend(module.map(|it| {
                    LifeKind::Module(Box::new(Module {
                        number,
                        build_id: it.build_id.as_slice().into(),
                        path: path.into_os_string().into_encoded_bytes().into(),
                    }))
                }));
            }
            Answer::Frame(frame, functions) => {
                let functions = functions.into_iter().take(INLINED);
                let functions = functions.map(|it| Function {
                    name: it.name.into_bytes().into(),
                    file: it.file.into_bytes().into(),
                    line: it.line,
                });
                symbols.insert(frame, functions.collect());
            }
        }
    }
    let symbols = symbols.into_iter();
    let symbols = symbols.map(|(frame, functions)| LifeKind::Symbol(Symbol { frame, functions }));
    modules.into_iter().chain(symbols).collect()
}
