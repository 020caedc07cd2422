//! Host code: compilation, ownership and calls. This module contains all unsafe code of
//! translations.

use super::region::Region;
use super::state::State;
use super::translate::{self, Entry};
use cranelift_codegen::Context;
use cranelift_codegen::settings::{self, Configurable};
use cranelift_frontend::FunctionBuilderContext;
use cranelift_jit::{JITBuilder, JITModule};
use cranelift_module::{Module, default_libcall_names};

type Function = unsafe extern "C" fn(*mut State<'_>);

/// A compiled translation. It is valid as long as its [`Host`].
#[derive(Clone, Copy)]
pub(super) struct Code(Function);

/// The code generator of the host, with the generated code.
pub(super) struct Host {
    /// `Some` until the drop.
    module: Option<JITModule>,
    context: Context,
    builder: FunctionBuilderContext,
}

impl Host {
    /// Creates the code generator; returns `None` if Cranelift does not support the host.
    pub fn new() -> Option<Host> {
        // The memory of the machine is little-endian.
        if cfg!(target_endian = "big") {
            return None;
        }
        let mut flags = settings::builder();
        flags.set("opt_level", "speed").ok()?;
        let verified = if cfg!(debug_assertions) { "true" } else { "false" };
        flags.set("enable_verifier", verified).ok()?;
        flags.set("use_colocated_libcalls", "false").ok()?;
        flags.set("is_pic", "false").ok()?;
        let isa = cranelift_native::builder()
            .ok()?
            .finish(settings::Flags::new(flags))
            .ok()?;
        // Translations use 64-bit pointers.
        if isa.pointer_bits() != 64 {
            return None;
        }
        let module = JITModule::new(JITBuilder::with_isa(isa, default_libcall_names()));
        Some(Host {
            context: module.make_context(),
            module: Some(module),
            builder: FunctionBuilderContext::new(),
        })
    }

    /// Compiles a region; `views` selects views of memory. Returns `None` if the code generator
    /// fails.
    pub fn compile(&mut self, region: &Region, entry: &Entry, views: bool) -> Option<Code> {
        let module = self.module.as_mut()?;
        module.clear_context(&mut self.context);
        self.context.func.signature = module.make_signature();
        let config = module.target_config();
        translate::build(region, entry, &mut self.context.func, &mut self.builder, config, views);
        let id = module.declare_anonymous_function(&self.context.func.signature).ok()?;
        module.define_function(id, &mut self.context).ok()?;
        module.finalize_definitions().ok()?;
        let place = module.get_finalized_function(id);
        // SAFETY: the function was compiled for this host with its C calling convention and one
        // parameter, a pointer; `translate::build` declares this signature.
        Some(Code(unsafe { std::mem::transmute::<*const u8, Function>(place) }))
    }
}

impl Drop for Host {
    fn drop(&mut self) {
        if let Some(module) = self.module.take() {
            // SAFETY: code runs only inside of `run`, and a `Jit` drops its `Code`s together with
            // its `Host`.
            unsafe { module.free_memory() };
        }
    }
}

/// Runs a translation.
pub(super) fn run(code: Code, state: &mut State<'_>) {
    // SAFETY: translated code accesses only the following memory, and keeps no pointers:
    // - the fields of `state`, the first 64 scalar registers, and the vector registers;
    // - entries of the page table, by the upper 20 bits of an address; the table has 2^20 entries;
    // - pages, by entries of the table at an offset that is aligned to the size of the access. The
    //   indices in the table are inside `pages` (an invariant of `Memory`, whose borrow lasts as
    //   long as the pointers are used);
    // - words of the scratchpad, at aligned offsets below its size, which is a power of two.
    //
    // It calls only functions of `units`, with values, `state` or vector registers as arguments.
    unsafe { (code.0)(state) }
}
