//! Writes a table as a Parquet file.
//!
//! The file has groups of rows, with one page for each column: PLAIN values after RLE levels, compressed by
//! zstd, with the page's CRC. Every reader of Parquet 2.4 (`CompressionCodec.ZSTD`) supports all of this. The
//! `parquet` crate writes far more than that, and makes the binary 0.65 MB (a tenth) larger.
//!
//! Layout and numbers: <https://github.com/apache/parquet-format>, `parquet.thrift` (2.11).

use std::io::{self, Write};

use super::table::{Column, ColumnType, Table, Value};
use super::thrift::{varint, Struct};

const MAGIC: &[u8] = b"PAR1";

/// The compression level of zstd for Parquet files, which are written once, and stored and read for years.
const LEVEL: i32 = 15;

// Numbers of parquet.thrift.
const TYPE_BOOLEAN: i32 = 0;
const TYPE_INT64: i32 = 2;
const TYPE_BYTE_ARRAY: i32 = 6;
const REPETITION_OPTIONAL: i32 = 1;
const CONVERTED_UTF8: i32 = 0;
const ENCODING_PLAIN: i32 = 0;
const ENCODING_RLE: i32 = 3;
const CODEC_ZSTD: i32 = 6;
const DATA_PAGE: i32 = 0;

fn physical(kind: ColumnType) -> i32 {
    match kind {
        ColumnType::Int => TYPE_INT64,
        ColumnType::Text => TYPE_BYTE_ARRAY,
        ColumnType::Bool => TYPE_BOOLEAN,
    }
}

struct Chunk {
    column: Column,
    offset: usize,
    plain: usize,
    packed: usize,
}

/// The bytes of a Parquet file with this table. `facts` are the keys and values of its metadata.
///
/// # Errors
/// A column of the table is larger than a page can be: 2 GiB.
pub fn file(table: &Table, facts: &[(&str, &str)]) -> io::Result<Vec<u8>> {
    let mut out = Vec::new();
    let mut writer = Writer::new(&mut out, table.columns)?;
    if !table.rows.is_empty() {
        writer.group(&table.rows)?;
    }
    writer.finish(table.name, facts)?;
    Ok(out)
}

/// Writes a table to a Parquet file in groups of rows, so that a large table is never in memory as a whole.
pub struct Writer<'a> {
    out: &'a mut dyn Write,
    /// The number of bytes of the Parquet file that were written so far.
    offset: usize,
    columns: &'static [Column],
    groups: Vec<Struct>,
    rows: i64,
}

impl<'a> Writer<'a> {
    /// Begins a Parquet file of a table with these columns.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn new(out: &'a mut dyn Write, columns: &'static [Column]) -> io::Result<Writer<'a>> {
        out.write_all(MAGIC)?;
        Ok(Writer {
            out,
            offset: MAGIC.len(),
            columns,
            groups: Vec::new(),
            rows: 0,
        })
    }

    /// Writes rows to the Parquet file as one row group.
    ///
    /// # Errors
    /// The file cannot be written, or a column is larger than a page can be.
    pub fn group(&mut self, rows: &[Vec<Option<Value>>]) -> io::Result<()> {
        let mut chunks = Vec::new();
        for (place, column) in self.columns.iter().enumerate() {
            let values = rows.iter().map(|row| row.get(place)?.as_ref());
            let values: Vec<Option<&Value>> = values.collect();
            let mut bytes = Vec::new();
            let plain = page(&mut bytes, column.1, &values)?;
            self.out.write_all(&bytes)?;
            chunks.push(Chunk {
                column: *column,
                offset: self.offset,
                plain,
                packed: bytes.len(),
            });
            self.offset = self.offset.saturating_add(bytes.len());
        }
        self.rows = self.rows.saturating_add(rows.len() as i64);
        self.groups.push(row_group(rows.len() as i64, &chunks));
        Ok(())
    }

    /// Writes the metadata at the end of the Parquet file, without which nobody can read it.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn finish(self, name: &str, facts: &[(&str, &str)]) -> io::Result<()> {
        let footer = footer(name, self.columns, self.rows, self.groups, facts);
        self.out.write_all(&footer)?;
        self.out.write_all(&number(footer.len())?.to_le_bytes())?;
        self.out.write_all(MAGIC)
    }
}

fn number(size: usize) -> io::Result<i32> {
    i32::try_from(size).map_err(|_| io::Error::other("a table of more than 2 GiB"))
}

/// Appends the values of one column of a row group to `out`, as a compressed page with its header. Returns the size in
/// bytes of the header and the page before compression.
fn page(out: &mut Vec<u8>, kind: ColumnType, values: &[Option<&Value>]) -> io::Result<usize> {
    let present: Vec<bool> = values.iter().map(Option::is_some).collect();
    let mut plain = Vec::new();
    let mut bits = Vec::new();
    for value in values.iter().flatten() {
        match value {
            Value::Int(value) => plain.extend(value.to_le_bytes()),
            Value::Text(text) => {
                plain.extend(number(text.len())?.to_le_bytes());
                plain.extend_from_slice(text.as_bytes());
            }
            Value::Bool(value) => bits.push(*value),
        }
    }
    if kind == ColumnType::Bool {
        plain = packed(&bits);
    }
    let levels = levels(&present);
    let mut body = number(levels.len())?.to_le_bytes().to_vec();
    body.extend(levels);
    body.extend(plain);
    let compressed = zstd::bulk::compress(&body, LEVEL)?;
    let mut data = Struct::new();
    data.i32(1, number(values.len())?)
        .i32(2, ENCODING_PLAIN)
        .i32(3, ENCODING_RLE)
        .i32(4, ENCODING_RLE);
    let mut header = Struct::new();
    header
        .i32(1, DATA_PAGE)
        .i32(2, number(body.len())?)
        .i32(3, number(compressed.len())?)
        .i32(4, crc32fast::hash(&compressed).cast_signed())
        .message(5, data);
    let header = header.end();
    out.extend_from_slice(&header);
    out.extend_from_slice(&compressed);
    Ok(header.len() + body.len())
}

/// Packs booleans into the bits of bytes, the first one in the lowest bit.
fn packed(bits: &[bool]) -> Vec<u8> {
    let byte = |bits: &[bool]| {
        let bits = bits.iter().enumerate();
        bits.fold(0, |byte, (place, bit)| byte | u8::from(*bit) << place)
    };
    bits.chunks(8).map(byte).collect()
}

/// The definition levels of a Parquet page, which say with one bit whether each value is present. The levels are
/// written as one run if all are equal, otherwise in groups of eight.
fn levels(present: &[bool]) -> Vec<u8> {
    let mut out = Vec::new();
    let first = present.first().copied().unwrap_or(false);
    if present.iter().all(|value| *value == first) {
        varint(&mut out, (present.len() as u64) << 1);
        out.push(u8::from(first));
        return out;
    }
    let groups = present.len().div_ceil(8) as u64;
    varint(&mut out, groups << 1 | 1);
    out.extend(packed(present));
    out
}

fn footer(
    name: &str,
    columns: &[Column],
    rows: i64,
    groups: Vec<Struct>,
    facts: &[(&str, &str)],
) -> Vec<u8> {
    let mut root = Struct::new();
    root.text(4, name).i32(5, columns.len() as i32);
    let mut schema = vec![root];
    for (name, kind) in columns {
        let mut element = Struct::new();
        element
            .i32(1, physical(*kind))
            .i32(3, REPETITION_OPTIONAL)
            .text(4, name);
        if *kind == ColumnType::Text {
            // Old readers know the converted type, new ones the logical type STRING.
            let mut logical = Struct::new();
            logical.message(1, Struct::new());
            element.i32(6, CONVERTED_UTF8).message(10, logical);
        }
        schema.push(element);
    }
    let pairs = facts.iter().map(|(name, value)| {
        let mut pair = Struct::new();
        pair.text(1, name).text(2, value);
        pair
    });
    let mut file = Struct::new();
    file.i32(1, 1)
        .messages(2, schema)
        .i64(3, rows)
        .messages(4, groups)
        .messages(5, pairs.collect())
        .text(6, concat!("tr version ", env!("CARGO_PKG_VERSION")));
    file.end()
}

fn row_group(rows: i64, chunks: &[Chunk]) -> Struct {
    let mut columns = Vec::new();
    for chunk in chunks {
        let mut meta = Struct::new();
        meta.i32(1, physical(chunk.column.1))
            .i32s(2, &[ENCODING_PLAIN, ENCODING_RLE])
            .texts(3, &[chunk.column.0])
            .i32(4, CODEC_ZSTD)
            .i64(5, rows)
            .i64(6, chunk.plain as i64)
            .i64(7, chunk.packed as i64)
            .i64(9, chunk.offset as i64);
        let mut column = Struct::new();
        column.i64(2, chunk.offset as i64).message(3, meta);
        columns.push(column);
    }
    let plain: usize = chunks.iter().map(|chunk| chunk.plain).sum();
    let mut group = Struct::new();
    group.messages(1, columns).i64(2, plain as i64).i64(3, rows);
    group
}
