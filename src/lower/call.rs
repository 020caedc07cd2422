//! Lowers arguments, results and calls.

use super::context::{InstOutput, Lower, Rules, ValueRegs};
use super::structs;
use crate::abi::registers::{RegisterSet, clobbered};
use crate::abi::sig::{Place, Places, SigInfo};
use crate::code::RelocTarget;
use crate::inst::ops::{immediate_range, load_op, store_op};
use crate::inst::reg::{Reg, to_preg};
use crate::inst::{AMode, CallDest, CallInfo, CallRegs, MInst};
use crate::intrinsics::routine as routine_of;
use crate::runtime::{LaneRoutine, Routine};
use crate::shape::registers_of;
use cranelift_codegen::ir::{ArgumentExtension, ArgumentPurpose, Block, FuncRef, Function, SigRef, Value};
use npu_mc::Opcode;
use regalloc2::{PRegSet, RegClass, VReg};
use smallvec::SmallVec;
use std::rc::Rc;

/// The alignment of the areas for stack arguments and results, in bytes.
const AREA_ALIGN: u32 = npu_mc::machine::STACK_ALIGN;

pub(super) fn offset(bytes: u32) -> i32 {
    // Validation refuses a signature whose area needs more than 31 bits.
    bytes.cast_signed()
}

impl Lower<'_> {
    /// Moves the arguments of the function from their ABI locations to the registers of the entry
    /// block's parameters.
    pub fn lower_args(&mut self, entry: Block) {
        let mut defs = Vec::new();
        let mut loads = Vec::new();
        let params = self.func.dfg.block_params(entry).to_vec();
        let places = std::mem::take(&mut self.sig.args);
        self.expect_equal(params.len(), places.len(), "a location for every parameter");
        for (&param, places) in params.iter().zip(&places) {
            let Some(regs) = self.known(self.param_regs(param), "registers of a parameter") else {
                continue;
            };
            self.expect_equal(
                regs.as_slice().len(),
                places.len(),
                "a location for every register of a parameter",
            );
            for (&reg, &place) in regs.as_slice().iter().zip(places) {
                self.arrive(reg, place, &mut defs, &mut loads);
            }
        }
        self.sig.args = places;
        if let (Some(reg), Some(place)) = (self.ret_area(), self.sig.ret_area) {
            self.arrive(reg, place, &mut defs, &mut loads);
        }
        self.emit(MInst::Args { defs });
        for load in loads {
            self.emit(load);
        }
        self.finish_inst();
    }

    fn arrive(&self, reg: VReg, place: Place, defs: &mut Vec<(Reg, npu_mc::Reg)>, loads: &mut Vec<MInst>) {
        match place {
            Place::Reg(at) => defs.push((Reg::Virtual(reg), at)),
            Place::Memory(at) => loads.push(MInst::Load {
                op: load_op(reg.class()),
                dst: Reg::Virtual(reg),
                addr: AMode::Incoming { offset: offset(at) },
            }),
        }
    }
}

/// Lowers `return`.
pub fn finish(ctx: &mut Lower<'_>, args: &[Value]) -> Option<InstOutput> {
    let mut uses = Vec::new();
    let places = ctx.sig.rets.clone();
    let area = ctx.ret_area();
    ctx.expect_equal(args.len(), places.len(), "a location for every result");
    for ((&arg, places), param) in args.iter().zip(&places).zip(&ctx.func.signature.returns) {
        let regs = outgoing(ctx, arg, param.extension);
        ctx.expect_equal(regs.len(), places.len(), "a location for every register of a result");
        for (reg, &place) in regs.into_iter().zip(places) {
            match place {
                Place::Reg(at) => uses.push((Reg::Virtual(reg), at)),
                Place::Memory(at) => {
                    let area = ctx.known(area, "an area for results in memory")?;
                    let addr = result_address(ctx, area, at);
                    ctx.emit(MInst::Store {
                        op: store_op(reg.class()),
                        src: Reg::Virtual(reg),
                        addr,
                    });
                }
            }
        }
    }
    if let Some((index, at)) = ctx.sig.returned_pointer {
        let func = ctx.func;
        let entry = func.layout.entry_block();
        let pointer = entry.and_then(|entry| func.dfg.block_params(entry).get(index));
        let pointer = *ctx.known(pointer, "the parameter that is returned")?;
        let regs = ctx.put_in_regs(pointer);
        uses.push((Reg::Virtual(*regs.as_slice().first()?), at));
    }
    ctx.emit(MInst::Return { uses });
    Some(InstOutput::new())
}

/// Returns the registers of a value that is passed or returned; narrow integers are extended as the
/// signature requires.
pub(super) fn outgoing(ctx: &mut Lower<'_>, value: Value, extension: ArgumentExtension) -> SmallVec<[VReg; 4]> {
    let ty = ctx.func.dfg.value_type(value);
    let narrow = !ty.is_vector() && ty.bits() < 32;
    let extended = if narrow {
        ctx.extended(value, extension).as_virtual()
    } else {
        None
    };
    match extended {
        Some(reg) => smallvec::smallvec![reg],
        None => ctx.put_in_regs(value).as_slice().into(),
    }
}

/// Returns an address in the area for results.
fn result_address(ctx: &mut Lower<'_>, area: VReg, at: u32) -> AMode {
    let (_, highest) = immediate_range(npu_mc::OperandKind::Offset9);
    if offset(at) <= highest {
        return AMode::Reg {
            base: Reg::Virtual(area),
            offset: offset(at),
        };
    }
    let distance = Reg::Virtual(ctx.constant(at));
    let base = Reg::Virtual(ctx.new_vreg(RegClass::Int));
    let srcs = crate::inst::Srcs::from_slice(&[Reg::Virtual(area), distance]);
    ctx.emit(MInst::Op {
        op: Opcode::ADDSSS_32,
        dst: Some(base),
        srcs,
        imm: 0,
    });
    AMode::Reg { base, offset: 0 }
}

/// Returns the symbol of a function reference.
pub fn target(func: &Function, callee: FuncRef) -> RelocTarget {
    match routine_of(func, callee) {
        Some(routine) => RelocTarget::Runtime(routine),
        None => RelocTarget::Name(func.dfg.ext_funcs[callee].name.clone()),
    }
}

/// Lowers a call of a known function.
pub fn direct(ctx: &mut Lower<'_>, callee: FuncRef, args: &[Value]) -> Option<InstOutput> {
    let dest = destination(ctx, callee);
    emit_call(ctx, ctx.func.dfg.ext_funcs[callee].signature, dest, args)
}

/// Lowers a call through a register.
pub fn indirect(ctx: &mut Lower<'_>, sig: SigRef, callee: Reg, args: &[Value]) -> Option<InstOutput> {
    emit_call(ctx, sig, CallDest::Reg(callee), args)
}

/// Returns the ABI locations of the arguments and results of a callee.
pub(super) fn places(ctx: &mut Lower<'_>, sig: SigRef) -> Option<Rc<SigInfo>> {
    match ctx.callees.get(ctx.func, sig) {
        Ok(info) => Some(info),
        Err(error) => {
            ctx.set_fault(error);
            None
        }
    }
}

/// Returns how a call reaches a function.
pub(super) fn destination(ctx: &Lower<'_>, callee: FuncRef) -> CallDest {
    let target = target(ctx.func, callee);
    if ctx.func.dfg.ext_funcs[callee].colocated {
        CallDest::Near(target)
    } else {
        CallDest::Far(target)
    }
}

/// Creates an area for the results of a call that are in memory.
pub(super) fn result_area(ctx: &mut Lower<'_>, info: &SigInfo) -> u32 {
    ctx.new_local(info.ret_area_size, AREA_ALIGN)
}

/// Moves arguments to their ABI locations. Returns the arguments in registers, and the area for
/// results in memory. Creates an area if `area` is `None`.
pub(super) fn pass_arguments(
    ctx: &mut Lower<'_>,
    sig: SigRef,
    info: &SigInfo,
    args: &[Value],
    area: Option<u32>,
) -> Option<(CallRegs, Option<u32>)> {
    let mut uses = CallRegs::new();
    ctx.expect_equal(args.len(), info.args.len(), "a location for every argument");
    for ((&arg, places), param) in args.iter().zip(&info.args).zip(&ctx.func.dfg.signatures[sig].params) {
        if let (ArgumentPurpose::StructArgument(size), Some(&place)) = (param.purpose, places.first()) {
            let copy = structs::copy(ctx, arg, size);
            pass(ctx, copy, place, &mut uses);
            continue;
        }
        let regs = outgoing(ctx, arg, param.extension);
        ctx.expect_equal(regs.len(), places.len(), "a location for every register of an argument");
        for (reg, &place) in regs.into_iter().zip(places) {
            pass(ctx, reg, place, &mut uses);
        }
    }
    // Results in memory are stored to an area of this function's frame.
    let area = info.ret_area.map(|place| {
        let area = area.unwrap_or_else(|| result_area(ctx, info));
        let pointer = ctx.new_vreg(RegClass::Int);
        let addr = AMode::Local { area, offset: 0 };
        ctx.emit(MInst::Address {
            dst: Reg::Virtual(pointer),
            addr,
        });
        pass(ctx, pointer, place, &mut uses);
        area
    });
    ctx.vcode.outgoing_args = ctx.vcode.outgoing_args.max(info.stack_args);
    Some((uses, area))
}

fn emit_call(ctx: &mut Lower<'_>, sig: SigRef, dest: CallDest, args: &[Value]) -> Option<InstOutput> {
    let info = places(ctx, sig)?;
    let (uses, area) = pass_arguments(ctx, sig, &info, args, None)?;
    let mut defs = CallRegs::new();
    let mut loads = Vec::new();
    let mut output = InstOutput::new();
    for (places, param) in info.rets.iter().zip(&ctx.func.dfg.signatures[sig].returns.clone()) {
        let mut regs: SmallVec<[VReg; 4]> = smallvec::SmallVec::new();
        let (class, _) = ctx.known(registers_of(param.value_type), "a result of a type that has registers")?;
        for &place in places {
            let reg = ctx.new_vreg(class);
            regs.push(reg);
            match place {
                Place::Reg(at) => defs.push((Reg::Virtual(reg), at)),
                Place::Memory(at) => loads.push(MInst::Load {
                    op: load_op(class),
                    dst: Reg::Virtual(reg),
                    addr: AMode::Local {
                        area: ctx.known(area, "an area for results in memory")?,
                        offset: offset(at),
                    },
                }),
            }
        }
        output.push(ctx.known(ValueRegs::from_slice(&regs), "one to four registers for a result")?);
    }
    push_call(ctx, dest, uses, defs, info.registers, info.popped);
    for load in loads {
        ctx.emit(load);
    }
    Some(output)
}

fn pass(ctx: &mut Lower<'_>, reg: VReg, place: Place, uses: &mut CallRegs) {
    match place {
        Place::Reg(at) => uses.push((Reg::Virtual(reg), at)),
        Place::Memory(at) => ctx.emit(MInst::Store {
            op: store_op(reg.class()),
            src: Reg::Virtual(reg),
            addr: AMode::Outgoing { offset: offset(at) },
        }),
    }
}

pub(super) fn push_call(
    ctx: &mut Lower<'_>,
    dest: CallDest,
    uses: CallRegs,
    defs: CallRegs,
    registers: RegisterSet,
    popped: u32,
) {
    let mut clobbers: PRegSet = clobbered(registers);
    for (_, at) in &defs {
        clobbers.remove(to_preg(*at));
    }
    ctx.vcode.has_calls = true;
    ctx.emit(MInst::Call(Box::new(CallInfo {
        dest,
        uses,
        defs,
        clobbers,
        popped,
    })));
}

fn in_reg(places: &Places) -> Option<npu_mc::Reg> {
    match places.first() {
        Some(&Place::Reg(reg)) => Some(reg),
        _ => None,
    }
}

/// Calls a routine that applies the scalar routine at `address` to every lane. Returns its result.
pub fn lane_routine(ctx: &mut Lower<'_>, routine: LaneRoutine, address: Reg, args: &[Reg]) -> Reg {
    let result = Reg::Virtual(ctx.new_vreg(RegClass::Vector));
    let Some(info) = routine.signature() else {
        ctx.set_internal(routine.name(), "a routine that the calling convention supports");
        return result;
    };
    let at = info.args.iter().filter_map(in_reg);
    let uses = std::iter::once(address).chain(args.iter().copied()).zip(at).collect();
    let defs = info.rets.iter().filter_map(in_reg).map(|at| (result, at)).collect();
    let dest = CallDest::Near(RelocTarget::Runtime(routine.name()));
    push_call(ctx, dest, uses, defs, RegisterSet::PreserveAll, 0);
    result
}

/// Calls a routine of the runtime and returns its results. [`Routine::words`] returns the lengths
/// of both lists.
pub fn routine(ctx: &mut Lower<'_>, routine: Routine, args: &[Reg]) -> SmallVec<[Reg; 4]> {
    let (given, made) = routine.words();
    let results: SmallVec<[Reg; 4]> = (0..made).map(|_| Reg::Virtual(ctx.new_vreg(RegClass::Int))).collect();
    let Some(info) = routine.signature() else {
        ctx.set_internal(routine.name(), "a routine that the calling convention supports");
        return results;
    };
    let from: SmallVec<[npu_mc::Reg; 8]> = info.rets.iter().filter_map(in_reg).collect();
    if (info.args.len(), from.len()) != (given, made) || args.len() != given {
        ctx.set_internal(routine.name(), "a location for every word of the routine");
        return results;
    }
    let mut uses = CallRegs::new();
    for (&src, place) in args.iter().zip(info.args.iter().flatten()) {
        match *place {
            Place::Reg(at) => uses.push((src, at)),
            Place::Memory(at) => ctx.emit(MInst::Store {
                op: store_op(RegClass::Int),
                src,
                addr: AMode::Outgoing { offset: offset(at) },
            }),
        }
    }
    ctx.vcode.outgoing_args = ctx.vcode.outgoing_args.max(info.stack_args);
    push_call(
        ctx,
        CallDest::Near(RelocTarget::Runtime(routine.name())),
        uses,
        results.iter().copied().zip(from).collect(),
        RegisterSet::PreserveAll,
        0,
    );
    results
}
