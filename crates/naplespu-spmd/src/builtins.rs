//! The reserved names by which a work-item function asks for its work-item and its neighbors.

use cranelift_codegen::ir::{
    AbiParam, ExtFuncData, ExternalName, FuncRef, Function, Inst, InstructionData, Signature, Type, types,
};
use cranelift_codegen::isa::CallConv;

/// Start of every reserved name.
pub const PREFIX: &str = "__builtin_npu_";

/// An operation across the active lanes of a subgroup.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reduction {
    /// `add_i32`, `mul_i32`, `and_i32`, `or_i32`, `xor_i32`, `smin_i32`, `smax_i32`, `umin_i32`
    /// and `umax_i32`.
    Int(IntOp),
    /// `add_f32`, `mul_f32`, `min_f32` and `max_f32`.
    Float(FloatOp),
}

/// An operation on integers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names are those of CLIF's opcodes")]
pub enum IntOp {
    Add,
    Mul,
    And,
    Or,
    Xor,
    Smin,
    Smax,
    Umin,
    Umax,
}

/// An operation on floats.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names are those of CLIF's opcodes")]
pub enum FloatOp {
    Add,
    Mul,
    Min,
    Max,
}

/// The lanes that take part in the result of a lane.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Extent {
    /// All active lanes.
    Reduce,
    /// The active lanes up to this one.
    Inclusive,
    /// The active lanes before this one.
    Exclusive,
}

/// A function with a reserved name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Builtin {
    /// `lane_id() -> i32`: the lane in the subgroup.
    LaneId,
    /// `workgroup_id_x() -> i32` and so on: the number of the work-group in a dimension.
    WorkgroupId(u8),
    /// `workgroup_count_x() -> i32` and so on: the work-groups of the dispatch in a dimension.
    WorkgroupCount(u8),
    /// `local_id_x() -> i32` and so on: the number of the work-item in a dimension.
    LocalId(u8),
    /// `global_id_x() -> i32` and so on: the number of the work-item in a dimension of the dispatch.
    GlobalId(u8),
    /// `local_index() -> i32`: the number of the work-item in its work-group.
    LocalIndex,
    /// `subgroup_id() -> i32`: the number of the subgroup in the work-group.
    SubgroupId,
    /// `subgroup_count() -> i32`: the subgroups of a work-group.
    SubgroupCount,
    /// `subgroup_size() -> i32`: the lanes of a subgroup.
    SubgroupSize,
    /// `workgroup_barrier()`: waits for all work-items of the work-group.
    Barrier,
    /// `subgroup_any(i8) -> i8`: whether the argument is not zero in an active lane.
    Any,
    /// `subgroup_all(i8) -> i8`: whether the argument is not zero in all active lanes.
    All,
    /// `subgroup_all_known(i8) -> i8`: not zero only if the argument is not zero in all active lanes.
    /// It may be zero nevertheless; the test is cheap for compares of linear and uniform numbers.
    AllKnown,
    /// `subgroup_ballot(i8) -> i32`: one bit for each of the first 32 lanes.
    Ballot,
    /// `subgroup_elect() -> i8`: whether this is the first active lane.
    Elect,
    /// `subgroup_broadcast_first_T(T) -> T`: the argument of the first active lane.
    BroadcastFirst(Type),
    /// `subgroup_shuffle_T(T, i32) -> T`: the argument of another lane; undefined if that lane is
    /// inactive or does not exist.
    Shuffle(Type),
    /// `subgroup_add_i32(i32) -> i32`, `subgroup_inclusive_add_i32`, `subgroup_exclusive_add_i32`
    /// and so on.
    Reduce(Reduction, Extent),
}

impl Builtin {
    /// Returns the built-in function of a name without [`PREFIX`].
    pub fn parse(name: &str) -> Option<Self> {
        let dimension = |axis: &str| ["x", "y", "z"].iter().position(|&name| name == axis);
        let of_axis = |prefix: &str| Some(dimension(name.strip_prefix(prefix)?)? as u8);
        Some(match name {
            "lane_id" => Self::LaneId,
            "local_index" => Self::LocalIndex,
            "subgroup_id" => Self::SubgroupId,
            "subgroup_count" => Self::SubgroupCount,
            "subgroup_size" => Self::SubgroupSize,
            "workgroup_barrier" => Self::Barrier,
            "subgroup_any" => Self::Any,
            "subgroup_all" => Self::All,
            "subgroup_all_known" => Self::AllKnown,
            "subgroup_ballot" => Self::Ballot,
            "subgroup_elect" => Self::Elect,
            "subgroup_broadcast_first_i32" => Self::BroadcastFirst(types::I32),
            "subgroup_broadcast_first_f32" => Self::BroadcastFirst(types::F32),
            "subgroup_shuffle_i32" => Self::Shuffle(types::I32),
            "subgroup_shuffle_f32" => Self::Shuffle(types::F32),
            _ => {
                if let Some(axis) = of_axis("workgroup_id_") {
                    Self::WorkgroupId(axis)
                } else if let Some(axis) = of_axis("workgroup_count_") {
                    Self::WorkgroupCount(axis)
                } else if let Some(axis) = of_axis("local_id_") {
                    Self::LocalId(axis)
                } else if let Some(axis) = of_axis("global_id_") {
                    Self::GlobalId(axis)
                } else {
                    let operation = name.strip_prefix("subgroup_")?;
                    let (extent, operation) = match operation.split_once('_')? {
                        ("inclusive", rest) => (Extent::Inclusive, rest),
                        ("exclusive", rest) => (Extent::Exclusive, rest),
                        _ => (Extent::Reduce, operation),
                    };
                    Self::Reduce(reduction(operation)?, extent)
                }
            }
        })
    }

    /// Returns the types of the arguments and of the result.
    pub fn signature(self) -> (Vec<Type>, Option<Type>) {
        match self {
            Self::Barrier => (vec![], None),
            Self::Any | Self::All | Self::AllKnown => (vec![types::I8], Some(types::I8)),
            Self::Ballot => (vec![types::I8], Some(types::I32)),
            Self::Elect => (vec![], Some(types::I8)),
            Self::BroadcastFirst(ty) => (vec![ty], Some(ty)),
            Self::Shuffle(ty) => (vec![ty, types::I32], Some(ty)),
            Self::Reduce(Reduction::Int(_), _) => (vec![types::I32], Some(types::I32)),
            Self::Reduce(Reduction::Float(_), _) => (vec![types::F32], Some(types::F32)),
            _ => (vec![], Some(types::I32)),
        }
    }
}

/// Declares a built-in function in a function. `name` is its name without [`PREFIX`].
pub fn import(func: &mut Function, name: &str, builtin: Builtin) -> FuncRef {
    let (params, result) = builtin.signature();
    let mut signature = Signature::new(CallConv::SystemV);
    signature.params.extend(params.into_iter().map(AbiParam::new));
    signature.returns.extend(result.map(AbiParam::new));
    let signature = func.import_signature(signature);
    func.import_function(ExtFuncData {
        name: ExternalName::testcase(format!("{PREFIX}{name}")),
        signature,
        colocated: false,
        patchable: false,
    })
}

fn reduction(name: &str) -> Option<Reduction> {
    Some(match name {
        "add_i32" => Reduction::Int(IntOp::Add),
        "mul_i32" => Reduction::Int(IntOp::Mul),
        "and_i32" => Reduction::Int(IntOp::And),
        "or_i32" => Reduction::Int(IntOp::Or),
        "xor_i32" => Reduction::Int(IntOp::Xor),
        "smin_i32" => Reduction::Int(IntOp::Smin),
        "smax_i32" => Reduction::Int(IntOp::Smax),
        "umin_i32" => Reduction::Int(IntOp::Umin),
        "umax_i32" => Reduction::Int(IntOp::Umax),
        "add_f32" => Reduction::Float(FloatOp::Add),
        "mul_f32" => Reduction::Float(FloatOp::Mul),
        "min_f32" => Reduction::Float(FloatOp::Min),
        "max_f32" => Reduction::Float(FloatOp::Max),
        _ => return None,
    })
}

/// Returns the built-in function that an instruction calls, or the name if it starts like a
/// built-in function of this crate and does not match one.
pub(crate) fn called(func: &Function, inst: Inst) -> Option<Result<Builtin, String>> {
    let InstructionData::Call { func_ref, .. } = func.dfg.insts[inst] else {
        return None;
    };
    let callee = &func.dfg.ext_funcs[func_ref];
    let name = crate::names::external_name(&callee.name)?;
    let name = String::from_utf8_lossy(&name).into_owned();
    let builtin = Builtin::parse(name.strip_prefix(PREFIX)?)?;
    let signature = &func.dfg.signatures[callee.signature];
    let (params, result) = builtin.signature();
    let matches = signature.params.iter().map(|param| param.value_type).eq(params)
        && signature.returns.iter().map(|param| param.value_type).eq(result);
    Some(if matches { Ok(builtin) } else { Err(name) })
}
