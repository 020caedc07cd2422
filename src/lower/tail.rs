//! Tail calls, with the convention `tail`.
//!
//! A callee with this convention removes its stack arguments when it returns. So whoever is returned to finds `sp` where
//! its own call expects it, whatever chain of tail calls lies between. The arguments of a tail call end where those of the
//! function itself end, and start as far below as they need: over the function's own arguments, which were taken into
//! registers at entry, and, if they need more room, over the top of its frame, which keeps that room free.

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
    // From the stack arguments of the function to those of the callee.
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
    ctx.expect_equal(args.len(), info.args.len(), "a place for every argument");
    for ((&arg, places), param) in args.iter().zip(&info.args).zip(&ctx.func.dfg.signatures[sig].params) {
        let regs = outgoing(ctx, arg, param.extension);
        ctx.expect_equal(regs.len(), places.len(), "a place for every register of an argument");
        for (reg, &place) in regs.into_iter().zip(places) {
            pass(ctx, reg, place);
        }
    }
    // The results are those of this function, so what finds no register goes where this function would put it.
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
