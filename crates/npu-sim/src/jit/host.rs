//! Code of the host: made, kept and called. All that is unsafe about translations stands here.

use super::region::Region;
use super::translate::{self, Entry, NO_BRANCH, NOWHERE};
use crate::hazard::Watch;
use crate::registers::Lanes;
use crate::shared::SCRATCHPAD_SIZE;
use crate::thread::Thread;
use cranelift_codegen::Context;
use cranelift_codegen::settings::{self, Configurable};
use cranelift_frontend::FunctionBuilderContext;
use cranelift_jit::{JITBuilder, JITModule};
use cranelift_module::{Module, default_libcall_names};

/// What a translation works on; it knows the places of the fields by [`std::mem::offset_of`].
#[repr(C)]
pub(super) struct State<'a> {
    pub scalars: &'a mut [u32; 256],
    pub vectors: &'a mut [Lanes; 64],
    /// [`SCRATCHPAD_SIZE`](crate::SCRATCHPAD_SIZE) bytes.
    pub scratchpad: *mut u8,
    /// The page table of main memory.
    pub table: *const u32,
    /// The pages of main memory.
    pub pages: *mut u8,
    /// What is followed for the thread.
    pub watch: &'a mut Watch,
    /// Words that may have undriven bits, as [`Watch::memory`] has them.
    pub words: u64,
    /// Scalar registers of the region whose upper halves nothing drives.
    pub undriven: u64,
    /// Instructions left.
    pub left: u64,
    pub pc: u32,
    pub last_long: u32,
    /// 1 if a branch went to the PC.
    pub branched: u32,
    /// Address of the last taken branch, or [`NO_BRANCH`].
    pub last_branch: u32,
    /// The load that it was left before, since what is undriven of its word is not what it is taken to be, or [`NOWHERE`].
    pub reload: u32,
    /// The lane mask.
    pub mask: u32,
    /// All bits of the lanes that are on. Only used in code for masks that are not all ones.
    pub lanes: Lanes,
}

impl<'a> State<'a> {
    /// The state of a thread for `left` instructions; `memory` is that of [`crate::Memory::places`].
    pub fn new(
        thread: &'a mut Thread,
        scratchpad: &'a mut [u8],
        (table, pages): (*const u32, *mut u8),
        left: u64,
    ) -> State<'a> {
        debug_assert_eq!(scratchpad.len(), SCRATCHPAD_SIZE);
        State {
            words: thread.watch.memory(),
            mask: thread.mask.into(),
            scalars: &mut thread.scalars,
            vectors: &mut thread.vectors,
            watch: &mut thread.watch,
            scratchpad: scratchpad.as_mut_ptr(),
            lanes: Lanes::default(),
            table,
            pages,
            undriven: 0,
            left,
            pc: 0,
            last_long: NOWHERE,
            branched: 0,
            last_branch: NO_BRANCH,
            reload: NOWHERE,
        }
    }
}

type Function = unsafe extern "C" fn(*mut State<'_>);

/// A compiled translation. It is valid as long as its [`Host`].
#[derive(Clone, Copy)]
pub(super) struct Code(Function);

/// The code generator of the host with what it has made.
pub(super) struct Host {
    /// Always there until it is dropped.
    module: Option<JITModule>,
    context: Context,
    builder: FunctionBuilderContext,
}

impl Host {
    /// `None` when there is none for this host.
    pub fn new() -> Option<Host> {
        // Memory of the machine is little-endian.
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
        // Translations take pointers of 64 bits to be such.
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

    /// Compiles a region, for views of memory if they are said; `None` when the code generator refuses.
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
        // SAFETY: the function was compiled for this host with its C calling convention and one parameter, a pointer, which is the
        // signature that `translate::build` gives it.
        Some(Code(unsafe { std::mem::transmute::<*const u8, Function>(place) }))
    }
}

impl Drop for Host {
    fn drop(&mut self) {
        if let Some(module) = self.module.take() {
            // SAFETY: code runs only inside of `run`, and a `Jit` drops its `Code`s together with its `Host`.
            unsafe { module.free_memory() };
        }
    }
}

/// Runs a translation.
pub(super) fn run(code: Code, state: &mut State<'_>) {
    // SAFETY: translated code reads and writes the fields of `state`, the first 64 scalar registers, the vector registers, entries of the page table by the upper
    // 20 bits of an address, of which there are 2^20, and pages by entries of the table, whose indices are inside `pages`
    // (an invariant of `Memory`, whose borrow lasts as long as the pointers are used), at an offset that is aligned to the size of the
    // access; words of the scratchpad at aligned offsets below its size, which is a power of two. It calls functions of `units` alone, with values, with `state` or with vector registers, and keeps nothing.
    unsafe { (code.0)(state) }
}
