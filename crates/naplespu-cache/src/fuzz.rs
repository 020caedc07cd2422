//! Reads arbitrary bytes as an entry, for cargo-fuzz and for `cargo test`. Not part of the
//! interface.

use crate::entry;
use cranelift_naplespu::{CacheKey, CompiledCode};

/// Reads bytes as an entry, and as the code of an entry with a correct checksum.
///
/// # Errors
///
/// Invalid bytes are accepted as an entry, or code does not round-trip.
pub fn exercise_entry(data: &[u8]) -> Result<(), String> {
    let key = CacheKey([7; 32]);
    if let Some(code) = entry::read(&key, data)
        && entry::write(&key, &code) != data
    {
        return Err("an invalid entry is accepted".to_owned());
    }
    let Ok(code) = CompiledCode::from_bytes(data) else {
        return Ok(());
    };
    let whole = entry::write(&key, &code);
    let again = entry::read(&key, &whole).ok_or("a valid entry is rejected")?;
    if again.to_bytes() != code.to_bytes() {
        return Err("the code does not round-trip".to_owned());
    }
    for length in 0..whole.len() {
        if entry::read(&key, &whole[..length]).is_some() {
            return Err(format!("an entry truncated to {length} bytes is accepted"));
        }
    }
    if entry::read(&CacheKey([8; 32]), &whole).is_some() {
        return Err("an entry of another key is accepted".to_owned());
    }
    Ok(())
}
