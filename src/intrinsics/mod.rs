//! Intrinsics: calls of the reserved names `%__builtin_npu_...`, which compile to machine
//! instructions.
//!
//! `td/NaplesPUIntrinsics.td` lists them: name, types, meaning and, if it is a single one, the
//! instruction. [`expand`] rewrites the intrinsics that CLIF can express and turns the lane mask
//! into a value. `lower::intrinsics` emits the rest as machine operations. [`Builder`] declares
//! intrinsics with the correct signatures.
//!
//! The lane mask is local to a function. It enables all lanes at the start of the function,
//! `write_mask_reg` changes it, and callees do not see it. CLIF's vector instructions ignore it.

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

/// The prefix of all names of intrinsics.
pub const PREFIX: &str = "__builtin_npu_";

/// Replaces function numbers by reserved names in the declarations of a function. In a module,
/// functions have numbers, but intrinsics are recognized by name. `name_of` returns the declared
/// name for a namespace and an index.
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

/// The types of operands and results of intrinsics.
const TYPES: [Type; 4] = [types::I32, types::I64, types::I32X16, types::F32X16];

/// The meaning of a reserved name.
#[derive(Clone, Copy, Debug)]
pub enum Reserved<'a> {
    /// An intrinsic that is called with its signature.
    Intrinsic(&'static IntrinsicInfo),
    /// A name with the prefix that is not an intrinsic, or has the wrong signature.
    Unknown(&'a str),
}

/// A pseudo-instruction: a call of a reserved name that passes insert where CLIF has no
/// instruction, and that is lowered to machine instructions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PseudoInst {
    /// Selects the lanes of the mask from the first vector, and the others from the second.
    Mix,
    /// Converts a vector of narrow elements to lanes with undefined upper bits, or back.
    Reinterpret,
    /// Stores the lanes of the mask.
    Store { bits: u32, scratchpad: bool },
    /// The operation of the opcode on vectors with more lanes than CLIF allows for it.
    Parts(Opcode),
}

/// The prefix of the names of [`PseudoInst::Parts`]. The name of the opcode follows.
pub(crate) const PARTS: &str = "__builtin_npu_parts_";

/// The names of the pseudo-instructions. They have the prefix of intrinsics, so they cannot collide
/// with names of a program.
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

/// Returns all intrinsics.
pub fn all() -> &'static [IntrinsicInfo] {
    &INTRINSICS
}

/// Returns whether a name, without `%`, is reserved for intrinsics.
pub fn is_reserved(name: &str) -> bool {
    name.starts_with(PREFIX)
}

/// Returns the signature of an intrinsic. The calling convention is irrelevant.
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

/// Returns the name of a function if the name is a text.
fn name_of(func: &Function, callee: FuncRef) -> Option<&str> {
    match &func.dfg.ext_funcs[callee].name {
        ExternalName::TestCase(name) => std::str::from_utf8(name.raw()).ok(),
        _ => None,
    }
}

/// Classifies a function reference. Returns `None` for ordinary functions.
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

/// Returns whether the CLIF instruction calls an intrinsic or a pseudo-instruction, and is
/// therefore not a call in machine code.
pub fn is_instruction(func: &Function, inst: ir::Inst) -> bool {
    let ir::InstructionData::Call { func_ref, .. } = func.dfg.insts[inst] else {
        return false;
    };
    pseudo_inst(func, func_ref).is_some() || matches!(classify(func, func_ref), Some(Reserved::Intrinsic(_)))
}

/// The routine that acquires the lock of atomic operations. It takes the address of an aligned word
/// in main memory, and returns the address of the lock byte and the value of the word under the
/// lock.
pub(crate) const ATOMIC_ENTER: &str = "__builtin_npu_atomic_enter";

/// The routine that acquires the lock of atomic operations between cores. It takes the address of
/// an aligned word in main memory, and returns the addresses of the lock byte and of the core's
/// lock.
pub(crate) const MACHINE_ENTER: &str = "__builtin_npu_machine_enter";

/// The routine that switches to another stack.
pub(crate) const STACK_SWITCH: &str = "__builtin_npu_stack_switch";

/// The routine that returns the address of the thread-local storage of the thread.
pub(crate) const TLS_BLOCK: &str = "__builtin_npu_tls_block";

/// The runtime routines that the expansion calls: the reserved name in CLIF, and the name after
/// lowering.
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

/// Returns the runtime routine that a call from the expansion refers to.
pub(crate) fn routine(func: &Function, callee: FuncRef) -> Option<&'static str> {
    let name = name_of(func, callee).filter(|name| is_reserved(name))?;
    ROUTINES
        .iter()
        .find(|(known, _)| *known == name)
        .map(|(_, routine)| *routine)
}

/// Returns the routines that calls from the expansion may refer to.
pub(crate) fn routine_names() -> impl Iterator<Item = &'static str> {
    ROUTINES.iter().map(|(_, routine)| *routine)
}

/// Returns the pseudo-instruction that the function reference names.
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

/// Returns the instruction of an [`IntrinsicKind::Operation`] or [`IntrinsicKind::LaneBits`].
pub(crate) fn instruction(info: &IntrinsicInfo) -> Option<Op> {
    Op::from_name(info.instruction)
}

/// Returns whether the intrinsic depends on the mask, or reads or writes it.
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
