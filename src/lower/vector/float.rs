//! Lowers float operations that the hardware lacks: calls the scalar routines lane by lane.

use super::Lanes;
use crate::code::RelocTarget;
use crate::inst::MInst;
use crate::inst::reg::Reg;
use crate::lower::call;
use crate::lower::context::Lower;
use crate::runtime::{LaneRoutine, Routine};
use cranelift_codegen::ir::Value;
use regalloc2::RegClass;
use smallvec::SmallVec;

/// Applies a scalar routine to every lane.
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

/// Applies a scalar routine to vector operands.
pub fn operate(ctx: &mut Lower<'_>, routine: Routine, args: &[Value]) -> Lanes {
    let args: SmallVec<[Lanes; 3]> = args.iter().map(|&arg| ctx.lanes(arg)).collect();
    by_lanes(ctx, routine, &args)
}

/// Converts from 32-bit integers.
pub fn from_int(ctx: &mut Lower<'_>, signed: bool, x: Lanes) -> Lanes {
    let routine = if signed {
        Routine::F32FromS32
    } else {
        Routine::F32FromU32
    };
    by_lanes(ctx, routine, &[x])
}

/// Converts to 32-bit integers, saturated; a NaN gives 0.
pub fn to_int(ctx: &mut Lower<'_>, signed: bool, x: Value) -> Lanes {
    let x = ctx.lanes(x);
    let routine = if signed { Routine::F32ToS32 } else { Routine::F32ToU32 };
    by_lanes(ctx, routine, &[x])
}
