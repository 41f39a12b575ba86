//! Reads a script's file that a recorded process has opened by its path, and names in directories. Reading waits for
//! nothing but a local disk, nothing but regular files and directories is opened, and only what the process itself
//! could read is read.

use std::collections::HashMap;
use std::fs::File;
use std::io::Read;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};

use nix::unistd::{setfsgid, setfsuid, Gid, Uid};
use rustix::fs::{
    openat2, statx, AtFlags, Dir, FileType, Mode, OFlags, ResolveFlags, Statx, StatxAttributes,
    StatxFlags, CWD,
};
use rustix::io::Errno;
use rustix::process::{dumpable_behavior, getgroups, set_dumpable_behavior, DumpableBehavior};
use rustix::thread::{capabilities, set_thread_groups, CapabilitySet};
use tr_format::limits;

use crate::proc::{self, Id};

/// The types of file systems where a read can wait for nothing but a disk of this machine.
const LOCAL_TYPES: [&[u8]; 17] = [
    b"bcachefs",
    b"btrfs",
    b"erofs",
    b"exfat",
    b"ext2",
    b"ext3",
    b"ext4",
    b"f2fs",
    b"iso9660",
    b"jfs",
    b"overlay",
    b"ramfs",
    b"rootfs",
    b"squashfs",
    b"tmpfs",
    b"xfs",
    b"zfs",
];

/// The flag with which `openat2` looks a path up in the kernel's cache alone, and fails where it would wait for a disk
/// or a server (since Linux 5.12). The shell has just opened the file, so that its path is in the cache. A file system
/// on a network asks its server for each name, and so is refused.
const RESOLVE_CACHED: ResolveFlags = ResolveFlags::from_bits_retain(0x20);

/// The number of attempts to look up a path that another process changes at the same time.
const ATTEMPTS: usize = 3;

/// The largest number of mounts for which it is remembered whether their file system is local.
const MOUNTS: usize = 1024;

/// The largest number of names in a directory that are read. A guess: a directory with more names does not list the
/// steps of a build.
const ENTRIES: usize = 1_000;

/// Whether this kernel has what [`Reader`] needs: [`RESOLVE_CACHED`], and the ids of mounts.
pub fn is_possible() -> bool {
    let root = openat2(
        CWD,
        c"/",
        OFlags::PATH | OFlags::CLOEXEC,
        Mode::empty(),
        RESOLVE_CACHED,
    );
    // EAGAIN shows that the kernel knows the flag, although its cache lacks the path at this moment.
    let has_flag = matches!(root, Ok(_) | Err(Errno::AGAIN));
    has_flag && root_mount("/").is_some()
}

/// The user, the group and the root directory of a task. They decide which file the task opens by a path, and whether
/// it may open the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Runner {
    /// The user id with whose rights the task opens files.
    pub fsuid: u32,
    /// The group id with whose rights the task opens files.
    pub fsgid: u32,
    /// The id of the mount whose root is the task's root directory; `None` if the root is another directory.
    pub root_mount: Option<u64>,
}

impl Runner {
    /// Reads the user, the group and the root directory of a task that `tr` traces; `None` if they cannot be read.
    pub fn of(task: Id) -> Option<Runner> {
        let (fsuid, fsgid) = proc::file_ids(task)?;
        Some(Runner {
            fsuid,
            fsgid,
            root_mount: root_mount(&format!("/proc/{task}/root/")),
        })
    }
}

/// The id of the mount whose root is this directory; `None` if the directory is not the root of a mount.
fn root_mount(directory: &str) -> Option<u64> {
    let root = statx(CWD, directory, AtFlags::STATX_DONT_SYNC, StatxFlags::MNT_ID).ok()?;
    let is_root = root.stx_attributes.contains(StatxAttributes::MOUNT_ROOT);
    let is_known = root.stx_mask & StatxFlags::MNT_ID.bits() != 0;
    (is_root && is_known).then_some(root.stx_mnt_id)
}

/// The state of a file at a moment: its identity, its size and its times. While they stay the same, so do the contents.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Version {
    device: (u32, u32),
    inode: u64,
    size: u64,
    /// The time of the last change of the file's contents, in ns since 1970. Programs can set it.
    modified: u64,
    /// The time of the last change of the file or of its properties, in ns since 1970.
    pub changed: u64,
}

impl Version {
    fn of(stat: &Statx) -> Version {
        let time = |seconds: i64, ns: u32| {
            let seconds = u64::try_from(seconds).unwrap_or(0);
            seconds
                .saturating_mul(1_000_000_000)
                .saturating_add(ns.into())
        };
        Version {
            device: (stat.stx_dev_major, stat.stx_dev_minor),
            inode: stat.stx_ino,
            size: stat.stx_size,
            modified: time(stat.stx_mtime.tv_sec, stat.stx_mtime.tv_nsec),
            changed: time(stat.stx_ctime.tv_sec, stat.stx_ctime.tv_nsec),
        }
    }
}

/// Reads script files with the rights of the recorded tasks that opened them.
#[derive(Debug)]
pub struct Reader {
    uid: u32,
    /// The id of the mount whose root is the recorder's own root directory.
    root_mount: Option<u64>,
    /// Whether the file system of each mount is a local one, by the mount's id and device.
    mounts: HashMap<(u64, (u32, u32)), bool>,
}

impl Reader {
    pub fn new() -> Reader {
        Reader {
            uid: Uid::effective().as_raw(),
            root_mount: root_mount("/"),
            mounts: HashMap::new(),
        }
    }

    /// Reads the contents of the script file at a path. A file that is longer than the longest recorded script is not
    /// read, and only its [`Version`] is returned. `None` if `is_wanted` refuses the version, if the task or `tr` may
    /// not read the file, if it is on no local file system, or if it changes during the read.
    ///
    /// For a task in another mount namespace, or with another root directory, nothing is read: such files can be
    /// reached only through the task's directory in `/proc`, which is gone when a short script has ended.
    pub fn read(
        &mut self,
        path: &[u8],
        runner: Runner,
        is_wanted: impl FnOnce(&Version) -> bool,
    ) -> Option<(Version, Option<Vec<u8>>)> {
        if self.root_mount.is_none() || runner.root_mount != self.root_mount {
            return None;
        }
        let rights = Rights::take(self.uid, runner)?;
        let (file, stat) = find(path, FileType::RegularFile)?;
        let version = Version::of(&stat);
        if !is_wanted(&version) || !self.is_local(&stat) {
            return None;
        }
        if version.size > limits::SCRIPT {
            return Some((version, None));
        }
        let bytes = contents(&file)?;
        drop(rights);
        // If the file's state has changed during the read, another process is writing the file, and the bytes belong to
        // no version.
        (Version::of(&state(&file)?) == version).then_some((version, Some(bytes)))
    }

    /// The names of the files in a directory, as the task could read them; empty if there are too many, or if `tr` may
    /// not read them (see the module).
    pub fn names(&mut self, directory: &[u8], runner: Runner) -> Vec<Vec<u8>> {
        self.known_names(directory, runner).unwrap_or_default()
    }

    fn known_names(&mut self, directory: &[u8], runner: Runner) -> Option<Vec<Vec<u8>>> {
        if self.root_mount.is_none() || runner.root_mount != self.root_mount {
            return None;
        }
        let _rights = Rights::take(self.uid, runner)?;
        let (file, stat) = find(directory, FileType::Directory)?;
        if !self.is_local(&stat) {
            return None;
        }
        let entries = Dir::new(open(&file, OFlags::DIRECTORY)?).ok()?;
        let mut names = Vec::new();
        for entry in entries.take(ENTRIES + 1) {
            names.push(entry.ok()?.file_name().to_bytes().to_vec());
        }
        (names.len() <= ENTRIES).then_some(names)
    }

    /// Whether a file is on a local file system. The table of mounts shows that without delay, while statfs(2) would
    /// ask the server of a file system on a network.
    fn is_local(&mut self, stat: &Statx) -> bool {
        let id = stat.stx_mnt_id;
        if stat.stx_mask & StatxFlags::MNT_ID.bits() == 0 {
            return false;
        }
        if self.mounts.len() >= MOUNTS {
            self.mounts.clear();
        }
        let key = (id, (stat.stx_dev_major, stat.stx_dev_minor));
        *self.mounts.entry(key).or_insert_with(|| {
            let table = std::fs::read("/proc/self/mountinfo").unwrap_or_default();
            file_system(&table, id).is_some_and(|name| LOCAL_TYPES.contains(&name))
        })
    }
}

/// The type of the file system of a mount, from a table of mounts (proc_pid_mountinfo(5)); `None` if the table lacks
/// the mount.
fn file_system(table: &[u8], id: u64) -> Option<&[u8]> {
    let id = id.to_string();
    let words = |line| <[u8]>::split(line, |byte| *byte == b' ');
    let mut lines = table.split(|byte| *byte == b'\n');
    let line = lines.find(|line| words(line).next() == Some(id.as_bytes()))?;
    words(line).skip_while(|word| *word != b"-").nth(1)
}

/// Finds a file of a kind without opening it: the open of a FIFO would let its writer go on, and the open of some
/// devices changes them.
fn find(path: &[u8], wanted: FileType) -> Option<(OwnedFd, Statx)> {
    let flags = OFlags::PATH | OFlags::CLOEXEC;
    let mut attempts =
        std::iter::repeat_with(|| openat2(CWD, path, flags, Mode::empty(), RESOLVE_CACHED));
    let file = attempts.by_ref().take(ATTEMPTS).find_map(Result::ok)?;
    let stat = state(&file)?;
    let kind = FileType::from_raw_mode(u32::from(stat.stx_mode));
    (kind == wanted).then_some((file, stat))
}

/// The facts about an open file (from statx) that the kernel knows without asking a server.
fn state(file: &OwnedFd) -> Option<Statx> {
    let flags = AtFlags::EMPTY_PATH | AtFlags::STATX_DONT_SYNC;
    let facts = StatxFlags::BASIC_STATS | StatxFlags::MNT_ID;
    statx(file.as_fd(), c"", flags, facts).ok()
}

/// Opens a file for reading that [`find`] has found without opening it. The kernel verifies the right to read the file.
fn open(file: &OwnedFd, more: OFlags) -> Option<OwnedFd> {
    let path = format!("/proc/self/fd/{}", file.as_raw_fd());
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC | more;
    rustix::fs::open(path, flags, Mode::empty()).ok()
}

/// Reads a file that [`find`] has found, at most as many bytes as a recorded script may have.
fn contents(file: &OwnedFd) -> Option<Vec<u8>> {
    let mut bytes = Vec::new();
    let mut part = File::from(open(file, OFlags::empty())?).take(limits::SCRIPT);
    part.read_to_end(&mut bytes).ok()?;
    Some(bytes)
}

/// The rights of a recorded task to open files. This thread has them until the value is dropped.
///
/// A user can start a shell with the path of a file that the user may not read, or can afterwards replace a script by
/// a link to such a file. So a recorder with root's rights reads another user's script with that user's rights. The
/// user's supplementary groups are left out, because they are not known.
struct Rights(Option<Before>);

/// The rights that this thread had before it took those of a recorded task.
struct Before {
    uid: Uid,
    gid: Gid,
    groups: Vec<rustix::process::Gid>,
    dumpable: Option<DumpableBehavior>,
}

impl Rights {
    fn take(own: u32, runner: Runner) -> Option<Rights> {
        if runner.fsuid == own {
            return (own == 0 || !may_bypass()).then_some(Rights(None));
        }
        if own != 0 {
            return None;
        }
        let before = Before {
            dumpable: dumpable_behavior().ok(),
            groups: getgroups().ok()?,
            gid: setfsgid(Gid::from_raw(runner.fsgid)),
            uid: Uid::from_raw(own),
        };
        let rights = Rights(Some(before));
        set_thread_groups(&[]).ok()?;
        setfsuid(Uid::from_raw(runner.fsuid));
        // setfsuid and setfsgid report no errors. Called with an invalid id, they change nothing and return the present
        // id. The capabilities are checked as well, because securebits can keep them.
        let uid = setfsuid(Uid::from_raw(u32::MAX)).as_raw();
        let gid = setfsgid(Gid::from_raw(u32::MAX)).as_raw();
        let is_changed = (uid, gid) == (runner.fsuid, runner.fsgid);
        (is_changed && !may_bypass()).then_some(rights)
    }
}

impl Drop for Rights {
    fn drop(&mut self) {
        if let Some(before) = &self.0 {
            setfsuid(before.uid);
            setfsgid(before.gid);
            let _ = set_thread_groups(&before.groups);
            // The kernel has forbidden core dumps of this process because it changed its user, so the setting is
            // restored.
            if let Some(dumpable) = before.dumpable {
                let _ = set_dumpable_behavior(dumpable);
            }
        }
    }
}

/// Whether this thread may read files whose permissions forbid it.
fn may_bypass() -> bool {
    let bypass = CapabilitySet::DAC_OVERRIDE | CapabilitySet::DAC_READ_SEARCH;
    capabilities(None).map_or(true, |sets| sets.effective.intersects(bypass))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_system_is_that_of_the_mount() {
        let table = b"22 1 0:21 / /proc rw,nosuid shared:5 - proc proc rw\n\
                      1 1 254:0 / / rw - ext4 /dev/vda rw\n\
                      122 1 0:50 / /n\\040x rw,relatime shared:1 master:2 - nfs4 h:/n rw\n";
        for (id, want) in [
            (22, Some("proc")),
            (1, Some("ext4")),
            (122, Some("nfs4")),
            (2, None),
        ] {
            let name = file_system(table, id);
            assert_eq!(name, want.map(str::as_bytes), "{id}");
        }
    }

    #[test]
    fn files_of_the_kernel_are_on_no_local_file_system() {
        let own = Runner::of(Id::try_from(std::process::id()).unwrap()).unwrap();
        let mut reader = Reader::new();
        let mut read = |path: &str| reader.read(path.as_bytes(), own, |_| true);
        assert!(read("/proc/self/status").is_none());
        assert!(read("/sys/kernel/mm/transparent_hugepage/enabled").is_none());
        assert!(read("/dev/zero").is_none());
    }
}
