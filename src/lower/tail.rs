//! Lowers tail calls, with the convention `tail`.
//!
//! A callee with this convention removes its stack arguments when it returns. So after any chain of
//! tail calls, the original caller finds the value of `sp` that its call expects. The stack
//! arguments of a tail call end at the address where the function's own stack arguments end. They
//! overwrite the function's arguments, which were loaded into registers at entry. If they need more
//! room, they also overwrite the top of the frame, which has reserved space.

use super::call::{destination, offset, outgoing, places};
use super::context::{InstOutput, Lower};
use crate::abi::sig::Place;
use crate::inst::ops::store_op;
use crate::inst::reg::Reg;
use crate::inst::{AMode, CallDest, CallInfo, CallRegs, MInst};
use cranelift_codegen::ir::{FuncRef, SigRef, Value};
use regalloc2::{PRegSet, VReg};

/// Lowers a tail call of a known function.
pub fn direct(ctx: &mut Lower<'_>, callee: FuncRef, args: &[Value]) -> Option<InstOutput> {
    let dest = destination(ctx, callee);
    emit(ctx, ctx.func.dfg.ext_funcs[callee].signature, dest, args)
}

/// Lowers a tail call through a register.
pub fn indirect(ctx: &mut Lower<'_>, sig: SigRef, callee: Reg, args: &[Value]) -> Option<InstOutput> {
    emit(ctx, sig, CallDest::Reg(callee), args)
}

fn emit(ctx: &mut Lower<'_>, sig: SigRef, dest: CallDest, args: &[Value]) -> Option<InstOutput> {
    let info = places(ctx, sig)?;
    // The distance from the function's stack arguments to the callee's.
    let start = offset(ctx.sig.popped) - offset(info.popped);
    let mut uses = CallRegs::new();
    let mut pass = |ctx: &mut Lower<'_>, reg: VReg, place: Place| match place {
        Place::Reg(at) => uses.push((Reg::Virtual(reg), at)),
        Place::Memory(at) => ctx.emit(MInst::Store {
            op: store_op(reg.class()),
            src: Reg::Virtual(reg),
            addr: AMode::Incoming {
                offset: start.saturating_add(offset(at)),
            },
        }),
    };
    ctx.expect_equal(args.len(), info.args.len(), "a location for every argument");
    for ((&arg, places), param) in args.iter().zip(&info.args).zip(&ctx.func.dfg.signatures[sig].params) {
        let regs = outgoing(ctx, arg, param.extension);
        ctx.expect_equal(regs.len(), places.len(), "a location for every register of an argument");
        for (reg, &place) in regs.into_iter().zip(places) {
            pass(ctx, reg, place);
        }
    }
    // The results are also the function's own, so results in memory use the function's area.
    if let (Some(area), Some(place)) = (ctx.ret_area(), info.ret_area) {
        pass(ctx, area, place);
    }
    ctx.vcode.tail_args = ctx.vcode.tail_args.max(info.popped);
    ctx.vcode.has_tail_calls = true;
    ctx.emit(MInst::ReturnCall(Box::new(CallInfo {
        dest,
        uses,
        defs: CallRegs::new(),
        clobbers: PRegSet::empty(),
        popped: info.popped,
    })));
    Some(InstOutput::new())
}
