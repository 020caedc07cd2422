//! Branch relaxation: replaces branches that do not reach their targets.
//!
//! A branch reaches 128 KiB in either direction. A branch with a farther target becomes a sequence
//! that adds the distance to its own address. The sequence is longer than the branch and may push
//! other branches out of reach, so the pass repeats until nothing changes. It terminates because
//! branches only grow.
//!
//! A near call has the same reach. Only the linker knows the distance to the callee; if the callee
//! is too far, the linker inserts a veneer next to the function. In a long function the veneer may
//! be out of reach as well, so calls there use the full address of the callee.

use super::expand::HALVES;
use super::func::{CallKind, Fixup, FrameStep, Label, MachFunction, McInst};
use crate::error::CompileError;
use crate::inst::ops::fits;
use crate::inst::reg::machine;
use crate::provenance::Producer;
use npu_mc::machine::INSTRUCTION_SIZE;
use npu_mc::reloc::Reloc as RelocKind;
use npu_mc::{Inst, Opcode, Operand, OperandKind};
use rustc_hash::{FxHashMap, FxHashSet};

/// Bytes of one instruction.
const WORD: u32 = INSTRUCTION_SIZE;

/// The number of instructions above which the calls of a function are far: half the reach of a
/// call, so that there is room for veneers on either side.
const LONG: usize = 1 << 14;

fn reaches(from: usize, to: usize) -> bool {
    let distance = (to as i64 - from as i64) * i64::from(WORD);
    i32::try_from(distance).is_ok_and(|distance| fits(OperandKind::Brtarget18, distance))
}

/// Replaces branches that do not reach their targets, and near calls of a long function.
///
/// `links_by_hand` means that an indirect call does not write the correct return address
/// ([`Erratum::IndirectCallLink`](npu_mc::errata::Erratum::IndirectCallLink)).
///
/// # Errors
///
/// [`CompileError::TooLarge`] for a branch table that cannot reach its own veneers.
pub fn run(func: &mut MachFunction, links_by_hand: bool) -> Result<(), CompileError> {
    if func.insts().len() > LONG {
        far_calls(func, links_by_hand);
    }
    let mut veneers: FxHashSet<Label> = FxHashSet::default();
    // The length of the function alone decides for all but huge functions.
    while !reaches(0, func.insts().len()) {
        let mut far = vec![false; func.insts().len()];
        for (index, inst) in func.insts().iter().enumerate() {
            let (Fixup::Branch(target) | Fixup::TableEntry { target, .. }) = inst.fixup else {
                continue;
            };
            far[index] = !reaches(index, func.position(target)?);
            if far[index] && veneers.contains(&target) {
                return Err(CompileError::TooLarge(
                    "a branch table is too long for its entries to reach the code after it".to_owned(),
                ));
            }
        }
        if !far.contains(&true) {
            break;
        }
        replace(func, &far, &mut veneers)?;
    }
    Ok(())
}

/// Replaces near calls by calls of the full address.
fn far_calls(func: &mut MachFunction, links_by_hand: bool) {
    let scratch = Operand::from(machine::SCRATCH);
    func.rebuild(|func, _, call| {
        let target = match &call.fixup {
            Fixup::Reloc {
                kind: RelocKind::Branch,
                target,
                addend,
            } if call.call != CallKind::None => (target.clone(), *addend),
            _ => return func.push(call),
        };
        let plain = |inst| McInst {
            frame: call.frame,
            ..McInst::plain(inst, call.origin.with_producer(Producer::Relax))
        };
        for (op, kind) in HALVES {
            func.push(McInst {
                fixup: Fixup::Reloc {
                    kind,
                    target: target.0.clone(),
                    addend: target.1,
                },
                ..plain(Inst::new(op, [scratch, Operand::Imm(0)]))
            });
        }
        let jump = if call.call == CallKind::TailCall {
            Opcode::JUMPREG
        } else if links_by_hand {
            let distance = (2 * WORD).cast_signed();
            func.push(McInst {
                glued: true,
                ..plain(Inst::new(
                    Opcode::ADDSSI,
                    [machine::RA.into(), machine::PC.into(), distance.into()],
                ))
            });
            Opcode::JUMPREG
        } else {
            Opcode::JMPSR_REG
        };
        func.push(McInst {
            call: call.call,
            trap: call.trap,
            glued: call.glued,
            ..plain(Inst::new(jump, [scratch]))
        });
    });
}

fn replace(func: &mut MachFunction, far: &[bool], veneers: &mut FxHashSet<Label>) -> Result<(), CompileError> {
    // An entry of a branch table stays a single instruction. It jumps to a veneer after the table,
    // one for each target.
    let mut entries: FxHashMap<usize, Label> = FxHashMap::default();
    let mut islands: FxHashMap<usize, Vec<(Label, Label)>> = FxHashMap::default();
    let mut known: FxHashMap<(usize, Label), Label> = FxHashMap::default();
    for (index, _) in far.iter().enumerate().filter(|(_, far)| **far) {
        if let Fixup::TableEntry { target, end } = func.insts()[index].fixup {
            let table_end = func.position(end)?;
            let veneer = *known.entry((table_end, target)).or_insert_with(|| {
                let veneer = func.new_label();
                veneers.insert(veneer);
                islands.entry(table_end).or_default().push((veneer, target));
                veneer
            });
            entries.insert(index, veneer);
        }
    }
    // A conditional branch that does not reach becomes its inverse, which skips the sequence.
    let conditional = |inst: &McInst| matches!(inst.fixup, Fixup::Branch(_)) && invert(inst.inst.opcode).is_some();
    let count = func
        .insts()
        .iter()
        .zip(far)
        .filter(|(inst, far)| **far && conditional(inst))
        .count();
    let skips: Vec<Label> = (0..count).map(|_| func.new_label()).collect();
    let mut skips = skips.into_iter();
    func.rebuild(|func, index, mut inst| {
        let like = inst.clone();
        match inst.fixup {
            Fixup::Branch(target) if far[index] => {
                if let Some(inverse) = invert(inst.inst.opcode)
                    && let Some(skip) = skips.next()
                {
                    inst.inst.opcode = inverse;
                    inst.fixup = Fixup::Branch(skip);
                    inst.trap = None;
                    func.push(inst);
                    push_far_jump(func, target, &like);
                    func.bind(skip);
                } else {
                    push_far_jump(func, target, &like);
                }
            }
            Fixup::TableEntry { ref mut target, .. } => {
                if let Some(&veneer) = entries.get(&index) {
                    *target = veneer;
                }
                func.push(inst);
            }
            _ => func.push(inst),
        }
        // Veneers follow the last entry of a table, so labels at its end stay after them.
        for &(veneer, target) in islands.get(&(index + 1)).into_iter().flatten() {
            func.bind(veneer);
            push_far_jump(func, target, &like);
        }
    });
    Ok(())
}

/// Returns the inverse of a conditional branch. Returns `None` for an unconditional one.
pub(super) fn invert(op: Opcode) -> Option<Opcode> {
    match op {
        Opcode::BEQZ => Some(Opcode::BNEZ),
        Opcode::BNEZ => Some(Opcode::BEQZ),
        _ => None,
    }
}

/// Appends a jump to any position in the function. It adds the distance to the address of the
/// adding instruction.
fn push_far_jump(func: &mut MachFunction, target: Label, like: &McInst) {
    let scratch = Operand::from(machine::SCRATCH);
    let mut push = |inst, fixup, trap| {
        func.push(McInst {
            inst,
            fixup,
            origin: like.origin.with_producer(Producer::Relax),
            trap,
            glued: false,
            call: CallKind::None,
            frame: FrameStep::None,
        });
    };
    let high = Fixup::FarHigh {
        target,
        after: 2 * WORD,
    };
    push(Inst::new(Opcode::MOVEIHSI, [scratch, Operand::Imm(0)]), high, None);
    let low = Fixup::FarLow { target, after: WORD };
    push(Inst::new(Opcode::MOVEILSI, [scratch, Operand::Imm(0)]), low, None);
    let sum = Inst::new(Opcode::ADDSSS_32, [scratch, machine::PC.into(), scratch]);
    push(sum, Fixup::None, None);
    push(Inst::new(Opcode::JUMPREG, [scratch]), Fixup::None, like.trap);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::encode::encode;
    use crate::frame::Frame;
    use crate::vcode::Origin;
    use cranelift_codegen::ir::Function;

    fn plain(opcode: Opcode, operands: &[Operand]) -> McInst {
        let operands = npu_mc::Operands::from_slice(operands).unwrap();
        McInst::plain(Inst { opcode, operands }, Origin::default())
    }

    /// Creates a function of `count` instructions with a branch from instruction `from` to
    /// instruction `to`.
    fn branching(opcode: Opcode, from: usize, to: usize, count: usize) -> MachFunction {
        let mut func = MachFunction::default();
        let target = func.new_label();
        for index in 0..count {
            if index == to {
                func.bind(target);
            }
            func.push(match (index == from, opcode) {
                (false, _) => plain(Opcode::NOP, &[]),
                (true, Opcode::JMP) => plain(opcode, &[Operand::Imm(0)]),
                (true, _) => plain(opcode, &[Operand::S(npu_mc::SReg::S0), Operand::Imm(0)]),
            });
            if index == from
                && let Some(last) = func.last_mut()
            {
                last.fixup = Fixup::Branch(target);
            }
        }
        func
    }

    fn bytes(func: &MachFunction) -> Vec<u8> {
        encode(func, &Frame::default(), &Function::new()).unwrap().bytes
    }

    fn decoded(bytes: &[u8], offset: usize) -> Inst {
        let word = bytes[offset..].first_chunk().map(|word| u32::from_le_bytes(*word));
        npu_mc::decode(word.unwrap()).unwrap()
    }

    /// Returns the offset at which control continues after the branch at `offset`: the target of
    /// the jump if it is taken, otherwise the end of the sequence that replaces the branch.
    fn goes_to(bytes: &[u8], mut offset: usize, s0_is_zero: bool) -> i64 {
        let mut scratch = 0u32;
        for _ in 0..6 {
            let inst = decoded(bytes, offset);
            let imm = inst.operands.as_ref().last().and_then(|operand| operand.imm());
            let near = |imm: Option<i32>| offset as i64 + i64::from(imm.unwrap());
            match inst.opcode {
                Opcode::JMP => return near(imm),
                Opcode::BEQZ if s0_is_zero => return near(imm),
                Opcode::BNEZ if !s0_is_zero => return near(imm),
                Opcode::MOVEIHSI => scratch = scratch & 0xffff | imm.unwrap().cast_unsigned() << 16,
                Opcode::MOVEILSI => scratch = scratch & 0xffff_0000 | imm.unwrap().cast_unsigned() & 0xffff,
                Opcode::ADDSSS_32 => scratch = scratch.wrapping_add(offset as u32),
                Opcode::JUMPREG => return i64::from(scratch),
                Opcode::BEQZ | Opcode::BNEZ => {}
                _ => return offset as i64,
            }
            offset += WORD as usize;
        }
        panic!("no end of the branch at {offset:#x}");
    }

    /// Returns distances in instructions around both ends of the reach, and where a half of the
    /// distance changes its sign or carries.
    fn distances() -> Vec<i64> {
        let (least, most) = RelocKind::Branch.range();
        let mut found = Vec::new();
        for limit in [
            least / 4,
            most / 4,
            0x1_8000 / 4,
            -0x1_8000 / 4,
            0x2_8000 / 4,
            -0x3_0000 / 4,
        ] {
            found.extend((-6..=6).map(|near| limit + near));
        }
        found
    }

    #[test]
    fn branches_of_every_distance_arrive() {
        let mut grown = 0;
        for distance in distances() {
            // Start after 0, so that a wrong offset is not correct by chance.
            let (from, count) = (
                distance.unsigned_abs() as usize + 3,
                2 * distance.unsigned_abs() as usize + 9,
            );
            let to = (from as i64 + distance) as usize;
            for opcode in [Opcode::JMP, Opcode::BEQZ, Opcode::BNEZ] {
                let mut func = branching(opcode, from, to, count);
                run(&mut func, false).unwrap();
                let bytes = bytes(&func);
                let at = from * WORD as usize;
                let added = bytes.len() - count * WORD as usize;
                let reaches =
                    RelocKind::Branch.range().0 <= 4 * distance && 4 * distance <= RelocKind::Branch.range().1;
                assert_eq!(added == 0, reaches, "{opcode:?} by {distance} grows by {added}");
                grown += usize::from(added > 0);
                // The code after the branch has moved.
                let target = (to * WORD as usize + if distance > 0 { added } else { 0 }) as i64;
                let after = (at + WORD as usize + added) as i64;
                for zero in [false, true] {
                    let taken = match opcode {
                        Opcode::BEQZ => zero,
                        Opcode::BNEZ => !zero,
                        _ => true,
                    };
                    let expected = if taken { target } else { after };
                    let found = goes_to(&bytes, at, zero);
                    assert_eq!(found, expected, "{opcode:?} by {distance}, s0 is zero: {zero}");
                }
            }
        }
        assert!(grown > 100);
    }

    /// The branch to a trap marks the position of the trap, wherever the trap sequence is.
    #[test]
    fn the_branch_of_a_trap_is_where_it_leads_to_the_trap() {
        let code = cranelift_codegen::ir::TrapCode::HEAP_OUT_OF_BOUNDS;
        for (count, opcode) in [(100, Opcode::BNEZ), (70_000, Opcode::BNEZ), (70_000, Opcode::BEQZ)] {
            let mut func = branching(opcode, 2, count - 2, count);
            func.insts[2].trap = Some(code);
            run(&mut func, false).unwrap();
            let traps: Vec<usize> = (0..func.insts().len())
                .filter(|&index| func.insts()[index].trap == Some(code))
                .collect();
            let &[index] = traps.as_slice() else {
                panic!("{traps:?}");
            };
            let expected = if count > 1000 { Opcode::JUMPREG } else { opcode };
            assert_eq!(func.insts()[index].inst.opcode, expected);
        }
    }

    /// Calls of a long function use the full address of the callee. The link, the trap and the kind
    /// of the call are preserved.
    #[test]
    fn calls_of_a_long_function_take_the_whole_address() {
        for (count, long) in [(LONG - 8, false), (LONG, false), (LONG + 1, true), (LONG + 8, true)] {
            for by_hand in [false, true] {
                let mut func = MachFunction::default();
                for index in 0..count {
                    let is_call = index == 5;
                    func.push(match is_call {
                        true => plain(Opcode::JMPSR_OFF, &[Operand::Imm(0)]),
                        false => plain(Opcode::NOP, &[]),
                    });
                    if is_call && let Some(last) = func.last_mut() {
                        last.call = CallKind::Call;
                        last.trap = Some(cranelift_codegen::ir::TrapCode::STACK_OVERFLOW);
                        last.fixup = Fixup::Reloc {
                            kind: RelocKind::Branch,
                            target: crate::code::RelocTarget::Function,
                            addend: 12,
                        };
                    }
                }
                run(&mut func, by_hand).unwrap();
                let code = encode(&func, &Frame::default(), &Function::new()).unwrap();
                let kinds: Vec<_> = code
                    .relocs
                    .iter()
                    .map(|reloc| (reloc.kind, reloc.addend, reloc.offset))
                    .collect();
                if !long {
                    assert_eq!(kinds, [(RelocKind::Branch, 12, 20)]);
                    continue;
                }
                assert_eq!(kinds, [(RelocKind::AbsHighLea, 12, 20), (RelocKind::AbsLowLea, 12, 24)]);
                let jump = if by_hand { 32 } else { 28 };
                let inst = decoded(&code.bytes, jump);
                let expected = if by_hand { Opcode::JUMPREG } else { Opcode::JMPSR_REG };
                assert_eq!(inst.opcode, expected);
                if by_hand {
                    // ra := pc + the distance to the instruction after the jump
                    let link = decoded(&code.bytes, 28);
                    assert_eq!(link.opcode, Opcode::ADDSSI);
                    assert_eq!(
                        link.operands.as_ref().last(),
                        Some(&Operand::Imm((jump + 4 - 28) as i32))
                    );
                }
                assert_eq!(code.traps.len(), 1);
                assert_eq!(code.traps[0].offset as usize, jump);
                assert_eq!(
                    func.insts().iter().filter(|inst| inst.call == CallKind::Call).count(),
                    1
                );
            }
        }
    }

    /// Entries of a branch table stay single instructions and reach their targets.
    #[test]
    fn entries_of_tables_arrive() {
        for (filler, entries) in [(10, 5), (32_700, 9), (32_760, 9), (40_000, 40)] {
            let mut func = MachFunction::default();
            func.push(plain(Opcode::NOP, &[]));
            func.push(plain(Opcode::JUMPREG, &[Operand::S(npu_mc::SReg::S0)]));
            let end = func.new_label();
            let targets = [func.new_label(), func.new_label(), func.new_label()];
            for entry in 0..entries {
                let target = targets[entry % targets.len()];
                func.push(plain(Opcode::JMP, &[Operand::Imm(0)]));
                if let Some(last) = func.last_mut() {
                    last.fixup = Fixup::TableEntry { target, end };
                }
            }
            func.bind(end);
            for _ in 0..filler {
                func.push(plain(Opcode::NOP, &[]));
            }
            for target in targets {
                func.bind(target);
                func.push(plain(Opcode::JRET, &[]));
            }
            run(&mut func, false).unwrap();
            let bytes = bytes(&func);
            for entry in 0..entries {
                let first = goes_to(&bytes, (2 + entry) * WORD as usize, false);
                let inst = decoded(&bytes, first as usize);
                let last = if inst.opcode == Opcode::JRET {
                    first
                } else {
                    goes_to(&bytes, first as usize, false)
                };
                let expected = func.position(targets[entry % targets.len()]).unwrap() * WORD as usize;
                assert_eq!(
                    last, expected as i64,
                    "entry {entry} of {entries}, {filler} instructions between"
                );
            }
            let after = func.position(end).unwrap();
            assert!(after >= 2 + entries, "the end of the table is behind its entries");
            assert_eq!(decoded(&bytes, after * WORD as usize).opcode, Opcode::NOP);
        }
    }
}
