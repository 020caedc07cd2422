//! The layout of the stack frame after register allocation (`docs/abi.md`).
//!
//! From high to low addresses:
//!
//! ```text
//!   stack arguments of this function       (in the caller's frame)
//!   ---------------------------------------- sp at entry, 64-byte aligned
//!   room for stack arguments of tail calls that exceed those of the function itself
//!   saved registers, in the order of NaplesPUCSR
//!   stack slots, large ones above small ones
//!   areas for results that calls return in memory
//!   spill slots
//!   outgoing stack arguments
//!   ---------------------------------------- sp in the body, 64-byte aligned
//! ```
//!
//! A leaf function that stores nothing in the frame has none.

use crate::abi::registers::{RegisterSet, clobbered, spill_unit};
use crate::abi::slots::slot_alignment;
use crate::code::FrameLayout;
use crate::error::CompileError;
use crate::inst::MInst;
use crate::inst::reg::{from_preg, machine, to_preg};
use crate::vcode::VCode;
use cranelift_codegen::ir::Function;
use npu_mc::Reg;
use npu_mc::machine::STACK_ALIGN;
use regalloc2::{Edit, Output, PReg, PRegSet};

/// The maximum size of a frame: offsets and addresses are signed 32-bit numbers.
const MAX_FRAME: u64 = 1 << 30;

/// A frame with details for the expansion.
#[derive(Clone, Debug, Default)]
pub struct Frame {
    /// The public layout.
    pub layout: FrameLayout,
    /// Offset of each area that lowering reserved.
    pub locals: Vec<u32>,
    /// The size of the top of the frame including the saved registers, which the first adjustment
    /// of `sp` allocates.
    pub save_area: u32,
}

/// Computes the layout of the function's frame.
///
/// # Errors
///
/// [`CompileError::TooLarge`] if the frame has more than 2^30 bytes.
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
        // Room for rounding the address up at run time.
        at += size + align.saturating_sub(STACK_ALIGN.into());
        start
    };
    let locals: Vec<u64> = vcode
        .locals
        .iter()
        .map(|&(size, align)| place(size.into(), align.into()))
        .collect();
    // Small slots come first, so that most are in reach of an instruction's offset.
    let mut slots: Vec<_> = func.sized_stack_slots.iter().collect();
    slots.sort_by_key(|(key, data)| (data.size, key.as_u32()));
    let mut stack_slots = vec![0u64; slots.len()];
    for (key, data) in slots {
        stack_slots[key.as_u32() as usize] = place(data.size.into(), slot_alignment(data).into());
    }
    let body = at;

    let saved = saved_registers(vcode, output, registers, frame_pointer);
    // The stack arguments of a tail call end at the same address as those of the function.
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
    // Nothing in the frame is larger than the frame.
    let narrow = |n: u64| (n & u64::from(u32::MAX)) as u32;
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

/// Returns the callee-saved registers that the function changes, in save order.
fn saved_registers(vcode: &VCode, output: &Output, registers: RegisterSet, frame_pointer: bool) -> Vec<Reg> {
    // A byte per register is faster than a bit for that many operands.
    let mut assigned = [false; PReg::NUM_INDEX];
    for reg in output.allocs.iter().filter_map(|allocation| allocation.as_reg()) {
        assigned[reg.index()] = true;
    }
    for (_, Edit::Move { to, .. }) in &output.edits {
        if let Some(reg) = to.as_reg() {
            assigned[reg.index()] = true;
        }
    }
    let mut touched = PRegSet::empty();
    if vcode.has_calls {
        for inst in &vcode.insts {
            match inst {
                MInst::Call(info) => touched.union_from(info.clobbers),
                MInst::TryCall(info) => touched.union_from(info.call.clobbers),
                _ => {}
            }
        }
        touched.add(to_preg(machine::RA));
    }
    // A frame left by an exception does not restore the frame pointer.
    if frame_pointer || vcode.has_handlers {
        touched.add(to_preg(machine::FP));
    }
    let mut list: Vec<Reg> = Vec::new();
    if registers == RegisterSet::PreserveAll {
        // Registers on whose values callers of this function rely, although other conventions may
        // change them.
        let all = assigned.iter().enumerate().filter(|(_, assigned)| **assigned);
        let mut extra: PRegSet = all.map(|(index, _)| PReg::from_index(index)).collect();
        extra.union_from(touched);
        for reg in clobbered(RegisterSet::PreserveAll) {
            extra.remove(reg);
        }
        for &reg in npu_mc::cc::CALLEE_SAVED {
            extra.remove(to_preg(reg));
        }
        for reg in vcode.insts.iter().flat_map(results) {
            extra.remove(to_preg(reg));
        }
        list.extend(extra.into_iter().filter_map(from_preg));
        list.sort();
    }
    let saved = npu_mc::cc::CALLEE_SAVED.iter().copied();
    list.extend(saved.filter(|&reg| {
        let reg = to_preg(reg);
        assigned[reg.index()] || touched.contains(reg)
    }));
    list
}

/// Returns the registers in which a return instruction returns values.
fn results(inst: &MInst) -> impl Iterator<Item = Reg> {
    let uses = match inst {
        MInst::Return { uses } => uses.as_slice(),
        _ => &[],
    };
    uses.iter().map(|&(_, at)| at)
}
