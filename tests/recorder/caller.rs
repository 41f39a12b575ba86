//! Attacks the loader of BPF programs as an ordinary user without capabilities. This user speaks to the loader without
//! `tr`, and gets the descriptors that the loader passes.

use std::io::Write;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use libtest_mimic::Failed;
use tr_bpf::{wire, Living};

use crate::sudo::{Place, ALLOWED, NOBODY};
use crate::support::{ensure, eventually};

const PAGE: usize = 4096;
/// Numbers from include/uapi/linux/bpf.h: two commands of bpf(2), and the type of a ring buffer map.
const MAP_UPDATE_ELEM: libc::c_int = 2;
const ITER_CREATE: libc::c_int = 33;
const RINGBUF: u64 = 27;

/// Runs `act` as the ordinary user. The raw system calls change the credentials of one thread only.
fn as_user<T: Send>(act: impl FnOnce() -> T + Send) -> T {
    std::thread::scope(|scope| {
        let thread = scope.spawn(|| {
            // SAFETY: plain system calls.
            let done = unsafe {
                libc::syscall(libc::SYS_setgroups, 0, std::ptr::null::<u32>()) == 0
                    && libc::syscall(libc::SYS_setresgid, NOBODY, NOBODY, NOBODY) == 0
                    && libc::syscall(libc::SYS_setresuid, NOBODY, NOBODY, NOBODY) == 0
            };
            assert!(done, "{}", std::io::Error::last_os_error());
            act()
        });
        thread.join().expect("the user's thread")
    })
}

/// The bytes that `tr record --sudo OPTIONS` sends to the loader. A stand-in for sudo stores them in a file.
fn request(place: &Place, options: &[&str]) -> Result<Vec<u8>, Failed> {
    let file = place.at("request");
    place.stand_in("dd bs=1M count=1 <&0 >request 2>/dev/null; exit 1")?;
    let mut tr = place.record(&[&["--sudo"], options].concat(), &["true"])?;
    tr.env("PATH", place.path())
        .stderr(Stdio::null())
        .status()?;
    Ok(std::fs::read(file)?)
}

/// Starts the loader as sudo would for the user. Returns the process, and the user's end of its socket.
fn loader(place: &Place) -> Result<(Child, UnixStream), Failed> {
    let (ours, theirs) = as_user(UnixStream::pair)?;
    let mut loader = Command::new(place.at("tr"));
    loader
        .arg("bpf-loader")
        .stdin(OwnedFd::from(theirs))
        .env("SUDO_UID", NOBODY.to_string())
        .env("SUDO_GID", NOBODY.to_string());
    Ok((loader.spawn()?, ours))
}

/// The bytes and the descriptors in the loader's answer.
fn answer(socket: &UnixStream) -> Result<(Vec<u8>, Vec<OwnedFd>), Failed> {
    let (mut bytes, mut control) = (vec![0u8; 4096], vec![0u64; 256]);
    let mut part = libc::iovec {
        iov_base: bytes.as_mut_ptr().cast(),
        iov_len: bytes.len(),
    };
    let mut descriptors = Vec::new();
    // SAFETY: all zeros are a valid `msghdr`. Its pointers then lead to buffers that live as long as the call; the
    // kernel writes the headers in them, and passes descriptors that nothing else owns.
    let got = unsafe {
        let mut message: libc::msghdr = std::mem::zeroed();
        message.msg_iov = &raw mut part;
        message.msg_iovlen = 1;
        message.msg_control = control.as_mut_ptr().cast();
        message.msg_controllen = size_of_val(control.as_slice()) as _;
        let got = libc::recvmsg(socket.as_raw_fd(), &raw mut message, libc::MSG_CMSG_CLOEXEC);
        let mut next = libc::CMSG_FIRSTHDR(&raw const message);
        while let Some(header) = next.as_ref() {
            let head = libc::CMSG_LEN(0) as usize;
            let len = header.cmsg_len.saturating_sub(head);
            let data = libc::CMSG_DATA(header).cast::<RawFd>();
            descriptors.extend(
                (0..len / size_of::<RawFd>())
                    .map(|at| OwnedFd::from_raw_fd(data.add(at).read_unaligned())),
            );
            next = libc::CMSG_NXTHDR(&raw const message, header);
        }
        got
    };
    bytes.truncate(usize::try_from(got)?);
    Ok((bytes, descriptors))
}

/// A field of a descriptor's `/proc/self/fdinfo`.
fn fact(fd: &OwnedFd, name: &str) -> Option<String> {
    let info = std::fs::read_to_string(format!("/proc/self/fdinfo/{}", fd.as_raw_fd())).ok()?;
    let value = info.lines().find_map(|line| line.strip_prefix(name))?;
    Some(value.strip_prefix(':')?.trim().to_owned())
}

fn number(fd: &OwnedFd, name: &str) -> u64 {
    fact(fd, name)
        .and_then(|fact| fact.parse().ok())
        .unwrap_or(0)
}

/// Maps memory of a BPF map. The mapping stays until the process ends.
fn mapped(fd: &OwnedFd, access: libc::c_int, offset: usize, len: usize) -> Option<*mut u64> {
    let null = std::ptr::null_mut();
    let offset = libc::off_t::try_from(offset).ok()?;
    // SAFETY: a new mapping at a place of the kernel's choice.
    let place = unsafe { libc::mmap(null, len, access, libc::MAP_SHARED, fd.as_raw_fd(), offset) };
    (place != libc::MAP_FAILED).then_some(place.cast())
}

/// Calls bpf(2) with these words as its argument.
fn bpf(command: libc::c_int, words: [u64; 4]) -> libc::c_long {
    // SAFETY: the kernel reads the words, and what they point to.
    unsafe { libc::syscall(libc::SYS_bpf, command, words.as_ptr(), size_of_val(&words)) }
}

/// Kernel addresses that the user writes into maps. If such an address is found in a map, this proves no leak.
const FORGED: [u64; 2] = [0xffff_8880_0000_1000, 0xffff_ffff_8100_0000];

/// Whether a word is a kernel address (and not forged), by the address ranges of x86-64
/// (Documentation/arch/x86/x86_64/mm.rst, 4 levels) or of arm64. Numbers just below 0 are error codes, not addresses.
fn is_kernel_address(word: u64) -> bool {
    let lowest = if cfg!(target_arch = "x86_64") {
        0xffff_8000_0000_0000
    } else {
        0xffff_0000_0000_0000
    };
    let high = (lowest..0xffff_fff0_0000_0000).contains(&word)
        || (0xffff_ffff_8000_0000..0xffff_ffff_ff00_0000).contains(&word);
    high && !FORGED.contains(&word)
}

/// The memory of a BPF map, mapped by the user.
struct Map {
    name: String,
    words: *const u64,
    len: usize,
    /// The address at which the user can write to the map, if any.
    writable: Option<*mut u64>,
    is_ring: bool,
}

// SAFETY: the pointers are addresses of mappings that are never unmapped.
unsafe impl Send for Map {}

impl Map {
    /// Maps the whole map for reading, and tries to map it for writing.
    fn of(fd: &OwnedFd) -> Result<Map, Failed> {
        let (kind, entries) = (number(fd, "map_type"), number(fd, "max_entries"));
        let name = format!("map {} of type {kind}, {entries}", number(fd, "map_id"));
        let cannot = || Failed::from(format!("{name} cannot be read"));
        let (read, write) = (libc::PROT_READ, libc::PROT_READ | libc::PROT_WRITE);
        let is_ring = kind == RINGBUF;
        let (offset, len) = if is_ring {
            (PAGE, PAGE + usize::try_from(entries)?)
        } else {
            let entry = number(fd, "value_size").next_multiple_of(8);
            let len = usize::try_from(entry * entries)?;
            (0, len.next_multiple_of(PAGE))
        };
        let words = mapped(fd, read, offset, len).ok_or_else(cannot)?;
        // SAFETY: the range is exactly that of our own mapping.
        let raised = unsafe { libc::mprotect(words.cast(), len, write) == 0 };
        let writable = mapped(fd, write, offset, len).or(raised.then_some(words));
        Ok(Map {
            words,
            len: len / size_of::<u64>(),
            writable,
            is_ring,
            name,
        })
    }

    fn word(&self, at: usize) -> u64 {
        // SAFETY: `at` is less than `len` in all callers; the mapping stays.
        unsafe { self.words.add(at).read_volatile() }
    }

    fn used(&self) -> usize {
        self.own().iter().filter(|(_, word)| *word != 0).count()
    }

    /// The words that BPF programs have written into the map. The user-mode frames of stack samples are left out,
    /// because their negative offsets and random build ids could look like kernel addresses.
    fn own(&self) -> Vec<(usize, u64)> {
        let all = (0..self.len).map(|at| (at, self.word(at)));
        if !self.is_ring {
            return all.collect();
        }
        // The page with the ring's positions comes first. Each record follows a word with its length.
        let mut at = PAGE / size_of::<u64>();
        let mut own = Vec::new();
        while at < self.len {
            let bytes = self.word(at) as usize & 0x3fff_ffff;
            let words = bytes.div_ceil(size_of::<u64>());
            if words == 0 || at + words >= self.len {
                break;
            }
            let is_sample = self.word(at + 2) as u32 == wire::Kind::LIFE_SAMPLE.0;
            let used = if is_sample {
                size_of::<wire::Sample>() / size_of::<u64>()
            } else {
                words
            };
            own.extend((at + 1..at + 1 + used.min(words)).map(|at| (at, self.word(at))));
            at += 1 + words;
        }
        own
    }

    /// Checks that the map contains no kernel address.
    fn scan(&self) -> Result<(), Failed> {
        let own = self.own();
        let found = own.iter().find(|(_, word)| is_kernel_address(*word));
        ensure(found.is_none(), || {
            format!("{}: a kernel address: {found:x?}", self.name)
        })
    }
}

/// Does all kinds of work that the BPF programs record.
fn work() -> Result<(), Failed> {
    let server = std::net::TcpListener::bind("127.0.0.1:0")?;
    let mut client = std::net::TcpStream::connect(server.local_addr()?)?;
    let (mut peer, _) = server.accept()?;
    client.write_all(b"x")?;
    std::io::Read::read_exact(&mut peer, &mut [0])?;
    let file = std::env::temp_dir().join(format!("tr-caller-{}", std::process::id()));
    std::fs::write(&file, [0; PAGE])?;
    std::fs::File::open(&file)?.sync_all()?;
    std::fs::remove_file(&file)?;
    let until = Instant::now() + Duration::from_millis(120);
    while Instant::now() < until {
        // The shell runs in user mode and in the kernel, and sleeps, so that all kinds of samples are taken.
        Command::new("sh").args(["-c", "sleep 0.005"]).status()?;
        // The signal is ignored, but the kernel generates it, and the programs record that.
        // SAFETY: a plain system call.
        unsafe { libc::kill(libc::getpid(), libc::SIGCHLD) };
    }
    Ok(())
}

/// Runs the BPF iterator over all tasks by reading from the iterator's file. A process other than this one reads,
/// because the BPF program never follows the process that reads (normally the recorder).
fn iterate(link: &OwnedFd) -> Result<(), Failed> {
    let link = link.as_raw_fd().unsigned_abs().into();
    let mut reader = Command::new("true");
    // SAFETY: the closure only makes system calls.
    unsafe {
        reader.pre_exec(move || {
            let iterator = bpf(ITER_CREATE, [link, 0, 0, 0]);
            let mut bytes = [0u8; PAGE];
            let place = bytes.as_mut_ptr().cast();
            let got = loop {
                let got = libc::read(iterator as RawFd, place, PAGE);
                if got <= 0 {
                    break got;
                }
            };
            match got {
                0 => Ok(()),
                _ => Err(std::io::Error::last_os_error()),
            }
        });
    }
    let status = reader.status()?;
    ensure(status.success(), || status.to_string())
}

/// As the user, reads all maps and writes to all that are writable, and checks that no kernel address appears.
fn attack(descriptors: &[OwnedFd]) -> Result<(), Failed> {
    for fd in descriptors {
        let target = std::fs::read_link(format!("/proc/self/fd/{}", fd.as_raw_fd()))?;
        let target = target.to_string_lossy();
        // The user must not get the descriptor of a BPF program: with the descriptor, the user could run the program
        // with arguments of his own, or attach the program elsewhere.
        ensure(
            target == "anon_inode:bpf-map" || target.starts_with("anon_inode:bpf"),
            || format!("{target} is passed"),
        )?;
        ensure(fact(fd, "prog_type").is_none(), || {
            "a program is passed".to_owned()
        })?;
    }
    let link = |fd: &&OwnedFd| fact(fd, "link_type").as_deref() == Some("iter");
    let tasks = descriptors.iter().find(link).ok_or("no iterator")?;
    iterate(tasks)?;
    let fds = descriptors
        .iter()
        .filter(|fd| fact(fd, "map_type").is_some());
    let fds: Vec<&OwnedFd> = fds.collect();
    let maps = fds.iter().map(|fd| Map::of(fd));
    let maps: Vec<Map> = maps.collect::<Result<_, _>>()?;
    work()?;
    for map in &maps {
        map.scan()?;
    }
    // The user must be able to write neither to the records in the ring buffers nor to the map in which the BPF
    // programs keep figures about themselves.
    let told = maps.iter().filter(|map| map.writable.is_none());
    ensure(told.clone().count() == 3, || {
        let all = maps.iter().map(|map| (&map.name, map.writable.is_some()));
        format!("{:?}", all.collect::<Vec<_>>())
    })?;
    for (map, fd) in maps.iter().zip(&fds) {
        if map.writable.is_some() || map.is_ring {
            continue;
        }
        let (key, value) = ([0u32; 2], vec![0u64; map.len]);
        let words = [
            fd.as_raw_fd().unsigned_abs().into(),
            key.as_ptr() as u64,
            value.as_ptr() as u64,
            0,
        ];
        let done = bpf(MAP_UPDATE_ELEM, words);
        ensure(done < 0, || format!("{} can be written", map.name))?;
    }
    // Fills all writable maps with this process's id, so that the programs watch its signals, and then with addresses
    // and other numbers.
    let pid = u64::from(std::process::id());
    for fill in [pid << 32 | pid, 0, 1, 1 << 31, u64::MAX]
        .into_iter()
        .chain(FORGED)
    {
        for map in &maps {
            let Some(words) = map.writable else { continue };
            for at in 0..map.len {
                // SAFETY: `at` is less than the length of the mapping.
                unsafe { words.add(at).write_volatile(fill) };
            }
        }
        work()?;
        iterate(tasks)?;
        for map in &maps {
            map.scan()?;
        }
    }
    let used = maps.iter().map(Map::used);
    ensure(used.clone().all(|used| used > 0), || {
        format!("{:?}", used.collect::<Vec<_>>())
    })
}

/// With only the descriptors that the loader passes, a user reads no kernel memory.
pub fn hostile() -> Result<(), Failed> {
    let place = Place::new("sudo-hostile", ALLOWED)?;
    // Only this process is recorded, because build ids of many programs could look like kernel addresses.
    let pid = std::process::id().to_string();
    let kinds = ["--syscalls", "--stacks", "--off-cpu-stacks"];
    let options = [&["-p", &pid, "--buffer", "1M"], &kinds[..]].concat();
    let request = request(&place, &options)?;
    let (mut child, mut socket) = loader(&place)?;
    socket.write_all(&request)?;
    let (bytes, mut descriptors) = answer(&socket)?;
    ensure(!descriptors.is_empty(), || crate::support::text(&bytes))?;
    drop(socket);
    ensure(child.wait()?.success(), || "the loader fails".to_owned())?;
    // A recording must count as living as long as the user holds some of its descriptors. The memory of the recording's
    // maps must be counted, too.
    let (all, before) = (Living::find(), descriptors.len());
    as_user(|| attack(&descriptors))?;
    descriptors.retain(|fd| fact(fd, "map_type").is_some());
    ensure(descriptors.len() < before, || before.to_string())?;
    let kept = Living::find();
    ensure(
        kept.memory >= all.memory.min(1 << 20) && kept.recordings > 0,
        || format!("{all:?}, {kept:?}"),
    )
}

/// A loader waits while another loader of the same user runs, but not while only loaders of other users run.
pub fn one_at_a_time() -> Result<(), Failed> {
    let place = Place::new("sudo-one", ALLOWED)?;
    let request = request(&place, &[])?;
    let mut file = std::fs::OpenOptions::new();
    let file = file.write(true).create(true).truncate(false);
    let file = file.open("/run/tr-loader.lock")?;
    let lock = |user: u32, kind: libc::c_int| {
        // SAFETY: all zeros are a valid `flock`, and the system call only reads it.
        let done = unsafe {
            let mut byte: libc::flock = std::mem::zeroed();
            byte.l_type = kind as libc::c_short;
            byte.l_start = user.into();
            byte.l_len = 1;
            libc::fcntl(file.as_raw_fd(), libc::F_OFD_SETLK, &raw const byte)
        };
        ensure(done == 0, || format!("{}", std::io::Error::last_os_error()))
    };
    lock(NOBODY - 1, libc::F_WRLCK)?;
    let (mut child, mut socket) = loader(&place)?;
    socket.write_all(&request)?;
    ensure(!answer(&socket)?.1.is_empty(), || {
        "no descriptors".to_owned()
    })?;
    drop(socket);
    child.wait()?;
    lock(NOBODY, libc::F_WRLCK)?;
    let (mut child, mut socket) = loader(&place)?;
    socket.write_all(&request)?;
    std::thread::sleep(Duration::from_millis(500));
    ensure(child.try_wait()?.is_none(), || {
        "it has not waited".to_owned()
    })?;
    socket.set_nonblocking(true)?;
    let early = std::io::Read::read(&mut &socket, &mut [0]);
    ensure(early.is_err(), || "it has answered".to_owned())?;
    socket.set_nonblocking(false)?;
    lock(NOBODY, libc::F_UNLCK)?;
    ensure(!answer(&socket)?.1.is_empty(), || {
        "no descriptors".to_owned()
    })?;
    drop(socket);
    eventually("the loader ends", || {
        child.try_wait().is_ok_and(|status| status.is_some())
    })
}
