//! The two bincode values of a trace, and nothing else that knows bincode:
//! standard configuration of bincode 2.0.1 (little-endian, variable-length
//! integers), through serde.

use serde::de::DeserializeOwned;
use serde::Serialize;

/// Most bytes that a value may take in memory.
const MOST: usize = 16 << 20;

fn config() -> impl bincode::config::Config {
    bincode::config::standard().with_limit::<MOST>()
}

/// The bytes of a value.
pub(crate) fn encode<T: Serialize>(value: &T) -> std::io::Result<Vec<u8>> {
    bincode::serde::encode_to_vec(value, config()).map_err(std::io::Error::other)
}

/// A value from its bytes; what follows it belongs to a later minor version.
pub(crate) fn decode<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, String> {
    bincode::serde::decode_from_slice(bytes, config())
        .map(|(value, _)| value)
        .map_err(|e| e.to_string())
}
