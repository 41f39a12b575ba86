//! Decompresses texts that `build.rs` has compressed into the program.

/// Expands to the text of a file that the build compressed into the program. The argument is the
/// file's name. The text is decompressed once, when it is first used.
macro_rules! text {
    ($name:literal) => {{
        static TEXT: std::sync::LazyLock<String> = std::sync::LazyLock::new(|| {
            $crate::packed::unpack(include_bytes!(concat!(env!("OUT_DIR"), "/", $name, ".zst")))
        });
        TEXT.as_str()
    }};
}
pub(crate) use text;

/// Decompresses a text that is stored as a zstd frame.
#[allow(clippy::expect_used)] // a constant
pub(crate) fn unpack(packed: &[u8]) -> String {
    let text = zstd::stream::decode_all(packed).expect("the build packed it");
    String::from_utf8(text).expect("the build packed a text")
}
