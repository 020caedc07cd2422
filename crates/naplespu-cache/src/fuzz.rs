//! Any bytes as an entry, for cargo-fuzz and for `cargo test`. Not part of the interface.

use crate::entry;
use cranelift_naplespu::{CacheKey, CompiledCode};

/// Reads bytes as an entry, and as the code of an entry whose checksum is right.
///
/// # Errors
///
/// If bytes that are not an entry pass for one, or code does not come back from its own bytes.
pub fn exercise_entry(data: &[u8]) -> Result<(), String> {
    let key = CacheKey([7; 32]);
    if let Some(code) = entry::read(&key, data)
        && entry::write(&key, &code) != data
    {
        return Err("an entry is read that nobody wrote".to_owned());
    }
    let Ok(code) = CompiledCode::from_bytes(data) else {
        return Ok(());
    };
    let whole = entry::write(&key, &code);
    let again = entry::read(&key, &whole).ok_or("an entry is not found in its own bytes")?;
    if again.to_bytes() != code.to_bytes() {
        return Err("code is not what it was".to_owned());
    }
    for length in 0..whole.len() {
        if entry::read(&key, &whole[..length]).is_some() {
            return Err(format!("an entry passes without its end, at {length}"));
        }
    }
    if entry::read(&CacheKey([8; 32]), &whole).is_some() {
        return Err("an entry passes for another key".to_owned());
    }
    Ok(())
}
