//! What a cache of compiled functions is to the compiler. `naplespu-cache` has one.
//!
//! [`Isa::with_cache`](crate::Isa::with_cache) gives a target one, and with it every [`Compiler`](crate::Compiler) and every module that compiles
//! for that target. A function whose text of intermediate stages is asked for is compiled always.
//!
//! # Contract
//!
//! [`CompiledCode`] depends on the function's [stencil](cranelift_codegen::ir::function::FunctionStencil), the base of its source locations, what
//! [`Isa::code_settings`](crate::Isa::code_settings) says, and the compiler itself ([`COMPILER`]): a key is made of these. Names of functions are not part of it: a
//! relocation has the number that the function itself knows the callee by. Errors are not kept.

use crate::code::CompiledCode;
use crate::isa::Isa;
use cranelift_codegen::ir::Function;

/// The compiler, as far as its packages are known here: the versions of this package, of `clif-opt` and of `npu-mc`, and a hash of all that was generated for
/// them. A published version stands for its files; the generated code has the effect of what generated it. In a checkout files change without
/// a version, so a key has more than this.
pub const COMPILER: [&str; 4] = [
    env!("CARGO_PKG_VERSION"),
    clif_opt::VERSION,
    npu_mc::VERSION,
    env!("NAPLESPU_GENERATED"),
];

/// Stands for a function, a target and a compiler.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct CacheKey(pub [u8; 32]);

/// A cache that several threads may use at once.
pub trait CodeCache: Send + Sync {
    /// What a function for a target is found under.
    fn key(&self, isa: &Isa, func: &Function) -> CacheKey;

    /// What was kept under a key. Code that is not certain to be what was kept is none.
    fn get(&self, key: &CacheKey) -> Option<CompiledCode>;

    /// Keeps code. There is no error: what could not be kept is compiled again.
    fn insert(&self, key: &CacheKey, code: &CompiledCode);
}
