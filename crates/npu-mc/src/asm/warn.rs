//! Warnings about code that meets an erratum of the hardware for all input data.
//!
//! Errata that depend on values (`ftoi` of 128 to 255, the order of float compares, the mask of an
//! access) are not reported; the simulator implements them.

use super::fault::Fault;
use super::object::{Line, Object};
use crate::errata::Erratum;
use crate::generated::Unit;
use crate::machine::LOST_RESULT;
use crate::{Format, Inst, Reg, SReg, VReg};

/// The number of consecutive float results that delay an integer result long enough for it to be
/// lost.
const BURST: usize = 4;

/// Returns a warning for each erratum that the program meets, in the order of the source.
///
/// An instruction counts as executed directly before the next one in its section if there is no
/// statement between them.
pub fn warnings(object: &Object) -> Vec<Fault> {
    let mut found = Vec::new();
    for (index, line) in object.lines.iter().enumerate() {
        let Some(inst) = &line.inst else { continue };
        let next = object.lines.get(index + 1).filter(|next| next.section == line.section);
        if let Some(fault) = alone(line, inst, next.and_then(|next| next.inst.as_ref())) {
            found.push(fault);
        }
        if inst.desc().flags.is_branch()
            && let Some(fault) = before_branch(&object.lines[..index], line, inst)
        {
            found.push(fault);
        }
    }
    found
}

fn fault(line: &Line, erratum: Erratum, label: &str) -> Fault {
    let info = erratum.info();
    Fault::new(line.span.clone(), info.summary, label).note(format!("erratum {}: {}", info.name, info.effect))
}

/// Returns the warning about an instruction that meets an erratum by itself.
fn alone(line: &Line, inst: &Inst, next: Option<&Inst>) -> Option<Fault> {
    let desc = inst.desc();
    let writes = |reg: Reg| inst.defs().any(|def| def == reg);
    let mask = Reg::S(SReg::RM);
    let is_concerned = |erratum: Erratum| erratum.info().instructions.contains(&inst.opcode);
    if is_concerned(Erratum::IndirectCallLink) {
        let target = inst.uses().next().map_or_else(String::new, |reg| reg.to_string());
        let label = "the return address is wrong";
        let works = format!("write `addi ra, pc, 8` and, directly after it, `jmp {target}`");
        return Some(fault(line, Erratum::IndirectCallLink, label).note(works));
    }
    if is_concerned(Erratum::HalfWriteToMask) && writes(mask) {
        let completed = next.is_some_and(|next| {
            matches!(next.desc().mnemonic, "moveil" | "leal") && next.defs().any(|def| def == mask)
        });
        let works = "write `movei rm, MASK`, or `moveil rm, MASK` directly after it";
        return (!completed).then(|| fault(line, Erratum::HalfWriteToMask, "the mask becomes 0").note(works));
    }
    if writes(Reg::V(VReg::of_field(59))) {
        return Some(fault(line, Erratum::VectorWriteTo59, "changes the lane mask").note("use another register"));
    }
    if desc.format == Format::Rr && writes(Reg::V(VReg::of_field(63))) {
        return Some(fault(line, Erratum::VectorResultIn63, "may jump").note("use another register"));
    }
    if is_concerned(Erratum::PackedVectorLoads) {
        let works = "load words with `load_v16i32`, then use `shuffle_i32`, shifts and `and_i32`";
        return Some(fault(line, Erratum::PackedVectorLoads, "loads one element of each word").note(works));
    }
    if is_concerned(Erratum::MainMemoryVectorStoreUnmasked) && desc.masked {
        let works = "load the old value, merge the lanes in a register and store all of them";
        return Some(fault(line, Erratum::MainMemoryVectorStoreUnmasked, "stores all lanes").note(works));
    }
    if is_concerned(Erratum::GatherScatterMissing) {
        return Some(
            fault(line, Erratum::GatherScatterMissing, "performs another operation")
                .note("access one lane after the other"),
        );
    }
    if is_concerned(Erratum::CrossProductMissing) {
        return Some(fault(line, Erratum::CrossProductMissing, "never completes").note("use products and differences"));
    }
    let amount = inst.operands.iter().filter_map(|operand| operand.imm()).next_back();
    if is_concerned(Erratum::ShiftAmountNotModulo) && amount.is_some_and(|n| !(0..32).contains(&n)) {
        let works = "write the amount modulo 32";
        return Some(
            fault(
                line,
                Erratum::ShiftAmountNotModulo,
                "not a shift by the amount modulo 32",
            )
            .note(works),
        );
    }
    None
}

/// Returns the warning about a result that a taken branch loses.
fn before_branch(before: &[Line], branch_line: &Line, branch: &Inst) -> Option<Fault> {
    let mut at = branch_line.offset;
    let mut issued = Vec::new();
    for line in before.iter().rev() {
        let Some(inst) = line
            .inst
            .as_ref()
            .filter(|_| line.section == branch_line.section && line.offset + line.len == at)
        else {
            break;
        };
        at = line.offset;
        // A `nop` does not occupy an issue slot.
        if inst.desc().unit == Unit::None {
            continue;
        }
        if inst.desc().flags.is_branch() || issued.len() > BURST {
            break;
        }
        issued.push((line, inst));
    }
    let (&(line, inst), earlier) = issued.split_first()?;
    let desc = inst.desc();
    let is_float = |inst: &Inst| inst.desc().unit == Unit::Fp;
    let late = desc.flags.may_load()
        || u32::from(desc.latency) >= LOST_RESULT
        || !is_float(inst) && earlier.iter().filter(|(_, inst)| is_float(inst)).count() >= BURST;
    // Code that separates the two writes `tr`, so `tr` is ignored.
    let result = inst.defs().find(|def| *def != Reg::S(SReg::TR)).filter(|_| late)?;
    if branch.uses().any(|used| used == result) || desc.latency == 0 {
        return None;
    }
    let label = format!("{result} may hold an old value at the target of the branch after it");
    let works = "put an instruction that does not write a register that is needed between them: a store, or `movei tr, 0`; \
                 a `nop` does not help";
    Some(fault(line, Erratum::LostResultBeforeTakenBranch, &label).note(works))
}
