//! Packs the data of the HTML page into one string: a JSON document and columns of numbers, compressed, in Base64.
//!
//! Base64 has no character with a meaning in HTML. The browser's `DecompressionStream` unpacks it.

use std::io::Write;

use base64::Engine;
use flate2::write::ZlibEncoder;
use flate2::Compression;

/// The data of the HTML page that is not in its JSON document: columns of numbers as bytes, one column after the
/// other.
#[derive(Debug, Default)]
pub struct Columns(Vec<u8>);

impl Columns {
    /// Appends a column of numbers to the page's data, each number in LEB128.
    pub fn varints(&mut self, numbers: impl IntoIterator<Item = u64>) {
        for mut number in numbers {
            while number >= 0x80 {
                self.0.push((number & 0x7f) as u8 | 0x80);
                number >>= 7;
            }
            self.0.push(number as u8);
        }
    }

    /// Appends a column to the page's data, one byte for each row.
    pub fn bytes(&mut self, bytes: &[u8]) {
        self.0.extend_from_slice(bytes);
    }
}

/// Packs the data of an HTML page into a string: the length of the JSON document (4 bytes, little-endian), the
/// document and the columns are compressed with zlib and encoded in Base64.
pub fn pack(document: &[u8], columns: &Columns) -> std::io::Result<String> {
    let length = u32::try_from(document.len()).map_err(std::io::Error::other)?;
    zip(&[&length.to_le_bytes(), document, &columns.0])
}

/// Joins byte strings, compresses them with zlib and encodes the result in Base64, as text for an HTML page.
pub fn zip(parts: &[&[u8]]) -> std::io::Result<String> {
    let mut zip = ZlibEncoder::new(Vec::new(), Compression::best());
    for part in parts {
        zip.write_all(part)?;
    }
    Ok(base64::engine::general_purpose::STANDARD.encode(zip.finish()?))
}
