//! Calls to reserved names, `%__builtin_npu_...`, that are not calls of functions.
//!
//! What there is stands in `td/NaplesPUIntrinsics.td`: name, types, meaning and, where it is one, the instruction.
//! [`expand`] rewrites what CLIF itself can say, and makes the mask a value; what is left are operations of the machine, which
//! `lower::intrinsics` emits. [`Builder`] declares them with the right signatures.
//!
//! The mask belongs to a function: all lanes at its start, set by `write_mask_reg`, and not seen by the functions it calls.
//! CLIF's own vector instructions do not know it.

mod builder;
mod expand;
mod pseudo;

pub use builder::{BuildError, Builder};
pub use expand::{Expanded, expand, finish};
pub(crate) use pseudo::PseudoCalls;

use cranelift_codegen::ir::{self, AbiParam, ExternalName, FuncRef, Function, Opcode, Signature, Type, types};
use cranelift_codegen::isa::CallConv;
use npu_mc::Opcode as Op;
use npu_mc::tables::{INTRINSICS, IntrinsicInfo, IntrinsicKind, intrinsic_by_name};

/// How all names start.
pub const PREFIX: &str = "__builtin_npu_";

/// Gives functions whose declared names are reserved these names: in a module functions have numbers, and intrinsics are known by
/// their names. `name_of` knows the name that a namespace and an index stand for.
pub fn name_calls(func: &mut Function, name_of: impl Fn(u32, u32) -> Option<String>) {
    let names: Vec<_> = func
        .dfg
        .ext_funcs
        .iter()
        .filter_map(|(key, data)| {
            let ExternalName::User(user) = data.name else {
                return None;
            };
            let user = func.params.user_named_funcs().get(user)?;
            let name = name_of(user.namespace, user.index)?;
            is_reserved(&name).then(|| (key, ExternalName::testcase(&name)))
        })
        .collect();
    for (key, name) in names {
        func.dfg.ext_funcs[key].name = name;
    }
}

/// The types that intrinsics have.
const TYPES: [Type; 4] = [types::I32, types::I64, types::I32X16, types::F32X16];

/// What a reserved name turns out to be.
#[derive(Clone, Copy, Debug)]
pub enum Reserved<'a> {
    /// An intrinsic, called with its signature.
    Intrinsic(&'static IntrinsicInfo),
    /// A name that starts like an intrinsic but is none, or has another signature here.
    Unknown(&'a str),
}

/// What calls are expanded into where CLIF has no instruction: calls of names that are lowered to machine instructions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PseudoInst {
    /// The lanes of the mask from the first vector, the others from the second.
    Mix,
    /// A vector of narrow elements as its lanes, whose upper bits are undefined, or back.
    Reinterpret,
    /// A store of the lanes of the mask.
    Store { bits: u32, scratchpad: bool },
    /// What the opcode means, on vectors of more lanes than CLIF allows it on.
    Parts(Opcode),
}

/// How the names of [`PseudoInst::Parts`] start; the name of the opcode follows.
pub(crate) const PARTS: &str = "__builtin_npu_parts_";

/// Their names start like those of intrinsics, so a program has none like them.
const PSEUDO_INSTS: [(&str, PseudoInst); 6] = [
    ("__builtin_npu_lanes_mix", PseudoInst::Mix),
    ("__builtin_npu_lanes_reinterpret", PseudoInst::Reinterpret),
    ("__builtin_npu_lanes_store_8", store(8, false)),
    ("__builtin_npu_lanes_store_16", store(16, false)),
    ("__builtin_npu_lanes_store_32", store(32, false)),
    ("__builtin_npu_lanes_store_32_scratchpad", store(32, true)),
];

const fn store(bits: u32, scratchpad: bool) -> PseudoInst {
    PseudoInst::Store { bits, scratchpad }
}

/// All intrinsics, by name.
pub fn all() -> &'static [IntrinsicInfo] {
    &INTRINSICS
}

/// Whether a name, without `%`, is one that only intrinsics have.
pub fn is_reserved(name: &str) -> bool {
    name.starts_with(PREFIX)
}

/// The signature of an intrinsic. Its convention means nothing.
pub fn signature(info: &IntrinsicInfo) -> Signature {
    let mut signature = Signature::new(CallConv::Fast);
    let types = |text: &str| -> Vec<AbiParam> {
        let named = |word: &str| TYPES.iter().find(|ty| ty.to_string() == word).copied();
        text.split_whitespace().filter_map(named).map(AbiParam::new).collect()
    };
    signature.params = types(info.params);
    signature.returns = types(info.result);
    signature
}

/// The name of a function, if it is text.
fn name_of(func: &Function, callee: FuncRef) -> Option<&str> {
    match &func.dfg.ext_funcs[callee].name {
        ExternalName::TestCase(name) => std::str::from_utf8(name.raw()).ok(),
        _ => None,
    }
}

/// Whether the function reference is an intrinsic. `None` for ordinary functions.
pub fn classify(func: &Function, callee: FuncRef) -> Option<Reserved<'_>> {
    let name = name_of(func, callee).filter(|name| is_reserved(name))?;
    let declared = &func.dfg.signatures[func.dfg.ext_funcs[callee].signature];
    let types = |list: &[AbiParam]| list.iter().map(|param| param.value_type).collect::<Vec<_>>();
    let known = intrinsic_by_name(name).filter(|info| {
        let own = signature(info);
        types(&own.params) == types(&declared.params) && types(&own.returns) == types(&declared.returns)
    });
    Some(known.map_or(Reserved::Unknown(name), Reserved::Intrinsic))
}

/// Whether the CLIF instruction is a call of an intrinsic or of a pseudo-instruction, and so not a call for the machine.
pub fn is_instruction(func: &Function, inst: ir::Inst) -> bool {
    let ir::InstructionData::Call { func_ref, .. } = func.dfg.insts[inst] else {
        return false;
    };
    pseudo_inst(func, func_ref).is_some() || matches!(classify(func, func_ref), Some(Reserved::Intrinsic(_)))
}

/// What takes the lock of atomic operations, given the address of an aligned word in main memory; gives the address of the byte that
/// holds it, and the word as it is under the lock.
pub(crate) const ATOMIC_ENTER: &str = "__builtin_npu_atomic_enter";

/// What takes the lock of atomic operations between cores, given the same; gives the addresses of the bytes that hold it and the lock of the
/// core.
pub(crate) const MACHINE_ENTER: &str = "__builtin_npu_machine_enter";

/// What goes on on another stack.
pub(crate) const STACK_SWITCH: &str = "__builtin_npu_stack_switch";

/// What gives the address of the block of thread-local storage of the thread.
pub(crate) const TLS_BLOCK: &str = "__builtin_npu_tls_block";

/// The routines of the runtime that calls are expanded into, after what their calls are named until they are lowered.
const ROUTINES: [(&str, &str); 11] = [
    (STACK_SWITCH, "__npu_stack_switch"),
    (TLS_BLOCK, "__npu_tls_block"),
    (ATOMIC_ENTER, "__npu_atomic_enter"),
    (MACHINE_ENTER, "__npu_machine_enter"),
    ("__builtin_npu_gather_lanes", "__npu_gather"),
    ("__builtin_npu_scatter_lanes", "__npu_scatter"),
    ("__builtin_npu_store_lanes_8", "__npu_store_lanes_8"),
    ("__builtin_npu_store_lanes_16", "__npu_store_lanes_16"),
    ("__builtin_npu_store_lanes_32", "__npu_store_lanes_32"),
    (
        "__builtin_npu_store_lanes_8_scratchpad",
        "__npu_store_lanes_8_scratchpad",
    ),
    (
        "__builtin_npu_store_lanes_16_scratchpad",
        "__npu_store_lanes_16_scratchpad",
    ),
];

/// The routine of the runtime that a call made by expansion means.
pub(crate) fn routine(func: &Function, callee: FuncRef) -> Option<&'static str> {
    let name = name_of(func, callee).filter(|name| is_reserved(name))?;
    ROUTINES
        .iter()
        .find(|(known, _)| *known == name)
        .map(|(_, routine)| *routine)
}

/// The routines that calls made by expansion may mean.
pub(crate) fn routine_names() -> impl Iterator<Item = &'static str> {
    ROUTINES.iter().map(|(_, routine)| *routine)
}

/// The pseudo-instruction that the function reference names.
pub(crate) fn pseudo_inst(func: &Function, callee: FuncRef) -> Option<PseudoInst> {
    let name = name_of(func, callee)?;
    if let Some(opcode) = name.strip_prefix(PARTS) {
        return opcode.parse().ok().map(PseudoInst::Parts);
    }
    PSEUDO_INSTS
        .iter()
        .find(|(known, _)| *known == name)
        .map(|(_, pseudo)| *pseudo)
}

/// The instruction of an [`IntrinsicKind::Operation`] or [`IntrinsicKind::LaneBits`].
pub(crate) fn instruction(info: &IntrinsicInfo) -> Option<Op> {
    Op::from_name(info.instruction)
}

/// The mask counts for what the intrinsic does, or it is about the mask.
fn uses_mask(info: &IntrinsicInfo) -> bool {
    use IntrinsicKind::{ReadMask, WriteMask, WriteMaskLanes};
    info.masked || matches!(info.kind, ReadMask | WriteMask | WriteMaskLanes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_whole() {
        for info in all() {
            let sig = signature(info);
            assert_eq!(
                sig.params.len(),
                info.params.split_whitespace().count(),
                "{}",
                info.name
            );
            assert_eq!(
                sig.returns.len(),
                info.result.split_whitespace().count(),
                "{}",
                info.name
            );
            assert!(is_reserved(info.name));
            let is_one = matches!(info.kind, IntrinsicKind::Operation | IntrinsicKind::LaneBits);
            assert_eq!(instruction(info).is_some(), is_one, "{}", info.name);
            if info.kind == IntrinsicKind::Compare {
                assert!(expand::condition(info).is_some(), "{}", info.name);
            }
        }
    }
}
