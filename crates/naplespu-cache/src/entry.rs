//! An entry of a store: code with what shows that it is whole and what was asked for.
//!
//! | bytes | |
//! |---|---|
//! | 8 | [`MAGIC`] |
//! | 32 | the key |
//! | 32 | SHA-256 of the code's bytes |
//! | the rest | the code, as [`CompiledCode::to_bytes`] writes it |

use cranelift_naplespu::{CacheKey, CompiledCode};
use sha2::{Digest, Sha256};

/// What an entry begins with; the last byte is the number of this format.
const MAGIC: &[u8; 8] = b"NPUCODE\x01";

/// Bytes of a key and of a checksum.
const HASH: usize = 32;

fn checksum(bytes: &[u8]) -> [u8; HASH] {
    Sha256::digest(bytes).into()
}

/// The entry of code under a key.
pub fn write(key: &CacheKey, code: &CompiledCode) -> Vec<u8> {
    let code = code.to_bytes();
    [&MAGIC[..], &key.0, &checksum(&code), &code].concat()
}

/// The code of an entry; nothing if it is not a whole one of this key.
pub fn read(key: &CacheKey, entry: &[u8]) -> Option<CompiledCode> {
    let rest = entry.strip_prefix(MAGIC)?.strip_prefix(&key.0)?;
    let (sum, code) = rest.split_at_checked(HASH)?;
    if checksum(code) != sum {
        return None;
    }
    CompiledCode::from_bytes(code).ok()
}
