//! The frame: the unit that is found, checked and lost as a whole.

use crate::event::{CpuId, Ktime, Stream};

/// The first bytes of a file. Like PNG's, they show a transfer that changed
/// line ends or cut the high bit.
pub const MAGIC: [u8; 8] = *b"\x89tr\xb5\r\n\x1a\n";
/// Readers refuse another major version.
pub const MAJOR: u16 = 1;
/// A later minor version adds frame types and fields that can be skipped.
pub const MINOR: u16 = 0;
/// Bytes of the file's header: magic, major, minor, CRC-32 of these.
pub const FILE_HEADER: usize = 16;
/// The first bytes of a frame; what a reader looks for behind damage.
pub const SYNC: [u8; 4] = *b"\xf5tr\xa7";
/// Bytes of a frame's header.
pub const FRAME_HEADER: usize = 52;
/// Bytes of the trailer: position of the index frame, CRC-32 of it, magic.
pub const TRAILER: usize = 20;
/// The last bytes of a complete file.
pub const END_MAGIC: [u8; 8] = *b"\xa7rt\xf5end\n";

/// Most bytes of a frame's payload.
pub const MOST_PAYLOAD: u32 = 32 << 20;
/// Most bytes that the compressed part of a payload may expand to.
pub const MOST_RAW: u32 = 64 << 20;
/// Most events of a frame.
pub const MOST_EVENTS: u32 = 1 << 20;

/// What a frame holds. Other numbers are skipped and counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FrameType {
    /// The metadata; the first frame.
    Meta = 1,
    /// Scheduling events of one CPU.
    Sched = 2,
    /// Lifecycle or recorder events.
    Life = 3,
    /// How the recording ended.
    Summary = 4,
    /// Where the frames are.
    Index = 5,
}

/// A frame's header, without sync mark and checksum.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Header {
    /// See [`FrameType`].
    pub kind: u8,
    /// See [`stream_number`].
    pub stream: u16,
    /// Number of the frame in its stream, from 0.
    pub seq: u32,
    /// Bytes of the payload.
    pub payload: u32,
    /// Of these, bytes of the compressed part, which comes first.
    pub packed: u32,
    /// Bytes of the compressed part when expanded.
    pub raw: u32,
    /// Events.
    pub events: u32,
    /// The smallest time in the frame.
    pub min: Ktime,
    /// The largest time in the frame.
    pub max: Ktime,
    /// CRC-32 of the payload.
    pub crc: u32,
}

/// The number that stands for a stream in a file.
pub fn stream_number(stream: Stream) -> u16 {
    match stream {
        Stream::Cpu(cpu) => cpu.0.min(0xffef),
        Stream::Lifecycle => 0xfffe,
        Stream::Recorder => 0xffff,
    }
}

/// The stream of a number; `None` for numbers that are not given out.
pub fn stream_of(number: u16) -> Option<Stream> {
    match number {
        0xffff => Some(Stream::Recorder),
        0xfffe => Some(Stream::Lifecycle),
        0xfff0..=0xfffd => None,
        cpu => Some(Stream::Cpu(CpuId(cpu))),
    }
}

impl Header {
    /// The header as it stands in the file.
    pub fn encode(&self) -> [u8; FRAME_HEADER] {
        let mut out = Vec::with_capacity(FRAME_HEADER);
        out.extend(SYNC);
        out.extend([self.kind, 0]);
        out.extend(self.stream.to_le_bytes());
        for field in [self.seq, self.payload, self.packed, self.raw, self.events] {
            out.extend(field.to_le_bytes());
        }
        out.extend(self.min.0.to_le_bytes());
        out.extend(self.max.0.to_le_bytes());
        out.extend(self.crc.to_le_bytes());
        let crc = crc32fast::hash(&out);
        out.extend(crc.to_le_bytes());
        let mut header = [0; FRAME_HEADER];
        for (to, from) in header.iter_mut().zip(out) {
            *to = from;
        }
        header
    }

    /// Reads and checks a header.
    ///
    /// # Errors
    /// What is wrong, in words.
    pub fn decode(bytes: &[u8; FRAME_HEADER]) -> Result<Header, String> {
        let (body, crc) = bytes.split_at(FRAME_HEADER - 4);
        if !body.starts_with(&SYNC) {
            return Err("no frame begins here".into());
        }
        let found = crc32fast::hash(body);
        let expected = u32(crc, 0);
        if found != expected {
            return Err(format!(
                "header checksum {found:#010x}, expected {expected:#010x}"
            ));
        }
        let header = Header {
            kind: body.get(4).copied().unwrap_or(0),
            stream: u16::try_from(u32(body, 4) >> 16).unwrap_or(0),
            seq: u32(body, 8),
            payload: u32(body, 12),
            packed: u32(body, 16),
            raw: u32(body, 20),
            events: u32(body, 24),
            min: Ktime(u64(body, 28)),
            max: Ktime(u64(body, 36)),
            crc: u32(body, 44),
        };
        let limits = [
            ("payload bytes", header.payload, MOST_PAYLOAD),
            ("compressed bytes", header.packed, header.payload),
            ("expanded bytes", header.raw, MOST_RAW),
            ("events", header.events, MOST_EVENTS),
        ];
        for (what, found, most) in limits {
            if found > most {
                return Err(format!("{found} {what}, more than the {most} allowed"));
            }
        }
        if header.max < header.min {
            return Err("its last time is before its first".into());
        }
        Ok(header)
    }
}

/// Little-endian integers; the callers' slices are long enough, what is beyond
/// reads as 0.
pub(crate) fn u32(bytes: &[u8], at: usize) -> u32 {
    bytes
        .get(at..)
        .and_then(|b| b.first_chunk())
        .map_or(0, |b| u32::from_le_bytes(*b))
}

/// As `u32` above.
pub(crate) fn u64(bytes: &[u8], at: usize) -> u64 {
    bytes
        .get(at..)
        .and_then(|b| b.first_chunk())
        .map_or(0, |b| u64::from_le_bytes(*b))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_header_comes_back_and_any_flipped_bit_is_noticed() {
        let header = Header {
            kind: 2,
            stream: 7,
            seq: 9,
            payload: 1000,
            packed: 900,
            raw: 5000,
            events: 64,
            min: Ktime(1 << 40),
            max: Ktime((1 << 40) + 5),
            crc: 0xdead_beef,
        };
        let good = header.encode();
        assert_eq!(Header::decode(&good), Ok(header));
        for bit in 0..FRAME_HEADER * 8 {
            let mut bad = good;
            bad[bit / 8] ^= 1 << (bit % 8);
            assert!(Header::decode(&bad).is_err(), "bit {bit}");
        }
    }

    #[test]
    fn absurd_sizes_are_refused() {
        for absurd in [
            Header {
                events: MOST_EVENTS + 1,
                ..Header::default()
            },
            Header {
                payload: MOST_PAYLOAD + 1,
                ..Header::default()
            },
            Header {
                raw: MOST_RAW + 1,
                ..Header::default()
            },
            Header {
                packed: 1,
                ..Header::default()
            },
            Header {
                min: Ktime(1),
                ..Header::default()
            },
        ] {
            assert!(Header::decode(&absurd.encode()).is_err());
        }
    }
}
