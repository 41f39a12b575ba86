//! Reads lists of functions that are text: the kernel's list and the lists of JIT compilers.

use std::fs::{File, OpenOptions};
use std::io::Read;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use crate::Lifetime;

/// The largest number of bytes of a list of functions that are read. The rest of a longer list is ignored.
const LONGEST_LIST: u64 = 128 << 20;
/// The flags with which a text list of functions is opened. They are needed because another user can put a link or a
/// fifo at the list's path in /tmp.
const FLAGS: i32 = libc::O_NOFOLLOW | libc::O_NONBLOCK;
/// The longest time between two ticks of a kernel's clock in ns (CONFIG_HZ_100). A changed file gets the time of the
/// last tick as its time stamp, so the stamp can be up to this much too early.
const TICK: u64 = 10_000_000;

/// A table of functions with their addresses, in the order of the addresses.
#[derive(Debug, Default)]
pub struct Table {
    functions: Vec<Listed>,
}

/// A function in a list of functions, with its name and the addresses at which it begins and ends.
#[derive(Debug)]
struct Listed {
    /// The address of the function's first byte.
    begin: u64,
    /// The address after the function's last byte; `None` if the function ends where the next one begins.
    end: Option<u64>,
    name: Box<str>,
}

impl Table {
    /// The kernel's functions (`/proc/kallsyms`); `None` if the kernel hides their addresses or the list cannot be
    /// read.
    pub fn of_kernel() -> Option<Table> {
        // `open` refuses links and fifos by its flags, because it is made for lists in /tmp. /proc/kallsyms needs no
        // such flags, but procfs accepts them.
        Some(Table::kallsyms(&text(open(Path::new("/proc/kallsyms"))?)?))
            .filter(|table| !table.functions.is_empty())
    }

    /// Reads the functions that a JIT compiler has made in a process (tools/perf/Documentation/jit-interface.txt). A
    /// list is used only if it was last written while the process ran: nobody removes old lists, and pids are reused.
    pub fn of_process(pid: u32, lifetime: Lifetime) -> Option<Table> {
        let file = open(&path(pid))?;
        let modified = file.metadata().ok()?.modified().ok()?;
        let since_1970 = modified.duration_since(SystemTime::UNIX_EPOCH).ok()?;
        let written = u64::try_from(since_1970.as_nanos()).ok()?;
        // The kernel stamps a written file with the time of its last clock tick, so the stamp can be one tick before
        // the process's start.
        let earliest = lifetime.begin.saturating_sub(TICK);
        if !(earliest..=lifetime.end).contains(&written) {
            return None;
        }
        Some(Table::perf_map(&text(file)?))
    }

    fn kallsyms(text: &str) -> Table {
        let functions = text.lines().filter_map(|line| {
            let mut words = line.split_ascii_whitespace();
            let address = u64::from_str_radix(words.next()?, 16).ok()?;
            let kind = words.next()?;
            let code = matches!(kind, "t" | "T" | "w" | "W");
            let name = words.next()?;
            (code && address != 0).then(|| Listed {
                begin: address,
                end: None,
                name: name.into(),
            })
        });
        Table::sorted(functions.collect())
    }

    fn perf_map(text: &str) -> Table {
        let functions = text.lines().filter_map(|line| {
            let (begin, rest) = line.split_once(' ')?;
            let (size, name) = rest.split_once(' ')?;
            let number = |text: &str| {
                let text = text.strip_prefix("0x").unwrap_or(text);
                u64::from_str_radix(text, 16).ok()
            };
            let begin = number(begin)?;
            let end = begin.checked_add(number(size)?)?;
            Some(Listed {
                begin,
                end: Some(end),
                name: name.into(),
            })
        });
        Table::sorted(functions.collect())
    }

    /// Makes a table of the given functions, sorted by their addresses. Functions with the same address stay in the
    /// order of the list, in which newer code comes later. So [`Table::name`] finds the newest one.
    fn sorted(mut functions: Vec<Listed>) -> Table {
        functions.sort_by_key(|function| function.begin);
        Table { functions }
    }

    /// The name of the function in the table that contains the given address; `None` if no function contains the
    /// address.
    pub fn name(&self, address: u64) -> Option<&str> {
        let after = self
            .functions
            .partition_point(|function| function.begin <= address);
        let function = self.functions.get(after.checked_sub(1)?)?;
        let is_inside = function.end.is_none_or(|end| address < end);
        is_inside.then_some(&*function.name)
    }
}

/// The path of the list that a JIT compiler writes for a process.
pub fn path(pid: u32) -> PathBuf {
    format!("/tmp/perf-{pid}.map").into()
}

fn open(path: &Path) -> Option<File> {
    let file = OpenOptions::new()
        .read(true)
        .custom_flags(FLAGS)
        .open(path)
        .ok()?;
    file.metadata().ok().filter(|meta| meta.is_file())?;
    Some(file)
}

fn text(file: File) -> Option<String> {
    let mut bytes = Vec::new();
    file.take(LONGEST_LIST).read_to_end(&mut bytes).ok()?;
    Some(String::from_utf8_lossy(&bytes).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_in_the_function_before_it() {
        let table = Table::kallsyms(
            "ffffffff81000000 T _stext\nffffffff81000100 t do_work [mod]\n\
             ffffffff81000180 d data\n0000000000000000 T hidden\n",
        );
        assert_eq!(table.name(0xffff_ffff_8100_0000), Some("_stext"));
        assert_eq!(table.name(0xffff_ffff_8100_01ff), Some("do_work"));
        assert_eq!(table.name(0xffff_ffff_80ff_ffff), None);
        assert_eq!(table.name(4), None);
    }

    #[test]
    fn the_last_function_at_an_address_counts() {
        let map =
            "1000 10 LazyCompile:~old a.js:1\n0x2000 0x8 b c\n1000 20 LazyCompile:*new\nx y\n";
        let table = Table::perf_map(map);
        assert_eq!(table.name(0x1018), Some("LazyCompile:*new"));
        assert_eq!(table.name(0x2007), Some("b c"));
        assert_eq!(table.name(0x2008), None);
        assert_eq!(table.name(0xfff), None);
    }
}
