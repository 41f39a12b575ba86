//! Reads the free space of the file system that contains COMMAND's first working directory.

use std::path::{Path, PathBuf};

use nix::sys::statfs::{statfs, FsType, OVERLAYFS_SUPER_MAGIC, TMPFS_MAGIC};

/// The types of file systems whose data is on this machine. The numbers are those of ext2 to ext4, xfs, btrfs, f2fs,
/// bcachefs and ZFS.
const LOCAL_TYPES: [FsType; 8] = [
    TMPFS_MAGIC,
    OVERLAYFS_SUPER_MAGIC,
    FsType(0xef53),
    FsType(0x5846_5342),
    FsType(0x9123_683e),
    FsType(0xf2f5_2010),
    FsType(0xca45_1a4e),
    FsType(0x2fc1_2fc1),
];

/// A file system, and the least free space that was read since [`FreeSpace::take`] was last called.
#[derive(Debug)]
pub struct FreeSpace {
    path: PathBuf,
    least: Option<u64>,
}

impl FreeSpace {
    /// The file system of the working directory, in which COMMAND begins; `None` if its data is on another
    /// machine, which may not answer for a long time.
    pub fn of_working_directory() -> Option<FreeSpace> {
        FreeSpace::of(Path::new("."))
    }

    fn of(path: &Path) -> Option<FreeSpace> {
        let kind = statfs(path).ok()?.filesystem_type();
        let space = FreeSpace {
            path: path.to_owned(),
            least: None,
        };
        LOCAL_TYPES.contains(&kind).then_some(space)
    }

    /// Reads the free space of the file system, and remembers it if it is the least so far.
    pub fn look(&mut self) {
        let Ok(now) = statfs(self.path.as_path()) else {
            return;
        };
        let size = u64::try_from(now.block_size()).unwrap_or(0);
        let free = now.blocks_available().saturating_mul(size);
        self.least = Some(self.least.map_or(free, |least| least.min(free)));
    }

    /// Returns the least free space of the file system, in bytes, that was read since the last call of this
    /// function.
    pub fn take(&mut self) -> Option<u64> {
        self.look();
        self.least.take()
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use nix::sys::statfs::{EXT4_SUPER_MAGIC, NFS_SUPER_MAGIC};

    #[test]
    fn the_least_free_space_is_kept_until_it_is_taken() {
        let directory = tempfile::tempdir().unwrap();
        // The test builds the struct directly, because `of_working_directory` returns `None` on a file system that is
        // not local, and the test's directory may be on such a file system.
        let mut space = FreeSpace {
            path: directory.path().to_owned(),
            least: Some(1),
        };
        assert_eq!(space.take(), Some(1));
        let free = space.take().unwrap();
        assert!(free > 1, "{free}");
    }

    #[test]
    fn no_other_machine_is_waited_for() {
        assert!(!LOCAL_TYPES.contains(&NFS_SUPER_MAGIC));
        assert!(LOCAL_TYPES.contains(&EXT4_SUPER_MAGIC));
        assert!(FreeSpace::of(Path::new("/proc")).is_none());
    }
}
