//! The functions of recorded frames, after COMMAND's end: a process of their own finds them.

use std::collections::BTreeMap;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::process::{Child, Command, Stdio};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use tr_format::event::{LifeKind, Tgid};
use tr_format::stack::{Function, Module, Place, Symbol, INLINED};
use tr_symbols::Answer;
pub use tr_symbols::Request;

use crate::proc;

/// How long a search may take. What has been found until then is kept.
#[derive(Clone, Copy, Debug)]
pub struct Limit {
    /// On a CPU.
    pub cpu: Duration,
    /// By the clock.
    pub wall: Duration,
}

/// That of a recorder: COMMAND's end waits for it. On a busy machine 5 s by the clock can be less
/// than a second on a CPU, in which nothing is found.
pub(crate) const LIMIT: Limit = Limit {
    cpu: Duration::from_secs(5),
    wall: Duration::from_secs(20),
};
/// The most bytes of answers.
const ANSWERS: u64 = 256 << 20;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Search {
    /// Frames without names before.
    pub frames: usize,
    /// Frames with a name now.
    pub found: usize,
    pub time: Duration,
    /// The limit, or a signal, has ended it.
    pub ended_early: bool,
}

/// A search under way.
struct Server {
    child: Child,
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

/// The request for frames, by their numbers. `pid` gives a process's id in `tr`'s own pid namespace.
pub fn request(
    frames: impl IntoIterator<Item = (u32, Place)>,
    modules: impl IntoIterator<Item = tr_symbols::Module>,
    pid: impl Fn(Tgid) -> u32,
) -> Request {
    let named = modules.into_iter().map(|it| (it.number, it));
    let mut modules: BTreeMap<u32, tr_symbols::Module> = BTreeMap::new();
    modules.extend(named);
    let mut request = Request::default();
    let mut processes: BTreeMap<u32, Vec<(u32, u64)>> = BTreeMap::new();
    for (number, place) in frames {
        match place {
            Place::Kernel(at) => request.kernel.push((number, at)),
            Place::Process(tgid, at) => processes.entry(pid(tgid)).or_default().push((number, at)),
            Place::Module(module, at) => {
                if let Some(module) = modules.get_mut(&module) {
                    module.frames.push((number, at));
                }
            }
        }
    }
    request.processes.extend(processes);
    request.modules.extend(modules.into_values());
    request.modules.retain(|it| !it.frames.is_empty());
    request
}

/// Searches the functions of a request, within `limit`, and while `go_on` waits and returns
/// true. The events are modules with their paths, then symbols.
pub fn search(
    request: &Request,
    limit: Limit,
    go_on: impl FnMut() -> bool,
) -> (Vec<LifeKind>, Search) {
    let begun = Instant::now();
    let mut search = Search {
        frames: request.frames(),
        ..Search::default()
    };
    if search.frames == 0 {
        return (Vec::new(), search);
    }
    let Ok(mut server) = Server::start(request) else {
        return (Vec::new(), search);
    };
    search.ended_early = !wait(&mut server.child, (begun, limit), go_on);
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
    (events, search)
}

/// True: it has ended by itself.
fn wait(
    child: &mut Child,
    (begun, limit): (Instant, Limit),
    mut go_on: impl FnMut() -> bool,
) -> bool {
    while matches!(child.try_wait(), Ok(None)) {
        let over = begun.elapsed() >= limit.wall || on_cpu(child) >= limit.cpu;
        if over || !go_on() {
            return false;
        }
    }
    true
}

/// The CPU time of a search, which has one thread.
fn on_cpu(child: &Child) -> Duration {
    let totals = proc::totals(child.id().cast_signed());
    Duration::from_nanos(totals.map_or(0, |(run, ..)| run))
}

/// The events of the answers, the last one of each frame.
fn events(answers: Vec<Answer>, request: &Request) -> Vec<LifeKind> {
    let mut modules = Vec::new();
    let mut symbols = BTreeMap::new();
    for answer in answers {
        match answer {
            Answer::Path(number, path) => {
                let module = request.modules.iter().find(|it| it.number == number);
                modules.extend(module.map(|it| {
                    LifeKind::Module(Box::new(Module {
                        number,
                        build_id: it.build_id.as_slice().into(),
                        path: path.into_encoded_bytes().into(),
                        file: None,
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
