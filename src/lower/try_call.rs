//! Lowers calls with exception handlers: `try_call`, `try_call_indirect` and
//! `get_exception_handler_address`.
//!
//! Such a call terminates its block, and each outgoing edge has a block. The call defines the
//! results and the payload of an exception, and the blocks on the edges pass them on. An exception
//! arrives like a call of its handler: the payload is in the registers of the first arguments, and
//! the stack pointer of the frame is in the next argument register. No other register survives, so
//! a throw restores none.

use super::call::{self, destination, pass_arguments, places, push_call};
use super::context::{InstOutput, Lower, ValueRegs};
use super::order::Successor;
use crate::abi::registers::{clobbered_by_exceptions, pinned};
use crate::abi::sig::{Place, Places, SigInfo, argument_registers};
use crate::inst::ops::{load_op, store_op};
use crate::inst::reg::{Reg, to_preg};
use crate::inst::{AMode, CallDest, CallInfo, CallRegs, Handler, MInst, TryCallInfo};
use crate::shape::registers_of;
use cranelift_codegen::ir::{
    Block, BlockArg, BlockCall, ExceptionTable, ExceptionTableItem, Inst, InstructionData, Value, types,
};
use npu_mc::machine::{VECTOR_SLOT, WORD_SLOT as WORD};
use regalloc2::{RegClass, VReg};
use smallvec::{SmallVec, smallvec};
use std::rc::Rc;

/// The registers and edges of a call with handlers. They are assigned before the call is lowered,
/// because the blocks after it are lowered first.
#[derive(Debug)]
pub(super) struct TryCall {
    /// The ABI locations of arguments and results.
    sig: Rc<SigInfo>,
    /// The registers of each result.
    results: Vec<ValueRegs>,
    /// The registers of an exception's payload.
    payloads: SmallVec<[VReg; 2]>,
    /// The area for results in memory.
    area: Option<u32>,
    /// The blocks on the edges, handlers first, as indices in the order.
    edges: SmallVec<[usize; 4]>,
}

impl Lower<'_> {
    /// Assigns registers to the results of a call with handlers and to an exception's payload.
    pub(super) fn prepare_try_call(&mut self, block: Block, inst: Inst, table: ExceptionTable, succs: &[Successor]) {
        let sig = self.func.dfg.exception_tables[table].signature();
        let Some(info) = places(self, sig) else { return };
        let signature = &self.func.dfg.signatures[sig];
        let mut results = Vec::with_capacity(signature.returns.len());
        for param in &signature.returns {
            let Some((class, len)) = registers_of(param.value_type) else {
                self.set_internal(inst, "a result of a type that has registers");
                return;
            };
            let regs: SmallVec<[VReg; 4]> = (0..len).map(|_| self.new_vreg(class)).collect();
            results.extend(ValueRegs::from_slice(&regs));
        }
        let payloads = signature.call_conv.exception_payload_types(types::I32);
        let payloads = payloads.iter().map(|_| self.new_vreg(RegClass::Int)).collect();
        let area = info.ret_area.map(|_| call::result_area(self, &info));
        let edges = succs.iter().map(|succ| succ.index).collect();
        let call = Rc::new(TryCall {
            sig: info,
            results,
            payloads,
            area,
            edges,
        });
        self.try_calls.insert(block, call);
    }

    /// Returns the registers of the arguments that an edge of a call with handlers passes. Loads
    /// results in memory.
    pub(super) fn try_call_args(&mut self, from: Block, call: &BlockCall) -> crate::vcode::VRegs {
        let func = self.func;
        let mut regs = crate::vcode::VRegs::new();
        let mut loaded: SmallVec<[u32; 4]> = SmallVec::new();
        let params = func.dfg.block_params(call.block(&func.dfg.value_lists));
        for (arg, &param) in call.args(&func.dfg.value_lists).zip(params) {
            let made = self.try_calls.get(&from).cloned();
            match (arg, made) {
                (BlockArg::Value(value), _) => regs.extend_from_slice(self.put_in_regs(value).as_slice()),
                (BlockArg::TryCallRet(number), Some(made)) => {
                    let result = made
                        .results
                        .get(number as usize)
                        .zip(made.sig.rets.get(number as usize));
                    let Some((result, places)) = self.known(result, "a result of the call") else {
                        return regs;
                    };
                    regs.extend_from_slice(result.as_slice());
                    if !loaded.contains(&number) {
                        loaded.push(number);
                        self.load_result(*result, places, made.area);
                    }
                }
                (BlockArg::TryCallExn(number), Some(made)) => {
                    let payload = made.payloads.get(number as usize).copied();
                    regs.extend(self.known(payload, "the payload of the exception"));
                    if func.dfg.value_type(param) == types::I64 {
                        regs.push(self.constant(0));
                    }
                }
                (_, None) => self.set_internal(format_args!("{arg:?}"), "a call with handlers before the edge"),
            }
        }
        regs
    }

    fn load_result(&mut self, result: ValueRegs, places: &Places, area: Option<u32>) {
        for (&reg, place) in result.as_slice().iter().zip(places) {
            if let (Place::Memory(at), Some(area)) = (place, area) {
                self.emit(MInst::Load {
                    op: load_op(reg.class()),
                    dst: Reg::Virtual(reg),
                    addr: AMode::Local {
                        area,
                        offset: call::offset(*at),
                    },
                });
            }
        }
    }
}

/// Lowers an instruction that involves handlers; returns `None` for other instructions.
pub(super) fn lower(ctx: &mut Lower<'_>, inst: Inst) -> Option<Option<InstOutput>> {
    let func = ctx.func;
    let lists = &func.dfg.value_lists;
    Some(match &func.dfg.insts[inst] {
        InstructionData::TryCall {
            func_ref,
            args,
            exception,
            ..
        } => {
            let dest = destination(ctx, *func_ref);
            lower_call(ctx, inst, *exception, dest, args.as_slice(lists))
        }
        InstructionData::TryCallIndirect { args, exception, .. } => {
            let (&callee, args) = args.as_slice(lists).split_first()?;
            let callee = *ctx.put_in_regs(callee).as_slice().first()?;
            lower_call(ctx, inst, *exception, CallDest::Reg(Reg::Virtual(callee)), args)
        }
        InstructionData::ExceptionHandlerAddress { block, imm, .. } => {
            let number = usize::try_from(imm.bits()).ok();
            let address = Reg::Virtual(ctx.new_vreg(RegClass::Int));
            let edge = number.and_then(|number| ctx.try_calls.get(block)?.edges.get(number).copied());
            match edge {
                Some(edge) => ctx.emit(MInst::BlockAddress {
                    dst: address,
                    block: edge,
                }),
                // The call is unreachable, so the address of its handler is dead.
                None => ctx.emit(MInst::Const { dst: address, value: 0 }),
            }
            let mut words: SmallVec<[Reg; 2]> = smallvec![address];
            let result = *func.dfg.inst_results(inst).first()?;
            if func.dfg.value_type(result) == types::I64 {
                words.push(Reg::Virtual(ctx.constant(0)));
            }
            Some(smallvec![ctx.result_regs(words)])
        }
        _ => return None,
    })
}

/// Stores a context to an area of the frame, where the search for a handler finds it.
fn keep_context(ctx: &mut Lower<'_>, value: Value) -> Option<u32> {
    let regs = ctx.put_in_regs(value);
    let slot = match regs.as_slice().first()?.class() {
        RegClass::Vector => VECTOR_SLOT,
        RegClass::Int | RegClass::Float => WORD,
    };
    let size = slot * regs.as_slice().len() as u32;
    let area = ctx.new_local(size, size.min(VECTOR_SLOT));
    let mut offset = 0;
    for &reg in regs.as_slice() {
        ctx.emit(MInst::Store {
            op: store_op(reg.class()),
            src: Reg::Virtual(reg),
            addr: AMode::Local { area, offset },
        });
        offset += slot.cast_signed();
    }
    Some(area)
}

fn lower_call(
    ctx: &mut Lower<'_>,
    inst: Inst,
    table: ExceptionTable,
    dest: CallDest,
    args: &[Value],
) -> Option<InstOutput> {
    let func = ctx.func;
    let made = func
        .layout
        .inst_block(inst)
        .and_then(|block| ctx.try_calls.get(&block).cloned());
    let made = ctx.known(made, "a call with handlers that has registers")?;
    let table = &func.dfg.exception_tables[table];
    let info = &made.sig;
    let (uses, _) = pass_arguments(ctx, table.signature(), info, args, made.area)?;
    let mut defs = CallRegs::new();
    for (regs, places) in made.results.iter().zip(&info.rets) {
        for (&reg, &place) in regs.as_slice().iter().zip(places) {
            if let Place::Reg(at) = place {
                defs.push((Reg::Virtual(reg), at));
            }
        }
    }
    let mut handlers: SmallVec<[Handler; 2]> = SmallVec::new();
    let mut context = None;
    for item in table.items() {
        let tag = match item {
            ExceptionTableItem::Tag(tag, _) => Some(tag),
            ExceptionTableItem::Default(_) => None,
            ExceptionTableItem::Context(value) => {
                context = Some(keep_context(ctx, value)?);
                continue;
            }
        };
        let succ = handlers.len();
        handlers.push(Handler { tag, succ, context });
    }
    if handlers.is_empty() {
        push_call(ctx, dest, uses, defs, info.registers, info.popped);
        ctx.emit(MInst::Jump);
        return Some(InstOutput::new());
    }
    for (&payload, &at) in made.payloads.iter().zip(argument_registers()) {
        // A result may have the same register as the payload; only one of the two exists on each
        // edge.
        match defs.iter().find(|(_, other)| *other == at) {
            Some(&(Reg::Virtual(result), _)) => ctx.aliases[payload.vreg()] = ctx.resolve(result),
            _ => defs.push((Reg::Virtual(payload), at)),
        }
    }
    let mut clobbers = clobbered_by_exceptions(pinned(ctx.isa.flags()));
    for (_, at) in &defs {
        clobbers.remove(to_preg(*at));
    }
    ctx.vcode.has_calls = true;
    ctx.vcode.has_handlers = true;
    ctx.emit(MInst::TryCall(Box::new(TryCallInfo {
        call: CallInfo {
            dest,
            uses,
            defs,
            clobbers,
            popped: info.popped,
        },
        handlers,
    })));
    Some(InstOutput::new())
}
