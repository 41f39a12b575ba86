//! Decodes files to import: gzip, UTF-8, and the encodings that a byte order mark or an XML
//! declaration names.

use std::borrow::Cow;
use std::io::Read;

use encoding_rs::Encoding;

use crate::error::Error;
use crate::limits::FILE;

/// The number of bytes after `<?xml` at the beginning of a file in which the end of the XML declaration is searched.
const DECLARATION: usize = 200;

/// The bytes with which a file that is compressed with gzip begins.
const GZIP: &[u8] = &[0x1f, 0x8b];

/// The content of a file after decompression, if it is compressed with gzip; the content of any
/// other file unchanged.
///
/// # Errors
/// The file is damaged, or its content is larger than the limit of a file.
pub fn unpacked(bytes: &[u8]) -> Result<Cow<'_, [u8]>, Error> {
    if !bytes.starts_with(GZIP) {
        return Ok(Cow::Borrowed(bytes));
    }
    let mut content = Vec::new();
    let reader = flate2::read::MultiGzDecoder::new(bytes);
    let read = reader.take(FILE + 1).read_to_end(&mut content);
    match read {
        Err(error) => Err(Error::Damaged {
            format: "gzip",
            what: error.to_string(),
        }),
        Ok(length) if length as u64 > FILE => Err(Error::Size {
            found: length as u64,
            limit: FILE,
        }),
        Ok(_) => Ok(Cow::Owned(content)),
    }
}

/// The text of a file converted to UTF-8. A text that is in UTF-8 or in an unknown encoding is
/// returned unchanged.
pub fn as_utf8(bytes: &[u8]) -> Cow<'_, [u8]> {
    let marked = Encoding::for_bom(bytes).map(|(encoding, _)| encoding);
    let Some(encoding) = marked.or_else(|| declared(bytes)) else {
        return Cow::Borrowed(bytes);
    };
    if encoding == encoding_rs::UTF_8 {
        return Cow::Borrowed(bytes);
    }
    let (text, _, _) = encoding.decode(bytes);
    Cow::Owned(text.into_owned().into_bytes())
}

/// The encoding that an XML declaration names: `<?xml version="1.0" encoding="ISO-8859-1"?>`.
/// ISO-8859-1 is read as windows-1252, as the web standard that the library follows demands. The
/// two differ only in control characters.
fn declared(bytes: &[u8]) -> Option<&'static Encoding> {
    let start = bytes.trim_ascii_start().strip_prefix(b"<?xml")?;
    let start = start.get(..DECLARATION).unwrap_or(start);
    let start = String::from_utf8_lossy(start);
    let (declaration, _) = start.split_once("?>")?;
    let (_, value) = declaration.split_once("encoding")?;
    let value = value.trim_start().strip_prefix('=')?.trim_start();
    let quote = value
        .chars()
        .next()
        .filter(|quote| "'\"".contains(*quote))?;
    let label = value.split(quote).nth(1)?;
    // The declaration was read as ASCII, so an encoding that does not contain ASCII cannot be the true one.
    Encoding::for_label(label.as_bytes()).filter(|encoding| encoding.is_ascii_compatible())
}

/// Whether the bytes of a file to import contain a word.
pub(crate) fn contains(bytes: &[u8], word: &str) -> bool {
    memchr::memmem::find(bytes, word.as_bytes()).is_some()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn xml_is_read_in_the_encoding_that_it_names() {
        let text =
            |encoding: &str| format!("<?xml version='1.0' encoding='{encoding}'?><a b='é'/>");
        let latin = |encoding: &str| {
            let text = text(encoding);
            text.chars()
                .map(|c| u8::try_from(c).unwrap_or(b'?'))
                .collect::<Vec<u8>>()
        };
        for encoding in ["ISO-8859-1", "windows-1252", "latin1"] {
            assert_eq!(
                as_utf8(&latin(encoding)),
                text(encoding).as_bytes(),
                "{encoding}"
            );
        }
        let wide = |text: &str, bytes: fn(u16) -> [u8; 2]| {
            let units = std::iter::once(0xfeff).chain(text.encode_utf16());
            units.flat_map(bytes).collect::<Vec<u8>>()
        };
        let utf16 = text("UTF-16");
        for bytes in [u16::to_le_bytes, u16::to_be_bytes] {
            assert_eq!(as_utf8(&wide(&utf16, bytes)), utf16.as_bytes());
        }
        for same in [
            text("UTF-8"),
            text("no-such"),
            text("UTF-16"),
            "<a/>".to_owned(),
        ] {
            assert_eq!(as_utf8(same.as_bytes()), same.as_bytes());
        }
    }
}
