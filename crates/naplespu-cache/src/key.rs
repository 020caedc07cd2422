//! The key of a function.

use cranelift_codegen::ir::Function;
use cranelift_naplespu::{CacheKey, Isa};
use sha2::{Digest, Sha256};
use std::hash::{Hash, Hasher};

/// A hash of the source files of the compiler and this package, computed by the build script.
const SOURCES: &str = env!("NAPLESPU_SOURCES");

/// Feeds the hashed data to SHA-256. Functions with equal keys share code, so a short hash would be
/// unsafe.
struct Sha256Hasher(Sha256);

impl Hasher for Sha256Hasher {
    fn write(&mut self, bytes: &[u8]) {
        self.0.update(bytes);
    }

    /// Returns the first bytes of the hash; the callers here do not use it.
    fn finish(&self) -> u64 {
        let hash: [u8; 32] = self.0.clone().finalize().into();
        hash.iter()
            .take(8)
            .fold(0, |number, byte| number << 8 | u64::from(*byte))
    }
}

/// Returns the key of a function for a target.
pub fn of(isa: &Isa, func: &Function) -> CacheKey {
    let mut hasher = Sha256Hasher(Sha256::new());
    SOURCES.hash(&mut hasher);
    cranelift_naplespu::cache::COMPILER.hash(&mut hasher);
    cranelift_codegen::VERSION.hash(&mut hasher);
    isa.code_settings().hash(&mut hasher);
    func.stencil.hash(&mut hasher);
    // The only other input of code generation besides the stencil. Names are numbers in
    // relocations.
    func.params.base_srcloc().bits().hash(&mut hasher);
    CacheKey(hasher.0.finalize().into())
}
