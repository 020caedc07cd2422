//! Floats in lanes: by the float unit where scalars use it, by integer operations where these are few, else lane by lane
//! through the routines for scalars.

use super::arithmetic::clamp;
use super::{Lanes, is_full, rounding};
use crate::code::RelocTarget;
use crate::inst::MInst;
use crate::inst::reg::Reg;
use crate::lower::call;
use crate::lower::context::Lower;
use crate::lower::float::FloatOp;
use crate::runtime::{LaneRoutine, Routine};
use cranelift_codegen::ir::{Type, Value};
use npu_mc::Opcode as Op;
use regalloc2::RegClass;
use smallvec::SmallVec;

const SIGN: u32 = 1 << 31;

/// A routine for scalars on every lane.
fn by_lanes(ctx: &mut Lower<'_>, routine: Routine, args: &[Lanes]) -> Lanes {
    let args: SmallVec<[Reg; 3]> = args.iter().map(|&arg| ctx.vector_reg(arg)).collect();
    let address = Reg::Virtual(ctx.new_vreg(RegClass::Int));
    ctx.emit(MInst::SymbolAddr {
        dst: address,
        target: RelocTarget::Runtime(routine.name()),
        addend: 0,
    });
    Lanes::Reg(call::lane_routine(ctx, LaneRoutine::of(args.len()), address, &args))
}

/// An operation on values of lanes.
pub fn operate(ctx: &mut Lower<'_>, op: &FloatOp, args: &[Value]) -> Lanes {
    let args: SmallVec<[Lanes; 3]> = args.iter().map(|&arg| ctx.lanes(arg)).collect();
    let unit = match op {
        FloatOp::Add => Some(Op::ADDFVVV_U_32),
        FloatOp::Sub => Some(Op::SUBFVVV_U_32),
        FloatOp::Mul => Some(Op::MULFVVV_U_32),
        FloatOp::Div => Some(Op::DIVFVVV_U_32),
        _ => None,
    };
    match (unit, args.as_slice()) {
        (Some(unit), &[x, y]) if ctx.has_hardware_float() => ctx.vector_op(unit, x, y),
        (None, &[x, y]) => rounding::min_max(ctx, *op == FloatOp::Min, x, y),
        (None, &[x]) => match rounding::round(ctx, *op, x) {
            Some(rounded) => rounded,
            None => by_lanes(ctx, op.f32(), &[x]),
        },
        (_, args) => by_lanes(ctx, op.f32(), args),
    }
}

/// The numbers with their signs changed.
pub fn neg(ctx: &mut Lower<'_>, x: Lanes) -> Lanes {
    ctx.vector_op(Op::XORVVV_U_32, x, Lanes::Const(SIGN))
}

/// The numbers without their signs.
pub fn abs(ctx: &mut Lower<'_>, x: Lanes) -> Lanes {
    ctx.vector_op(Op::ANDVVV_U_32, x, Lanes::Const(!SIGN))
}

/// The first numbers with the signs of the second.
pub fn copysign(ctx: &mut Lower<'_>, x: Lanes, y: Lanes) -> Lanes {
    let differ = ctx.vector_op(Op::XORVVV_U_32, x, y);
    let sign = ctx.vector_op(Op::ANDVVV_U_32, differ, Lanes::Const(SIGN));
    ctx.vector_op(Op::XORVVV_U_32, x, sign)
}

/// From integers of the type. What came from less than 32 bits the float unit converts exactly.
pub fn from_int(ctx: &mut Lower<'_>, from: Type, signed: bool, x: Value) -> Lanes {
    let x = ctx.lanes(x);
    let x = if signed {
        ctx.sign_extended(from, x)
    } else {
        ctx.zero_extended(from, x)
    };
    if !is_full(from) && ctx.isa.settings().has_fpu {
        return ctx.vector_unary(Op::I32TOF32_VV_U, x);
    }
    let routine = if signed {
        Routine::F32FromS32
    } else {
        Routine::F32FromU32
    };
    by_lanes(ctx, routine, &[x])
}

/// To integers of the type, saturated; a NaN gives 0.
pub fn to_int(ctx: &mut Lower<'_>, to: Type, signed: bool, x: Value) -> Lanes {
    let x = ctx.lanes(x);
    let routine = if signed { Routine::F32ToS32 } else { Routine::F32ToU32 };
    let whole = by_lanes(ctx, routine, &[x]);
    if is_full(to) {
        return whole;
    }
    clamp(ctx, to, signed, whole)
}
