//! The interface between the compiler and a cache of compiled functions. `naplespu-cache`
//! implements it.
//!
//! [`Isa::with_cache`](crate::Isa::with_cache) sets the cache of a target. Every
//! [`Compiler`](crate::Compiler) and every module that compiles for this target then uses it. A
//! function is always compiled if the caller requests the text of intermediate stages.
//!
//! # Contract
//!
//! [`CompiledCode`] depends on the function's
//! [stencil](cranelift_codegen::ir::function::FunctionStencil), the base of its source locations,
//! the result of [`Isa::code_settings`](crate::Isa::code_settings), and the compiler itself
//! ([`COMPILER`]). A key is computed from these. It does not depend on the names of functions: a
//! relocation contains the number by which the function refers to the callee. Errors are not
//! cached.

use crate::code::CompiledCode;
use crate::isa::Isa;
use cranelift_codegen::ir::Function;

/// The version of the compiler: the versions of this package, of `clif-opt` and of `npu-mc`, and a
/// hash of the code that build scripts generate for them. A published version determines the files
/// of a package, and the generated code determines the effect of its generator. In a checkout,
/// files change without a new version, so a key needs additional inputs there.
pub const COMPILER: [&str; 4] = [
    env!("CARGO_PKG_VERSION"),
    clif_opt::VERSION,
    npu_mc::VERSION,
    env!("NAPLESPU_GENERATED"),
];

/// A hash of a function, a target and a compiler.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct CacheKey(pub [u8; 32]);

/// A cache that several threads may use at the same time.
pub trait CodeCache: Send + Sync {
    /// Returns the key of a function for a target.
    fn key(&self, isa: &Isa, func: &Function) -> CacheKey;

    /// Returns the code that is stored under a key. Returns `None` if the key has no entry, or if
    /// the entry may be damaged.
    fn get(&self, key: &CacheKey) -> Option<CompiledCode>;

    /// Stores code. Failures are not reported: the function is compiled again.
    fn insert(&self, key: &CacheKey, code: &CompiledCode);
}
