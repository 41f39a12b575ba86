//! Parses DNS messages (RFC 1035) as the BPF programs copy them: perhaps cut, and written by strangers.

use tr_format::dns::ADDRESSES;
use tr_format::network::Address;

/// The type of a DNS record with an IPv4 address.
const A: u16 = 1;
/// The type of a DNS record with an IPv6 address.
const AAAA: u16 = 28;
/// The number of the class IN (internet) of DNS records.
const INTERNET: u16 = 1;
/// The number of bytes of the header of a DNS message.
const HEADER: usize = 12;
/// The number of bytes of the longest name in a DNS message, including the lengths of its labels.
const NAME: usize = 255;

/// The parts of a DNS message that are stored in a trace.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Message {
    /// The id of the DNS message, which a query and its answer have in common.
    pub id: u16,
    pub is_answer: bool,
    /// The response code (RCODE) of the DNS message.
    pub code: u8,
    /// The type (QTYPE) of the question in the DNS message.
    pub kind: u16,
    /// The name that the DNS message asks for, without the last dot.
    pub name: Vec<u8>,
    /// The addresses in a DNS answer, as far as the copied bytes have them.
    pub addresses: Vec<Address>,
}

/// A position in the bytes of a DNS message, from which its parts are read.
struct At<'a> {
    bytes: &'a [u8],
    place: usize,
}

impl<'a> At<'a> {
    fn take(&mut self, length: usize) -> Option<&'a [u8]> {
        let end = self.place.checked_add(length)?;
        let taken = self.bytes.get(self.place..end)?;
        self.place = end;
        Some(taken)
    }

    fn int(&mut self) -> Option<u16> {
        let bytes = self.take(2)?;
        Some(u16::from_be_bytes(bytes.try_into().ok()?))
    }

    /// Reads a domain name that is written in full, such as the name of a question in a DNS message.
    fn name(&mut self) -> Option<Vec<u8>> {
        let mut name = Vec::new();
        loop {
            let length = usize::from(*self.take(1)?.first()?);
            if length == 0 {
                return Some(name);
            }
            if length > 63 || name.len() + length > NAME {
                return None;
            }
            if !name.is_empty() {
                name.push(b'.');
            }
            name.extend_from_slice(self.take(length)?);
        }
    }

    /// Skips a domain name in a DNS message. The name can end with a pointer to an earlier name.
    fn skip_name(&mut self) -> Option<()> {
        loop {
            let length = usize::from(*self.take(1)?.first()?);
            match length {
                0 => return Some(()),
                1..=63 => self.take(length)?,
                192.. => return self.take(1).map(|_| ()),
                _ => return None,
            };
        }
    }

    /// Reads the next record of a DNS message. Returns the address in the record, if it has one; an
    /// outer `None` if the message ends.
    fn record(&mut self) -> Option<Option<Address>> {
        self.skip_name()?;
        let (kind, class) = (self.int()?, self.int()?);
        self.take(4)?;
        let length = usize::from(self.int()?);
        let data = self.take(length)?;
        Some(match (class, kind) {
            (INTERNET, A) => <[u8; 4]>::try_from(data)
                .ok()
                .map(|ip| Address::V4(ip.into())),
            (INTERNET, AAAA) => <[u8; 16]>::try_from(data)
                .ok()
                .map(|ip| Address::V6(ip.into())),
            _ => None,
        })
    }
}

/// Parses a DNS message; `None` unless its header and its question are complete.
pub fn parse(bytes: &[u8]) -> Option<Message> {
    let mut at = At { bytes, place: 0 };
    let (id, flags) = (at.int()?, at.int()?);
    let (questions, answers) = (at.int()?, at.int()?);
    at.place = HEADER;
    if questions != 1 {
        return None;
    }
    let mut message = Message {
        id,
        is_answer: flags & 0x8000 != 0,
        code: (flags & 15) as u8,
        name: at.name()?,
        kind: at.int()?,
        addresses: Vec::new(),
    };
    at.int()?;
    for _ in 0..answers {
        let Some(record) = at.record() else { break };
        message.addresses.extend(record);
    }
    message.addresses.truncate(ADDRESSES);
    Some(message)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The bytes of a DNS answer with a CNAME, an A and an AAAA record, for tests.
    fn answer() -> Vec<u8> {
        let mut bytes = vec![0x12, 0x34, 0x81, 0x83, 0, 1, 0, 3, 0, 0, 0, 0];
        bytes.extend_from_slice(b"\x04pypi\x03org\x00\x00\x01\x00\x01");
        let mut record = |kind: u8, data: &[u8]| {
            bytes.extend_from_slice(&[0xc0, 12, 0, kind, 0, 1, 0, 0, 0, 60, 0, data.len() as u8]);
            bytes.extend_from_slice(data);
        };
        record(5, b"\x03cdn\xc0\x0c");
        record(1, &[10, 0, 0, 1]);
        record(
            28,
            &[0x20, 1, 0xd, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 7],
        );
        bytes
    }

    #[test]
    fn a_message_has_its_question_and_its_addresses() {
        let message = parse(&answer()).unwrap();
        assert_eq!((message.id, message.code, message.kind), (0x1234, 3, 1));
        assert!(message.is_answer);
        assert_eq!(message.name, b"pypi.org");
        let addresses: Vec<String> = message.addresses.iter().map(ToString::to_string).collect();
        assert_eq!(addresses, ["10.0.0.1", "2001:db8::7"]);
    }

    #[test]
    fn a_message_that_is_cut_has_what_is_there() {
        let whole = answer();
        // A message that is cut before the end of the question gives nothing. A longer one gives the question and each
        // complete address.
        for length in 0..whole.len() {
            let message = parse(&whole[..length]);
            assert_eq!(message.is_some(), length >= 26, "{length}");
            let addresses = message.map_or(0, |message| message.addresses.len());
            let expected = [(60usize, 1), (whole.len(), 2)];
            let expected = expected.iter().filter(|(from, _)| length >= *from).count();
            assert_eq!(addresses, expected, "{length}");
        }
    }

    #[test]
    fn strange_names_are_refused() {
        let with = |name: &[u8]| {
            let mut bytes = vec![0, 1, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0];
            bytes.extend_from_slice(name);
            bytes.extend_from_slice(&[0, 1, 0, 1]);
            parse(&bytes)
        };
        assert_eq!(with(b"\x00").unwrap().name, b"");
        // The question's name must not be a pointer. A label is at most 63 bytes long, and a name at most 255.
        assert_eq!(with(b"\xc0\x0c"), None);
        assert_eq!(with(&[64; 66]), None);
        let long: Vec<u8> = (0..6)
            .flat_map(|_| [vec![50], vec![b'a'; 50]].concat())
            .collect();
        assert_eq!(with(&[long, vec![0]].concat()), None);
    }
}
