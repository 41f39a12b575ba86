//! Loads the BPF programs: libbpf relocates them and creates their maps; the kernel verifies them, on several
//! CPUs at once.

use std::collections::HashMap;
use std::ffi::CString;
use std::fs::File;
use std::io::{self, Write};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::{iter, ptr, slice, thread};

use libbpf_rs::libbpf_sys::{
    bpf_attach_type, bpf_btf_get_info_by_fd, bpf_btf_info, bpf_func_info, bpf_insn, bpf_line_info,
    bpf_link_create, bpf_object__btf_fd, bpf_object__prepare, bpf_prog_load, bpf_prog_load_opts,
    bpf_prog_type, bpf_program__func_info, bpf_program__func_info_cnt, bpf_program__line_info,
    bpf_program__line_info_cnt, bpf_program__set_type, bpf_raw_tracepoint_open,
    BPF_PROG_TYPE_PERF_EVENT, BPF_PROG_TYPE_RAW_TRACEPOINT, BPF_PROG_TYPE_TRACING, BPF_TRACE_ITER,
    BPF_TRACE_RAW_TP,
};
use libbpf_rs::{AsRawLibbpf, OpenObject};
use nix::sys::memfd::{memfd_create, MFdFlags};

use crate::btf::Btf;
use crate::messages::keep;

/// A file that exists only in memory. It has a path in /proc as long as this value lives.
pub(crate) struct MemoryFile(File);

impl MemoryFile {
    pub(crate) fn new(bytes: &[u8]) -> io::Result<MemoryFile> {
        let mut file = File::from(memfd_create(c"kernel-types", MFdFlags::MFD_CLOEXEC)?);
        file.write_all(bytes)?;
        Ok(MemoryFile(file))
    }

    pub(crate) fn path(&self) -> String {
        format!("/proc/self/fd/{}", self.0.as_raw_fd())
    }
}

/// Turns the return value of a function of libbpf that opens a file descriptor into the owned descriptor or the error.
///
/// # Safety
/// The function has just returned `fd`. It returns a new descriptor, or a negative number if it fails, and nothing else
/// owns the descriptor.
pub(crate) unsafe fn opened(fd: RawFd) -> io::Result<OwnedFd> {
    match fd {
        ..0 => Err(io::Error::from_raw_os_error(-fd)),
        // SAFETY: the descriptor is open, and the caller gives it up.
        _ => Ok(unsafe { OwnedFd::from_raw_fd(fd) }),
    }
}

/// A BPF program that is still to be loaded.
struct Job {
    name: CString,
    /// The section of the BPF program in the object, such as `raw_tp/NAME`, where NAME is the tracepoint that calls the
    /// program.
    section: String,
    target: u32,
    code: Vec<bpf_insn>,
    functions: Vec<bpf_func_info>,
    lines: Vec<bpf_line_info>,
}

pub(crate) struct LoadedProgram {
    fd: OwnedFd,
    section: String,
}

/// The BPF programs that have been loaded into the kernel, by their names.
pub(crate) type LoadedPrograms = HashMap<String, LoadedProgram>;

/// Relocates and loads those BPF programs of the object that are marked for loading, and creates the object's maps.
/// `targets` has the BTF numbers of the tracepoints and the iterator that the programs attach to; `cast` is the BTF
/// number of `bpf_rdonly_cast`.
pub(crate) fn load(
    object: &mut OpenObject,
    targets: &HashMap<&'static str, u32>,
    cast: Option<u32>,
) -> io::Result<LoadedPrograms> {
    // libbpf is told that all programs are raw tracepoint programs: for programs of the type tracing, it would read
    // the kernel's BTF, which takes 4 ms. `Job::load_once` loads each program with its actual type.
    for program in object.progs_mut().filter(|program| program.autoload()) {
        // SAFETY: the program is open.
        unsafe {
            bpf_program__set_type(
                program.as_libbpf_object().as_ptr(),
                BPF_PROG_TYPE_RAW_TRACEPOINT,
            )
        };
    }
    let all = object.as_libbpf_object().as_ptr();
    // SAFETY: the object is open and not loaded.
    let (error, btf) = unsafe { (bpf_object__prepare(all), bpf_object__btf_fd(all)) };
    if error < 0 {
        return Err(io::Error::from_raw_os_error(-error));
    }
    if !has_functions(btf) {
        return Err(io::Error::other("the kernel accepts no BTF of functions"));
    }
    let mut jobs = Vec::new();
    for mut program in object.progs_mut().filter(|program| program.autoload()) {
        // SAFETY: libbpf's arrays have the lengths that it returns, and live as long as the object.
        let (functions, lines) = unsafe {
            let program = program.as_libbpf_object().as_ptr();
            (
                copy(
                    bpf_program__func_info(program),
                    bpf_program__func_info_cnt(program),
                ),
                copy(
                    bpf_program__line_info(program),
                    bpf_program__line_info_cnt(program),
                ),
            )
        };
        let section = program.section().to_string_lossy().into_owned();
        let target = section.split_once('/').map_or("", |(_, name)| name);
        jobs.push(Job {
            name: CString::new(program.name().as_encoded_bytes())?,
            target: targets.get(target).copied().unwrap_or(0),
            section,
            code: linked(program.insns(), cast),
            functions,
            lines,
        });
        // `load_all` loads the program below, so libbpf must not load it.
        program.set_autoload(false);
    }
    load_all(jobs, btf)
}

/// Whether the loaded BTF of the BPF programs marks which functions are global. Every kernel since 5.6 supports this
/// mark. But libbpf first loads a small test BTF, and omits the mark, or all BTF, if the kernel refuses the test.
/// Without the mark the verifier checks a function again at each call, which takes minutes of CPU time.
fn has_functions(btf: RawFd) -> bool {
    let mut bytes = vec![0u8; 1 << 20];
    let mut info = bpf_btf_info {
        btf: bytes.as_mut_ptr() as u64,
        btf_size: bytes.len() as u32,
        ..Default::default()
    };
    let mut len = size_of_val(&info) as u32;
    // SAFETY: the kernel writes no more than `len` bytes of `info`, and `btf_size` of `bytes`.
    let error = unsafe { bpf_btf_get_info_by_fd(btf, &raw mut info, &raw mut len) };
    error == 0 && Btf::find(&bytes, iter::empty()).is_some_and(|btf| btf.has_global_functions())
}

/// Copies an array of a C library into a vector.
///
/// # Safety
/// `from` is null, or it points to `count` elements.
unsafe fn copy<T: Copy>(from: *const T, count: u32) -> Vec<T> {
    if from.is_null() {
        Vec::new()
    } else {
        // SAFETY: the caller guarantees that there are `count` elements.
        unsafe { slice::from_raw_parts(from, count as usize).to_vec() }
    }
}

/// The number that stands for calls of `bpf_rdonly_cast` in the compiled programs (settings.bpf.h). None of the
/// kernel's helper functions has this number.
const RDONLY_CAST: i32 = 0x7472;

/// The instructions of a BPF program, in which [`RDONLY_CAST`] is replaced by the number of the kernel's function
/// `bpf_rdonly_cast`. If the kernel has no such function, each call is replaced by `r0 = 0`; the programs never reach
/// it then.
fn linked(code: &[bpf_insn], cast: Option<u32>) -> Vec<bpf_insn> {
    const CALL: u8 = 0x85;
    const PSEUDO_KFUNC_CALL: u8 = 2;
    const MOVE_0: u8 = 0xb7;
    let mut code = code.to_vec();
    for instruction in &mut code {
        let operation = (instruction.code, instruction.src_reg(), instruction.imm);
        if operation == (CALL, 0, RDONLY_CAST) {
            instruction.imm = cast.map_or(0, u32::cast_signed);
            match cast {
                Some(_) => instruction.set_src_reg(PSEUDO_KFUNC_CALL),
                None => instruction.code = MOVE_0,
            }
        }
    }
    code
}

/// The largest number of threads that load BPF programs at the same time.
const THREADS: usize = 4;

fn load_all(mut jobs: Vec<Job>, btf: RawFd) -> io::Result<LoadedPrograms> {
    // The longest programs are loaded first, so that the threads end at about the same time.
    jobs.sort_unstable_by_key(|job| std::cmp::Reverse(job.code.len()));
    let next = AtomicUsize::new(0);
    let work = || -> io::Result<Vec<(usize, OwnedFd)>> {
        let turns = iter::from_fn(|| {
            let turn = next.fetch_add(1, Ordering::Relaxed);
            Some((turn, jobs.get(turn)?))
        });
        turns
            .map(|(turn, job)| Ok((turn, job.load(btf)?)))
            .collect()
    };
    let cpus = thread::available_parallelism().map_or(1, usize::from);
    let loaded = thread::scope(|scope| {
        let others: Vec<_> = (1..cpus.min(THREADS).min(jobs.len()))
            .map_while(|_| thread::Builder::new().spawn_scoped(scope, work).ok())
            .collect();
        let mut all = work();
        for other in others {
            // The result of a thread that panics does not matter, because a panic ends a release build.
            let more = other.join().unwrap_or_else(|_| Ok(Vec::new()));
            all = all.and_then(|mut all| {
                all.extend(more?);
                Ok(all)
            });
        }
        all
    })?;
    let mut descriptors: HashMap<usize, OwnedFd> = loaded.into_iter().collect();
    let named = jobs.into_iter().enumerate().filter_map(|(turn, job)| {
        let (fd, section) = (descriptors.remove(&turn)?, job.section);
        let name = job.name.to_string_lossy().into_owned();
        Some((name, LoadedProgram { fd, section }))
    });
    Ok(named.collect())
}

impl Job {
    fn load(&self, btf: RawFd) -> io::Result<OwnedFd> {
        self.load_once(btf, None).or_else(|_| {
            // The program is loaded once more with a log, into which the verifier writes why it refuses the program.
            let mut log = vec![0; 1 << 20];
            let loaded = self.load_once(btf, Some(&mut log));
            if loaded.is_err() {
                let text = log.split(|byte| *byte == 0).next().unwrap_or_default();
                let (name, text) = (self.name.to_string_lossy(), String::from_utf8_lossy(text));
                keep(&format!("program {name}: the kernel's verifier:\n{text}"));
            }
            loaded
        })
    }

    fn load_once(&self, btf: RawFd, log: Option<&mut [u8]>) -> io::Result<OwnedFd> {
        let (of, attach): (bpf_prog_type, bpf_attach_type) =
            match self.section.split('/').next().unwrap_or_default() {
                "tp_btf" => (BPF_PROG_TYPE_TRACING, BPF_TRACE_RAW_TP),
                "iter" => (BPF_PROG_TYPE_TRACING, BPF_TRACE_ITER),
                "perf_event" => (BPF_PROG_TYPE_PERF_EVENT, 0),
                _ => (BPF_PROG_TYPE_RAW_TRACEPOINT, 0),
            };
        let mut options = bpf_prog_load_opts {
            sz: size_of::<bpf_prog_load_opts>() as _,
            expected_attach_type: attach,
            ..Default::default()
        };
        if of == BPF_PROG_TYPE_TRACING {
            options.attach_btf_id = self.target;
        }
        if let Ok(btf) = u32::try_from(btf) {
            options.prog_btf_fd = btf;
            options.func_info = self.functions.as_ptr().cast();
            options.func_info_cnt = self.functions.len() as u32;
            options.func_info_rec_size = size_of::<bpf_func_info>() as u32;
        }
        if let Some(log) = log {
            options.log_level = 1;
            options.log_size = log.len() as u32;
            options.log_buf = log.as_mut_ptr().cast();
            options.line_info = self.lines.as_ptr().cast();
            options.line_info_cnt = self.lines.len() as u32;
            options.line_info_rec_size = size_of::<bpf_line_info>() as u32;
        }
        // SAFETY: name and licence end with 0. `self` keeps the code, the functions and the lines until the call
        // returns, and the caller keeps the log. Each has the length that is passed with it, and the kernel writes
        // only to the log.
        let fd = unsafe {
            bpf_prog_load(
                of,
                self.name.as_ptr(),
                c"Dual BSD/GPL".as_ptr(),
                self.code.as_ptr(),
                self.code.len() as _,
                &raw mut options,
            )
        };
        // SAFETY: the call opens the program's descriptor, or fails.
        unsafe { opened(fd) }
    }
}

impl LoadedProgram {
    pub(crate) fn fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }

    /// The name of the tracepoint that calls the BPF program. For the program of an iterator, it is the kind of objects
    /// that the iterator visits: `task`.
    pub(crate) fn tracepoint(&self) -> &str {
        self.section.split_once('/').unwrap_or_default().1
    }

    /// Attaches the BPF program to its tracepoint or, if it belongs to an iterator, creates the iterator.
    pub(crate) fn attach(&self) -> io::Result<OwnedFd> {
        let program = self.fd.as_raw_fd();
        let (of, target) = self.section.split_once('/').unwrap_or_default();
        let name = CString::new(target)?;
        // SAFETY: `self` keeps the program's descriptor open. The name ends with 0 and lives until the call returns.
        // Null stands for no name and for no options.
        let fd = unsafe {
            match of {
                "iter" => bpf_link_create(program, 0, BPF_TRACE_ITER, ptr::null()),
                // The name of the tracepoint is not given, because the program was loaded for its tracepoint.
                "tp_btf" => bpf_raw_tracepoint_open(ptr::null(), program),
                _ => bpf_raw_tracepoint_open(name.as_ptr(), program),
            }
        };
        // SAFETY: each of the calls opens the link's descriptor, or fails.
        unsafe { opened(fd) }
    }
}
