//! The formats of the tracepoints, as the recorded kernel described them
//! (tools/perf/util/trace-event-read.c).

use std::collections::HashMap;

use super::bytes::Bytes;
use super::file::{damaged, refused};
use crate::Error;

const MAGIC: &[u8] = b"\x17\x08\x44tracing";
/// The most bytes of one format's text.
const FORMAT: u64 = 1 << 20;
/// A state's bits that no table names: not known.
const UNKNOWN_STATE: u16 = 0x4000;

/// A field of a tracepoint's record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Field {
    offset: usize,
    size: usize,
}

impl Field {
    /// Its value; `None` if the record ends before it.
    pub fn of(self, raw: &[u8]) -> Option<u64> {
        let bytes = raw.get(self.offset..self.offset.checked_add(self.size)?)?;
        let mut value = [0; 8];
        value.get_mut(..self.size)?.copy_from_slice(bytes);
        Some(u64::from_le_bytes(value))
    }

    /// Its value as a task's id.
    pub fn tid(self, raw: &[u8]) -> Option<u32> {
        u32::try_from(self.of(raw)?).ok()
    }

    /// The text that a `__data_loc` field points to: its length and offset, 16 bits each.
    pub fn text(self, raw: &[u8]) -> Option<&[u8]> {
        let place = self.of(raw)?;
        let (at, len) = ((place & 0xffff) as usize, (place >> 16 & 0xffff) as usize);
        let text = raw.get(at..at.checked_add(len)?)?;
        text.split(|byte| *byte == 0).next()
    }
}

/// The fields of all tracepoints.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Common {
    pub flags: Field,
    pub pid: Field,
}

/// The tracepoints that are read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Tracepoint {
    /// `sched_switch`.
    Switch {
        prev: Field,
        state: Field,
        next: Field,
        states: States,
    },
    /// `sched_waking`, `sched_wakeup`.
    Wakeup {
        common: Common,
        wakee: Field,
        /// It is `sched_waking`, which is preferred.
        waking: bool,
    },
    /// `sched_wakeup_new`.
    New { common: Common, wakee: Field },
    /// `sched_process_exec`.
    Exec {
        tid: Field,
        old: Field,
        filename: Field,
    },
}

/// The bits of `prev_state` in `sched_switch`, which are not those of the task's state
/// (`__trace_sched_switch_state`, include/trace/events/sched.h).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct States {
    /// The tracepoint's bits, and those of `StateName::of_linux`.
    bits: Vec<(u64, u16)>,
    preempted: u64,
}

impl States {
    /// From the letters of the tracepoint's `print fmt`: `{ 0x00000001, "S" }`. The bit after
    /// the last one is that of a preempted task (`TASK_REPORT_MAX`).
    fn read(format: &str) -> Option<States> {
        let flags = format.split_once("__print_flags(")?.1;
        let flags = flags.split_once(") : ").map_or(flags, |(flags, _)| flags);
        let mut bits = Vec::new();
        for entry in flags.split('{').skip(1) {
            let (bit, letter) = entry.split_once('}')?.0.split_once(',')?;
            let bit = bit.trim();
            let bit = match bit.strip_prefix("0x") {
                Some(hex) => u64::from_str_radix(hex, 16).ok()?,
                None => bit.parse().ok()?,
            };
            let raw = match letter.trim().trim_matches('"') {
                "S" => 0x1,
                "D" => 0x2,
                "T" => 0x4,
                "t" => 0x8,
                "P" => 0x40,
                "I" => 0x402,
                // A task that is switched out with an exit state has ended: TASK_DEAD itself
                // is not reported.
                "X" | "Z" | "x" => 0x80,
                _ => UNKNOWN_STATE,
            };
            bits.push((bit, raw));
        }
        let last = bits.iter().map(|(bit, _)| *bit).max()?;
        let single = bits.iter().all(|(bit, _)| bit.is_power_of_two());
        let preempted = last.checked_mul(2).filter(|_| single)?;
        Some(States { bits, preempted })
    }

    /// The raw state, and whether the task was preempted.
    pub fn of(&self, value: u64) -> (u16, bool) {
        if value & self.preempted != 0 {
            return (0, true);
        }
        let set = self.bits.iter().filter(|(bit, _)| value & bit != 0);
        let (known, raw) = set.fold((0, 0), |(known, raw), (bit, to)| (known | bit, raw | to));
        let more = if value & !known == 0 {
            0
        } else {
            UNKNOWN_STATE
        };
        (raw | more, false)
    }
}

/// The tracepoints by their id, and the size of a page.
#[derive(Debug)]
pub struct Formats {
    pub page_size: u32,
    pub by_id: HashMap<u64, Tracepoint>,
}

impl Formats {
    /// Reads the feature `TRACING_DATA`.
    ///
    /// # Errors
    /// It is damaged, or of a big-endian machine.
    pub fn read(bytes: &[u8]) -> Result<Formats, Error> {
        let cut = || damaged("the tracepoints' formats are cut off");
        let mut bytes = Bytes(bytes);
        if bytes.take(MAGIC.len()) != Some(MAGIC) {
            return Err(damaged("the tracepoints' formats do not begin as such"));
        }
        bytes.text().ok_or_else(cut)?; // its version
        if bytes.u8().ok_or_else(cut)? != 0 {
            return Err(refused("of a big-endian machine, which is not read"));
        }
        bytes.u8().ok_or_else(cut)?; // bytes of a long
        let page_size = bytes.u32().ok_or_else(cut)?;
        // header_page, header_event: the layout of ftrace's own buffers.
        for _ in 0..2 {
            bytes.text().ok_or_else(cut)?;
            sized(&mut bytes).ok_or_else(cut)?;
        }
        // ftrace's own events.
        for _ in 0..bytes.u32().ok_or_else(cut)? {
            sized(&mut bytes).ok_or_else(cut)?;
        }
        let mut by_id = HashMap::new();
        for _ in 0..bytes.u32().ok_or_else(cut)? {
            let system = bytes.text().ok_or_else(cut)?;
            for _ in 0..bytes.u32().ok_or_else(cut)? {
                let format = sized(&mut bytes).ok_or_else(cut)?;
                if system != b"sched" {
                    continue;
                }
                let text = String::from_utf8_lossy(format);
                if let Some((id, tracepoint)) = tracepoint(&text)? {
                    by_id.insert(id, tracepoint);
                }
            }
        }
        Ok(Formats { page_size, by_id })
    }
}

fn sized<'a>(bytes: &mut Bytes<'a>) -> Option<&'a [u8]> {
    let len = bytes.u64().filter(|len| *len <= FORMAT)?;
    bytes.take(usize::try_from(len).ok()?)
}

/// A tracepoint's id and fields; `None` if it is none of those that are read.
fn tracepoint(text: &str) -> Result<Option<(u64, Tracepoint)>, Error> {
    let line = |start: &str| text.lines().find_map(|line| line.strip_prefix(start));
    let name = line("name: ").unwrap_or_default().trim();
    let lacks = |what: &str| damaged(format!("the format of {name} has no {what}"));
    let field = |name: &str| field(text, name).ok_or_else(|| lacks(name));
    let common = || {
        Ok::<_, Error>(Common {
            flags: field("common_flags")?,
            pid: field("common_pid")?,
        })
    };
    let known = match name {
        "sched_switch" => Tracepoint::Switch {
            prev: field("prev_pid")?,
            state: field("prev_state")?,
            next: field("next_pid")?,
            states: States::read(text).ok_or_else(|| lacks("states"))?,
        },
        "sched_waking" | "sched_wakeup" => Tracepoint::Wakeup {
            common: common()?,
            wakee: field("pid")?,
            waking: name == "sched_waking",
        },
        "sched_wakeup_new" => Tracepoint::New {
            common: common()?,
            wakee: field("pid")?,
        },
        "sched_process_exec" => Tracepoint::Exec {
            tid: field("pid")?,
            old: field("old_pid")?,
            filename: field("filename")?,
        },
        _ => return Ok(None),
    };
    let id = line("ID: ").and_then(|id| id.trim().parse().ok());
    Ok(Some((id.ok_or_else(|| lacks("ID"))?, known)))
}

/// `field:pid_t prev_pid; offset:24; size:4; signed:1;`
fn field(text: &str, name: &str) -> Option<Field> {
    let fields = text.lines().filter_map(|line| {
        let (declared, rest) = line.trim().strip_prefix("field:")?.split_once(';')?;
        let declared = declared.split(['[', ' ']).rfind(|word| !word.is_empty())?;
        (declared == name).then_some(rest)
    });
    let rest = fields.into_iter().next()?;
    let number = |key: &str| {
        let mut parts = rest.split(';');
        let value = parts.find_map(|part| part.trim().strip_prefix(key))?;
        value.parse::<usize>().ok()
    };
    let size = number("size:").filter(|size| (1..=8).contains(size))?;
    let offset = number("offset:")?;
    Some(Field { offset, size })
}

#[cfg(test)]
mod tests {
    use super::*;

    const SWITCH: &str = "name: sched_switch\nID: 372\nformat:\n\
        \tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;\n\n\
        \tfield:char prev_comm[16];\toffset:8;\tsize:16;\tsigned:0;\n\
        \tfield:pid_t prev_pid;\toffset:24;\tsize:4;\tsigned:1;\n\
        \tfield:long prev_state;\toffset:32;\tsize:8;\tsigned:1;\n\
        \tfield:pid_t next_pid;\toffset:56;\tsize:4;\tsigned:1;\n\n\
        print fmt: \"x\", (REC->prev_state & 0xff) ? __print_flags(REC->prev_state & 0xff, \"|\", \
        { 0x00000001, \"S\" }, { 0x00000002, \"D\" }, { 0x00000010, \"X\" }, { 0x00000020, \"Z\" }, \
        { 0x00000040, \"P\" }, { 0x00000080, \"I\" }) : \"R\", REC->prev_state & 0x100 ? \"+\" : \"\"\n";

    #[test]
    fn a_switch_has_the_fields_and_states_of_its_kernel() {
        let (id, switch) = tracepoint(SWITCH).unwrap().unwrap();
        let Tracepoint::Switch { prev, states, .. } = switch else {
            panic!("{switch:?}");
        };
        let mut raw = [0; 64];
        raw[24..28].copy_from_slice(&77_u32.to_le_bytes());
        assert_eq!(
            (id, prev.tid(&raw), prev.tid(&raw[..27])),
            (372, Some(77), None)
        );
        for (value, expected) in [
            (0, (0, false)),
            (0x100, (0, true)),
            (0x1, (0x1, false)),
            (0x80, (0x402, false)),
            (0x20, (0x80, false)),
            (0x4, (UNKNOWN_STATE, false)),
        ] {
            assert_eq!(states.of(value), expected, "{value:#x}");
        }
    }

    #[test]
    fn before_linux_4_14_the_bit_after_the_last_letter_is_another() {
        let old = "__print_flags(x, \"|\", { 1, \"S\"} , { 2, \"D\" }, { 1024, \"N\" }) : \"R\"";
        let states = States::read(old).unwrap();
        assert_eq!(states.of(2048), (0, true));
        assert_eq!(states.of(2), (2, false));
    }

    #[test]
    fn a_missing_field_is_named() {
        let without = SWITCH.replace("next_pid", "next");
        let error = tracepoint(&without).unwrap_err().to_string();
        assert_eq!(
            error,
            "perf.data: the format of sched_switch has no next_pid"
        );
    }
}
