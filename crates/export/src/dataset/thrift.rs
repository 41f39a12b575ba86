//! Writes Thrift's compact protocol, as far as Parquet's headers need it: structs of integers, texts, lists
//! and structs, whose fields come in the order of their numbers.

const I32: u8 = 5;
const I64: u8 = 6;
const BINARY: u8 = 8;
const LIST: u8 = 9;
const STRUCT: u8 = 12;

/// Appends an unsigned number to the bytes as a varint of Thrift: seven bits in each byte, the lowest first.
pub fn varint(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

fn zigzag(out: &mut Vec<u8>, value: i64) {
    varint(out, (value << 1 ^ value >> 63).cast_unsigned());
}

fn binary(out: &mut Vec<u8>, text: &str) {
    varint(out, text.len() as u64);
    out.extend_from_slice(text.as_bytes());
}

pub struct Struct {
    bytes: Vec<u8>,
    last: u8,
}

impl Struct {
    pub fn new() -> Struct {
        Struct {
            bytes: Vec::new(),
            last: 0,
        }
    }

    /// Appends the header of a field of a Thrift struct: the difference between its number and that of the
    /// field before, and its type.
    fn field(&mut self, number: u8, kind: u8) -> &mut Vec<u8> {
        debug_assert!(number > self.last && number - self.last < 16);
        self.bytes.push((number - self.last) << 4 | kind);
        self.last = number;
        &mut self.bytes
    }

    pub fn i32(&mut self, number: u8, value: i32) -> &mut Struct {
        zigzag(self.field(number, I32), value.into());
        self
    }

    pub fn i64(&mut self, number: u8, value: i64) -> &mut Struct {
        zigzag(self.field(number, I64), value);
        self
    }

    pub fn text(&mut self, number: u8, value: &str) -> &mut Struct {
        binary(self.field(number, BINARY), value);
        self
    }

    fn list(&mut self, number: u8, kind: u8, values: &[Vec<u8>]) -> &mut Struct {
        let count = values.len() as u64;
        let out = self.field(number, LIST);
        match u8::try_from(count).ok().filter(|count| *count < 15) {
            Some(count) => out.push(count << 4 | kind),
            None => {
                out.push(0xf0 | kind);
                varint(out, count);
            }
        }
        out.extend(values.iter().flatten());
        self
    }

    pub fn i32s(&mut self, number: u8, values: &[i32]) -> &mut Struct {
        let packed = values.iter().map(|value| {
            let mut out = Vec::new();
            zigzag(&mut out, (*value).into());
            out
        });
        self.list(number, I32, &packed.collect::<Vec<_>>())
    }

    pub fn texts(&mut self, number: u8, values: &[&str]) -> &mut Struct {
        let packed = values.iter().map(|value| {
            let mut out = Vec::new();
            binary(&mut out, value);
            out
        });
        self.list(number, BINARY, &packed.collect::<Vec<_>>())
    }

    pub fn messages(&mut self, number: u8, values: Vec<Struct>) -> &mut Struct {
        let packed = values.into_iter().map(Struct::end);
        self.list(number, STRUCT, &packed.collect::<Vec<_>>())
    }

    pub fn message(&mut self, number: u8, value: Struct) -> &mut Struct {
        self.field(number, STRUCT).extend(value.end());
        self
    }

    pub fn end(mut self) -> Vec<u8> {
        self.bytes.push(0);
        self.bytes
    }
}
