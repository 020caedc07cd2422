//! An entry of a store: code with its key and a checksum.
//!
//! | bytes | |
//! |---|---|
//! | 8 | [`MAGIC`] |
//! | 32 | the key |
//! | 32 | SHA-256 of the code's bytes |
//! | the rest | the code, as [`CompiledCode::to_bytes`] writes it |

use cranelift_naplespu::{CacheKey, CompiledCode};
use sha2::{Digest, Sha256};

/// The start of an entry; the last byte is the version of this format.
const MAGIC: &[u8; 8] = b"NPUCODE\x01";

/// The size of a key and of a checksum, in bytes.
const HASH: usize = 32;

fn checksum(bytes: &[u8]) -> [u8; HASH] {
    Sha256::digest(bytes).into()
}

/// Serializes code as the entry of a key.
pub fn write(key: &CacheKey, code: &CompiledCode) -> Vec<u8> {
    let code = code.to_bytes();
    [&MAGIC[..], &key.0, &checksum(&code), &code].concat()
}

/// Returns the code of an entry, or `None` if the entry is damaged or belongs to another key.
pub fn read(key: &CacheKey, entry: &[u8]) -> Option<CompiledCode> {
    let rest = entry.strip_prefix(MAGIC)?.strip_prefix(&key.0)?;
    let (sum, code) = rest.split_at_checked(HASH)?;
    if checksum(code) != sum {
        return None;
    }
    CompiledCode::from_bytes(code).ok()
}
