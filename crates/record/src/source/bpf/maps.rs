//! Reads the memory mappings of processes whose stacks are sampled. The stacks from the kernel only have the build ids
//! of files. `/proc/PID/maps` also has the paths of the files, including files without a build id, as long as the
//! process lives.

use std::collections::HashSet;
use std::fs::File;
use std::io::Read;
use std::time::SystemTime;

use tr_bpf::wire;

use super::convert;
use crate::mappings::{Image, Mapped};
use crate::proc;
use crate::stacks::BuildId;

/// The largest number of build ids of files that are remembered as known.
const IDS: usize = 1 << 14;
/// The largest number of processes whose mappings are read each time that the BPF programs' buffers are drained. A read
/// takes 35 µs (node, 100 mappings).
const PROCESSES: usize = 64;
/// The largest number of bytes that are read of one process's `/proc/PID/maps`.
const LONGEST_MAPS: u64 = 1 << 20;

#[derive(Debug, Default)]
pub struct Maps {
    /// The build ids of the files in earlier samples of processes whose mappings were read. For these files no mappings
    /// have to be read again.
    known: HashSet<BuildId>,
}

impl Maps {
    /// Reads the mappings of the process in the record of a sample and adds them to the list `drain`, if one of the
    /// files in the sample is unknown, or if the sample has addresses for which the kernel has found no file.
    pub fn see(&mut self, record: &[u8], drain: &mut Vec<Mapped>) {
        let Some((sample, frames)) = convert::sample(record) else {
            return;
        };
        let (mut new, mut addresses) = (Vec::new(), false);
        for frame in frames {
            match frame.status {
                wire::FRAME_IN_FILE if !self.known.contains(&frame.build_id) => {
                    new.push(frame.build_id);
                }
                wire::FRAME_ADDRESS => addresses |= frame.at != 0,
                _ => {}
            }
        }
        if new.is_empty() && !addresses {
            return;
        }
        let image = (sample.seen_tgid, sample.arguments);
        let known = drain.iter().find(|mapped| mapped.image == image);
        let found = match known {
            Some(mapped) => !mapped.maps.is_empty(),
            None if drain.len() >= PROCESSES => false,
            None => {
                // The text is empty for a process that exits, because such a process has no mappings any more.
                let time = SystemTime::now();
                let maps = read(image).unwrap_or_default();
                let found = !maps.is_empty();
                drain.push(Mapped { image, time, maps });
                found
            }
        };
        if found && self.known.len() < IDS {
            self.known.extend(new);
        }
    }
}

/// The text of `/proc/PID/maps` of a process; `None` if the process no longer runs the given program.
fn read((pid, arguments): Image) -> Option<Vec<u8>> {
    let id = proc::Id::try_from(pid).ok().filter(|id| *id > 0)?;
    let mut maps = Vec::new();
    let file = File::open(format!("/proc/{pid}/maps")).ok()?;
    file.take(LONGEST_MAPS).read_to_end(&mut maps).ok()?;
    // If the text was cut at the limit, its last line is incomplete and is removed.
    let whole = maps.iter().rposition(|byte| *byte == b'\n')?;
    maps.truncate(whole + 1);
    // If the sampled program still runs now, it also ran during the read, so that the mappings belong to that program.
    let runs = proc::stat(id).is_some_and(|stat| stat.arguments == arguments);
    (arguments != 0 && runs).then_some(maps)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mappings_are_those_of_the_program_that_was_sampled() {
        let pid = std::process::id();
        let own = proc::stat(proc::Id::try_from(pid).unwrap()).unwrap();
        let maps = read((pid, own.arguments)).unwrap();
        let exe = std::env::current_exe().unwrap();
        let exe = exe.as_os_str().as_encoded_bytes();
        assert!(maps.windows(exe.len()).any(|part| part == exe));
        // There are no mappings for an earlier program of the process, nor for a process without arguments or with the
        // id 0.
        assert_eq!(read((pid, own.arguments + 16)), None);
        assert_eq!(read((pid, 0)), None);
        assert_eq!(read((0, own.arguments)), None);
    }
}
