//! Finds the file that contains an address of a process, for files without a build id. The memory mappings of the
//! process show the file; `/proc/PID/maps` lists the mappings while the process lives.

use std::collections::HashMap;
use std::ffi::OsString;
use std::ops::Range;
use std::os::unix::ffi::OsStringExt;
use std::path::PathBuf;
use std::time::SystemTime;

/// The largest number of bytes of `/proc/PID/maps`, summed over all processes, from which mappings are kept. The
/// mappings take some three times that memory. Beyond this limit all mappings are dropped; those of living processes
/// are read again.
const MOST_BYTES: usize = 4 << 20;

/// A program in a process: the process's id in `tr`'s own pid namespace, and the address of the program's arguments,
/// which differs between the programs that the process executes.
pub type Image = (u32, u64);

/// The memory mappings of a process, as they were read from `/proc`.
#[derive(Clone, Debug)]
pub struct Mapped {
    pub image: Image,
    /// A time shortly before the mappings of the process were read.
    pub time: SystemTime,
    /// The text of the process's `/proc/PID/maps`; empty if the process has ended.
    pub maps: Vec<u8>,
}

/// A file that a process has mapped executable.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mapping {
    addresses: Range<u64>,
    /// The offset in the file to which the first mapped address corresponds.
    offset: u64,
    /// The inode number of the mapped file (`st_ino`).
    pub inode: u64,
    /// The path of the mapped file in the process's mount namespace.
    pub path: PathBuf,
    /// A time shortly before the mapping was read from `/proc`.
    pub time: SystemTime,
}

impl Mapping {
    /// Parses a line of `/proc/PID/maps` (proc_pid_maps(5)), which describes a mapping of a file.
    fn parse(line: &[u8], time: SystemTime) -> Option<Mapping> {
        let mut words = line.splitn(6, |byte| *byte == b' ');
        let mut word = || std::str::from_utf8(words.next()?).ok();
        let (begin, end) = word()?.split_once('-')?;
        let rights = word()?;
        let hex = |text: &str| u64::from_str_radix(text, 16).ok();
        let offset = hex(word()?)?;
        let _device = word()?;
        let inode = word()?.parse().ok()?;
        let path = words.next()?.trim_ascii_start();
        // The kernel appends this text if the file was deleted. The inode number stays valid as long as the file is
        // mapped.
        let path = path.strip_suffix(b" (deleted)").unwrap_or(path);
        let is = rights.as_bytes().get(2) == Some(&b'x') && path.starts_with(b"/");
        is.then_some(Mapping {
            addresses: hex(begin)?..hex(end)?,
            offset,
            inode,
            path: OsString::from_vec(path.to_vec()).into(),
            time,
        })
    }
}

/// The mappings of all processes whose stacks are sampled.
#[derive(Debug, Default)]
pub struct Mappings {
    /// The executable mappings of each program in a process, in the order of their addresses.
    images: HashMap<Image, Vec<Mapping>>,
    /// The number of bytes of all texts of `/proc/PID/maps` from which the mappings were made.
    bytes: usize,
}

impl Mappings {
    /// Takes the mappings of a process, which replace the earlier ones of the same program. Returns the paths of the
    /// executable files.
    pub fn take(&mut self, from: &Mapped) -> impl Iterator<Item = &PathBuf> {
        // The text is empty if the process has ended: then its earlier mappings are kept, because they were correct.
        if !from.maps.is_empty() {
            self.bytes += from.maps.len();
            if self.bytes > MOST_BYTES {
                self.images.clear();
                self.bytes = from.maps.len();
            }
            let lines = from.maps.split(|byte| *byte == b'\n');
            let all = lines.filter_map(|line| Mapping::parse(line, from.time));
            self.images.insert(from.image, all.collect());
        }
        let image = self.images.get(&from.image);
        image.into_iter().flatten().map(|mapping| &mapping.path)
    }

    /// The mapping that contains an address of a process, and the offset in the mapped file to which the address
    /// corresponds.
    pub fn find(&self, image: Image, address: u64) -> Option<(&Mapping, u64)> {
        let all = self.images.get(&image)?;
        let after = all.partition_point(|mapping| mapping.addresses.start <= address);
        let mapping = all.get(after.checked_sub(1)?)?;
        let distance = address.checked_sub(mapping.addresses.start)?;
        let inside = mapping.addresses.contains(&address);
        inside.then(|| (mapping, mapping.offset.wrapping_add(distance)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MAPS: &[u8] = b"55a0-55a1 r--p 00000000 fe:00 12   /usr/bin/cat\n\
        55a1-55a6 r-xp 00002000 fe:00 12     /usr/bin/a b\n\
        7f00-7f01 r-xp 00000000 00:00 0 \n\
        7f02-7f04 r-xp 00000000 00:00 0\n\
        7ffe-7fff r-xp 00000000 00:00 0      [vdso]\n\
        8000-9000 r-xp 00001000 fe:00 13     /gone (deleted)\n";

    #[test]
    fn an_address_is_in_the_file_that_is_mapped_there() {
        let mut mappings = Mappings::default();
        let image = (7, 0x7ff0);
        let mapped = |maps: &[u8]| Mapped {
            image,
            time: SystemTime::UNIX_EPOCH,
            maps: maps.to_vec(),
        };
        let paths: Vec<PathBuf> = mappings.take(&mapped(MAPS)).cloned().collect();
        assert_eq!(paths, [PathBuf::from("/usr/bin/a b"), "/gone".into()]);
        let at = |mappings: &Mappings, address| {
            let (mapping, offset) = mappings.find(image, address)?;
            Some((mapping.inode, offset))
        };
        assert_eq!(at(&mappings, 0x55a1), Some((12, 0x2000)));
        assert_eq!(at(&mappings, 0x55a5), Some((12, 0x2004)));
        assert_eq!(at(&mappings, 0x55a6), None);
        assert_eq!(at(&mappings, 0x55a0), None);
        assert_eq!(at(&mappings, 0x8fff), Some((13, 0x1fff)));
        // Another program that the same process executed has none of these mappings.
        assert_eq!(mappings.find((7, 0x7fe0), 0x55a1), None);
        // The mappings of an ended process are kept; later mappings of a process replace its earlier ones.
        let _ = mappings.take(&mapped(b"")).count();
        assert_eq!(at(&mappings, 0x55a1), Some((12, 0x2000)));
        let _ = mappings.take(&mapped(b"1-2 r-xp 0 0:0 5 /new\n")).count();
        assert_eq!(at(&mappings, 0x55a1), None);
        assert_eq!(at(&mappings, 1), Some((5, 0)));
        // The loop adds more mappings than the limit of memory allows, so that earlier ones are dropped.
        for pid in 0..2 * MOST_BYTES / MAPS.len() {
            let image = (u32::try_from(pid).unwrap(), 1);
            let _ = mappings
                .take(&Mapped {
                    image,
                    ..mapped(MAPS)
                })
                .count();
        }
        assert!(mappings.images.len() <= MOST_BYTES / MAPS.len());
    }
}
