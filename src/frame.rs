//! The stack frame: layout after register allocation, prologue and epilogue (`isa-abi.md` 5.4 and 5.5).
//!
//! From high to low addresses:
//!
//! ```text
//!   stack arguments of this function       (in the caller's frame)
//!   ---------------------------------------- sp at entry, 64-byte aligned
//!   room for stack arguments of tail calls, as far as they need more than the function was given
//!   saved registers, in the order of NaplesPUCSR
//!   stack slots, large ones above small ones
//!   areas for results of calls in memory
//!   spill slots
//!   arguments of calls that are passed in memory
//!   ---------------------------------------- sp in the body, 64-byte aligned
//! ```
//!
//! A leaf function that keeps nothing in memory has no frame at all.

use crate::abi::registers::{RegisterSet, clobbered, spill_unit};
use crate::abi::slots::slot_alignment;
use crate::code::FrameLayout;
use crate::error::CompileError;
use crate::inst::reg::from_preg;
use crate::vcode::VCode;
use cranelift_codegen::ir::Function;
use npu_mc::machine::STACK_ALIGN;
use npu_mc::{Reg, SReg};
use regalloc2::{Edit, Output};

/// The largest frame: offsets and addresses are signed 32-bit numbers.
const MAX_FRAME: u64 = 1 << 30;

/// A frame with what only the emitter needs to know.
#[derive(Clone, Debug, Default)]
pub struct Frame {
    /// The layout for everybody.
    pub layout: FrameLayout,
    /// Offset of each area that lowering reserved.
    pub locals: Vec<u32>,
    /// Size of the part of the frame down to the saved registers: what the first adjustment of `sp` allocates.
    pub save_area: u32,
}

/// Lays out the frame of the function.
///
/// # Errors
///
/// [`CompileError::TooLarge`] if it has more than 2^30 bytes.
pub fn layout(
    func: &Function,
    vcode: &VCode,
    output: &Output,
    registers: RegisterSet,
    frame_pointer: bool,
) -> Result<Frame, CompileError> {
    let mut at: u64 = u64::from(vcode.outgoing_args).next_multiple_of(STACK_ALIGN.into());
    let outgoing_args = at;

    let spills = at;
    at += output.num_spillslots as u64 * u64::from(spill_unit());
    let spill_size = at - spills;

    let mut place = |size: u64, align: u64| {
        at = at.next_multiple_of(align.clamp(1, STACK_ALIGN.into()));
        let start = at;
        // Room to round the address up at run time.
        at += size + align.saturating_sub(STACK_ALIGN.into());
        start
    };
    let locals: Vec<u64> = vcode
        .locals
        .iter()
        .map(|&(size, align)| place(size.into(), align.into()))
        .collect();
    // Small slots first, so that most are in reach of an instruction's offset.
    let mut slots: Vec<_> = func.sized_stack_slots.iter().collect();
    slots.sort_by_key(|(key, data)| (data.size, key.as_u32()));
    let mut stack_slots = vec![0u64; slots.len()];
    for (key, data) in slots {
        stack_slots[key.as_u32() as usize] = place(data.size.into(), slot_alignment(data));
    }
    let body = at;

    let saved = saved_registers(vcode, output, registers, frame_pointer);
    // Stack arguments of a tail call end where those of the function end.
    let own_args = vcode.incoming_args.next_multiple_of(STACK_ALIGN);
    let tail_args = u64::from(vcode.tail_args.saturating_sub(own_args));
    let mut save_area = tail_args;
    let mut below_top = Vec::with_capacity(saved.len());
    for reg in saved {
        let (size, align) = spill_shape(reg);
        save_area = (save_area + size).next_multiple_of(align);
        below_top.push((reg, save_area));
    }

    let size = (body.next_multiple_of(4) + save_area).next_multiple_of(STACK_ALIGN.into());
    if size > MAX_FRAME {
        return Err(CompileError::TooLarge(format!(
            "the stack frame has {size} bytes, at most {MAX_FRAME} are possible"
        )));
    }
    let narrow = |n: u64| u32::try_from(n).unwrap_or(u32::MAX);
    Ok(Frame {
        layout: FrameLayout {
            size: narrow(size),
            incoming_args: vcode.incoming_args,
            tail_args: narrow(tail_args),
            popped: vcode.popped,
            saved: below_top
                .into_iter()
                .map(|(reg, below)| (reg, narrow(size - below)))
                .collect(),
            spills: (narrow(spills), narrow(spill_size)),
            stack_slots: stack_slots.into_iter().map(narrow).collect(),
            outgoing_args: narrow(outgoing_args),
            frame_pointer,
        },
        locals: locals.into_iter().map(narrow).collect(),
        save_area: narrow(save_area.next_multiple_of(STACK_ALIGN.into())),
    })
}

fn spill_shape(reg: Reg) -> (u64, u64) {
    let info = match reg {
        Reg::S(_) => &npu_mc::env::GPR32,
        Reg::V(_) => &npu_mc::env::VR512W,
    };
    (info.spill_size.into(), info.spill_align.into())
}

/// The registers that the function changes and its callers count on, in save order.
fn saved_registers(vcode: &VCode, output: &Output, registers: RegisterSet, frame_pointer: bool) -> Vec<Reg> {
    let mut touched = std::collections::HashSet::new();
    touched.extend(output.allocs.iter().filter_map(|a| a.as_reg()).filter_map(from_preg));
    for (_, edit) in &output.edits {
        let Edit::Move { to, .. } = edit;
        touched.extend(to.as_reg().and_then(from_preg));
    }
    for inst in &vcode.insts {
        if let crate::inst::MInst::Call(info) = inst {
            touched.extend(info.clobbers.into_iter().filter_map(from_preg));
        }
    }
    if vcode.has_calls {
        touched.insert(Reg::S(SReg::RA));
    }
    if frame_pointer {
        touched.insert(Reg::S(SReg::FP));
    }
    let mut list: Vec<Reg> = Vec::new();
    let results: Vec<Reg> = vcode.insts.iter().flat_map(results).collect();
    if registers == RegisterSet::PreserveAll {
        let scratch = clobbered(RegisterSet::PreserveAll);
        let mut extra: Vec<Reg> = touched
            .iter()
            .copied()
            .filter(|r| !scratch.contains(crate::inst::reg::to_preg(*r)))
            .filter(|r| !npu_mc::cc::CALLEE_SAVED.contains(r) && !results.contains(r))
            .collect();
        extra.sort();
        list.extend(extra);
    }
    list.extend(npu_mc::cc::CALLEE_SAVED.iter().copied().filter(|r| touched.contains(r)));
    list
}

/// The registers that an instruction returns values in.
fn results(inst: &crate::inst::MInst) -> Vec<Reg> {
    match inst {
        crate::inst::MInst::Return { uses } => uses.iter().map(|&(_, at)| at).collect(),
        _ => Vec::new(),
    }
}
