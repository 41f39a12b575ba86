//! The paths of sampled files: the kernel tells their build ids, `/proc/PID/maps` the paths, as long
//! as the process lives.

use std::collections::HashSet;
use std::fs;
use std::os::unix::ffi::OsStringExt;
use std::path::PathBuf;

use tr_bpf::wire;
use zerocopy::FromBytes;

use crate::stacks::BuildId;

/// The most build ids and paths that are kept.
const MOST: usize = 1 << 14;

/// The files so far.
#[derive(Debug, Default)]
pub struct Maps {
    /// Build ids of a process whose mappings were read.
    known: HashSet<BuildId>,
    paths: HashSet<PathBuf>,
}

impl Maps {
    /// Adds the new paths of a sampled process to `to`, if one of its files is not known.
    pub fn see(&mut self, record: &[u8], to: &mut Vec<PathBuf>) {
        let Ok((head, _)) = wire::Head::read_from_prefix(record) else {
            return;
        };
        if head.kind != wire::LIFE_SAMPLE || self.paths.len() >= MOST {
            return;
        }
        let Ok((sample, tail)) = wire::Sample::read_from_prefix(record) else {
            return;
        };
        let frames = tail.chunks_exact(size_of::<wire::StackFrame>());
        let used = usize::try_from(sample.user_len).unwrap_or(0);
        let frames = frames.take(used / size_of::<wire::StackFrame>());
        let frames = frames.filter_map(|it| wire::StackFrame::read_from_bytes(it).ok());
        let files = frames.filter(|it| it.status == wire::FRAME_IN_FILE);
        let new: Vec<BuildId> = files
            .map(|it| it.build_id)
            .filter(|it| !self.known.contains(it))
            .collect();
        if new.is_empty() {
            return;
        }
        let Ok(maps) = fs::read(format!("/proc/{}/maps", sample.seen_tgid)) else {
            return;
        };
        // A process that exits has none.
        let paths: Vec<PathBuf> = executable(&maps).collect();
        if !paths.is_empty() {
            self.known.extend(new);
        }
        let paths = paths.into_iter();
        to.extend(paths.filter(|path| self.paths.insert(path.clone())));
    }
}

/// The files that are mapped executable (proc(5)).
fn executable(maps: &[u8]) -> impl Iterator<Item = PathBuf> + '_ {
    maps.split(|byte| *byte == b'\n').filter_map(|line| {
        let mut words = line.splitn(6, |byte| *byte == b' ');
        let rights = words.nth(1)?;
        let path = words.nth(3)?.trim_ascii_start();
        let is = rights.get(2) == Some(&b'x') && path.starts_with(b"/");
        let path = std::ffi::OsString::from_vec(path.to_vec());
        is.then(|| PathBuf::from(path))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn executable_files_have_a_path() {
        let maps = b"55a0-55a1 r--p 00000000 fe:00 12   /usr/bin/cat\n\
            55a1-55a6 r-xp 00002000 fe:00 12     /usr/bin/a b\n\
            7f00-7f01 r-xp 00000000 00:00 0 \n\
            7ffe-7fff r-xp 00000000 00:00 0      [vdso]\n";
        let paths: Vec<PathBuf> = executable(maps).collect();
        assert_eq!(paths, [PathBuf::from("/usr/bin/a b")]);
    }
}
