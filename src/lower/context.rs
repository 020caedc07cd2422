//! What lowering knows of the function at hand: the context of the ISLE rules and of the algorithms they call.
//!
//! A value has its virtual registers from the start; when the rule that computes it hands back other registers, the
//! value's own become aliases of these.

use super::constants::{Constant, ConstantPool};
use super::hoist::Hoist;
use super::try_call::TryCall;
use crate::abi::sig::{CalleeSignatures, SigInfo};
use crate::error::{CompileError, Refusal};
use crate::inst::{AMode, Access, MInst, SelectWord, reg::Reg};
use crate::isa::Isa;
use crate::reason::Reasons;
use crate::shape::{MAX_REGISTERS, registers_of};
use crate::spaces::Space;
use crate::vcode::{Origin, VCode, resolved};
use cranelift_codegen::entity::SecondaryMap;
use cranelift_codegen::ir::{self, Function, Inst, Value};
use npu_mc::relation;
use regalloc2::{RegClass, VReg};
use rustc_hash::FxHashMap as HashMap;
use smallvec::SmallVec;
use std::rc::Rc;

/// The most words that one branch selects: all their registers are live at once.
const MAX_SELECT_WORDS: usize = 8;

/// The virtual registers of one value: words, the low one first, or sixteen lanes each, the first ones first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ValueRegs {
    pub(super) regs: [VReg; 4],
    pub(super) len: u8,
}

impl ValueRegs {
    /// A value in one register.
    pub fn one(reg: VReg) -> Self {
        Self { regs: [reg; 4], len: 1 }
    }

    /// A value in one to four registers, low word first; `None` for any other number.
    pub fn from_slice(list: &[VReg]) -> Option<Self> {
        let len = u8::try_from(list.len()).ok().filter(|len| (1..=4).contains(len))?;
        let mut regs = [*list.first()?; 4];
        regs[..list.len()].copy_from_slice(list);
        Some(Self { regs, len })
    }

    /// The registers.
    pub fn as_slice(&self) -> &[VReg] {
        &self.regs[..usize::from(self.len)]
    }
}

/// What a rule hands back: the registers of each result.
pub type InstOutput = SmallVec<[ValueRegs; 2]>;

/// What algorithms in Rust ask the ISLE rules for.
pub trait Rules {
    /// The value in a register whose upper bits are as the signature asks.
    fn extended(&mut self, value: Value, extension: ir::ArgumentExtension) -> Reg;

    /// The unsigned number in some bytes at an address.
    fn load_bytes(&mut self, access: Access, addr: AMode, bytes: u8) -> Reg;

    /// Stores the low bytes of a register.
    fn store_bytes(&mut self, access: Access, src: Reg, addr: AMode, bytes: u8);
}

/// The state of lowering one function; the context of the ISLE rules.
pub struct Lower<'a> {
    /// The function.
    pub func: &'a Function,
    /// The target.
    pub isa: &'a Isa,
    /// Where the function's own arguments and results are.
    pub sig: SigInfo,
    /// Where those of its callees are.
    pub(super) callees: CalleeSignatures,
    /// The machine instructions so far.
    pub vcode: VCode,
    /// Constants waiting for their definition.
    pub constants: ConstantPool,
    pub(super) hoist: Hoist,
    /// Place in the order of the block at hand.
    pub(super) block: usize,
    pub(super) value_regs: SecondaryMap<Value, Option<ValueRegs>>,
    pub(super) uses: SecondaryMap<Value, u32>,
    pub(super) lowered_uses: SecondaryMap<Value, u32>,
    /// Whether the instruction that defines the value is one that [constants](Self::wide_constant) are made of.
    pub(super) may_be_constant: SecondaryMap<Value, bool>,
    /// Loads whose only user wants the value sign-extended to 32 bits.
    pub(super) signed_loads: SecondaryMap<Value, bool>,
    /// For values that compare lanes, and each of their registers: the scalar register in which users want one bit per lane.
    pub(super) masks: SecondaryMap<Value, [Option<VReg>; MAX_REGISTERS as usize]>,
    /// Which of its registers a vector of several stands for at the moment: its part.
    pub(super) part: u8,
    /// Whether any vector has several registers.
    pub(super) has_parts: bool,
    pub(super) aliases: Vec<VReg>,
    /// Instructions of the CLIF instruction at hand, in order.
    pub(super) current: Vec<MInst>,
    /// Instructions of the whole function, in reverse order.
    pub(super) reversed: Vec<MInst>,
    /// Where they come from.
    pub(super) origins: Vec<Origin>,
    pub(super) labels: Vec<(VReg, usize, ir::ValueLabel)>,
    pub(super) origin: Origin,
    /// The rules of those at hand.
    pub(super) reasons: Reasons,
    /// Where the CLIF instruction at hand accesses memory.
    pub(super) space: Space,
    /// For the terminator at hand: entries of its branch table.
    pub(super) table: Vec<u32>,
    pub(super) fault: Option<CompileError>,
    /// Pointer to the area for results in memory, saved at entry.
    pub(super) ret_area: Option<VReg>,
    /// The calls with handlers, by the blocks that they end.
    pub(super) try_calls: HashMap<ir::Block, Rc<TryCall>>,
}

/// A map with a place for every value of the function.
fn for_values<T: Clone + Default>(func: &Function) -> SecondaryMap<Value, T> {
    let mut map = SecondaryMap::new();
    map.resize(func.dfg.num_values());
    map
}

impl<'a> Lower<'a> {
    pub(super) fn new(
        func: &'a Function,
        isa: &'a Isa,
        sig: SigInfo,
        callees: CalleeSignatures,
        hoist: Hoist,
        reasons: Reasons,
    ) -> Self {
        Self {
            func,
            isa,
            sig,
            callees,
            vcode: VCode::default(),
            constants: ConstantPool::default(),
            hoist,
            block: 0,
            value_regs: for_values(func),
            uses: for_values(func),
            lowered_uses: for_values(func),
            may_be_constant: for_values(func),
            signed_loads: SecondaryMap::new(),
            masks: SecondaryMap::new(),
            part: 0,
            has_parts: false,
            aliases: Vec::with_capacity(2 * func.dfg.num_values()),
            current: Vec::new(),
            reversed: Vec::with_capacity(2 * func.dfg.num_insts()),
            origins: Vec::with_capacity(2 * func.dfg.num_insts()),
            labels: Vec::new(),
            origin: Origin::default(),
            reasons,
            space: Space::Main,
            table: Vec::new(),
            fault: None,
            ret_area: None,
            try_calls: HashMap::default(),
        }
    }

    pub(super) fn assign_regs(&mut self, value: Value) {
        let ty = self.func.dfg.value_type(value);
        if let Some((class, len)) = registers_of(ty) {
            self.has_parts |= class == RegClass::Vector && len > 1;
            let mut regs = ValueRegs {
                regs: [self.new_vreg(class); 4],
                len,
            };
            for reg in &mut regs.regs[1..usize::from(len)] {
                *reg = self.new_vreg(class);
            }
            self.value_regs[value] = Some(regs);
        }
    }

    /// A fresh virtual register.
    pub fn new_vreg(&mut self, class: RegClass) -> VReg {
        if self.aliases.len() >= VReg::MAX {
            // regalloc2 cannot number more; the fault ends the compilation.
            self.set_fault(CompileError::TooLarge(format!(
                "the function needs more than {} registers",
                VReg::MAX
            )));
            return VReg::new(0, class);
        }
        self.vcode.has_vectors |= class == RegClass::Vector;
        let reg = VReg::new(self.aliases.len(), class);
        self.aliases.push(reg);
        reg
    }

    pub(super) fn resolve(&self, reg: VReg) -> VReg {
        resolved(&self.aliases, reg)
    }

    /// The error for an instruction that no rule covers.
    pub fn refusal(&self, inst: Inst) -> CompileError {
        let dfg = &self.func.dfg;
        let opcode = dfg.insts[inst].opcode();
        let ty = dfg.ctrl_typevar(inst);
        let what = if ty.is_invalid() {
            opcode.to_string()
        } else {
            format!("{opcode}.{ty}")
        };
        CompileError::Unsupported(vec![Refusal {
            function: self.func.name.to_string(),
            inst: Some((inst, dfg.display_inst(inst).to_string())),
            srcloc: Some(self.func.srcloc(inst)).filter(|loc| !loc.is_default()),
            what,
            help: None,
        }])
    }

    /// What has to be there; a broken invariant if it is not.
    pub fn known<T>(&mut self, found: Option<T>, expected: &'static str) -> Option<T> {
        if found.is_none() {
            self.internal_here(expected);
        }
        found
    }

    /// Two numbers that have to be equal; a broken invariant if they are not.
    pub fn expect_equal(&mut self, a: usize, b: usize, expected: &'static str) {
        if a != b {
            self.internal_here(expected);
        }
    }

    fn internal_here(&mut self, expected: &'static str) {
        let func = self.func;
        match self.origin.inst {
            Some(inst) => self.set_internal(func.dfg.display_inst(inst), expected),
            None => self.set_internal(&func.name, expected),
        }
    }

    /// Remembers a broken invariant, found by a constructor that cannot fail.
    pub fn set_internal(&mut self, instruction: impl std::fmt::Display, expected: &'static str) {
        self.set_fault(CompileError::internal("vcode", instruction, expected));
    }

    /// The registers of a result, low word first; a fault if they are not one to four virtual ones.
    pub fn result_regs(&mut self, regs: impl IntoIterator<Item = Reg>) -> ValueRegs {
        let mut list = [VReg::new(0, RegClass::Int); 4];
        let mut len = 0;
        for reg in regs {
            match (list.get_mut(usize::from(len)), reg.as_virtual()) {
                (Some(place), Some(vreg)) => *place = vreg,
                _ => {
                    self.set_internal(format_args!("{reg:?}"), "one to four virtual registers for a result");
                    return ValueRegs::one(self.new_vreg(RegClass::Int));
                }
            }
            len += 1;
        }
        if len == 0 {
            self.set_internal("no register", "one to four virtual registers for a result");
            return ValueRegs::one(self.new_vreg(RegClass::Int));
        }
        ValueRegs { regs: list, len }
    }

    /// A new area of the frame; the size and alignment are in bytes.
    pub fn new_local(&mut self, size: u32, align: u32) -> u32 {
        let area = u32::try_from(self.vcode.locals.len()).unwrap_or_else(|_| {
            self.set_fault(CompileError::TooLarge("the frame has too many areas".to_owned()));
            0
        });
        self.vcode.locals.push((size, align));
        area
    }

    /// Remembers the first fault found by a constructor that cannot fail.
    pub fn set_fault(&mut self, fault: CompileError) {
        self.fault.get_or_insert(fault);
    }

    /// Whether the CLIF instruction at hand accesses the scratchpad.
    pub fn accesses_scratchpad(&self) -> bool {
        self.space == Space::Scratchpad
    }

    /// Adds an instruction after those already emitted for the CLIF instruction at hand. An access to main memory becomes one
    /// to the space that the CLIF instruction names.
    pub fn emit(&mut self, mut inst: MInst) {
        if self.accesses_scratchpad()
            && let MInst::Load { op, .. } | MInst::Store { op, .. } = &mut inst
            && let Some(other) = relation::to_scratchpad(*op)
        {
            *op = other;
        }
        self.current.push(inst);
    }

    /// The registers of a block parameter.
    pub fn param_regs(&self, param: Value) -> Option<ValueRegs> {
        self.value_regs[param]
    }

    /// Defines a constant before all that was lowered so far.
    pub(super) fn define(&mut self, value: Constant, reg: VReg) {
        self.reversed.push(value.define(reg));
        self.origins.push(Origin {
            why: self.reasons.constant(reg),
            ..Origin::default()
        });
    }

    /// Ends the instructions of one CLIF instruction.
    pub fn finish_inst(&mut self) {
        self.flush_current();
    }

    pub(super) fn flush_current(&mut self) {
        if let Some(words) = self.words_for_next_select() {
            self.current.pop();
            if let Some(MInst::Select { words: all, .. }) = self.reversed.last_mut() {
                all.insert_many(0, words);
            }
        }
        self.reasons.flush(&mut self.origins, self.current.len(), self.origin);
        self.reversed.extend(self.current.drain(..).rev());
    }

    /// The words of a select at the end of the current instructions, if the select that follows can choose them, too: it has the same condition and
    /// does not read them.
    fn words_for_next_select(&self) -> Option<SmallVec<[SelectWord; 1]>> {
        let (
            MInst::Select { cond, words },
            MInst::Select {
                cond: next,
                words: others,
            },
        ) = (self.current.last()?, self.reversed.last()?)
        else {
            return None;
        };
        let resolved = |reg: Reg| reg.as_virtual().map(|reg| self.resolve(reg));
        let same = cond.nonzero == next.nonzero && resolved(cond.reg) == resolved(next.reg);
        let reads = |dst: Reg| {
            let mut sources = others.iter().flat_map(|word| [word.if_true, word.if_false]);
            sources.any(|source| resolved(source) == resolved(dst))
        };
        let fits = words.len() + others.len() <= MAX_SELECT_WORDS;
        (same && fits && !words.iter().any(|word| reads(word.dst))).then(|| words.clone())
    }

    /// A register with the constant, defined somewhere above the current instruction in its block.
    pub fn constant(&mut self, value: u32) -> VReg {
        self.shared_constant(Constant::Scalar(value))
    }

    /// The same for constants of every kind.
    pub fn shared_constant(&mut self, value: Constant) -> VReg {
        let position = self.reversed.len();
        if let Some(reg) = self.constants.get(value, position) {
            // Lowering goes backwards: this one comes first.
            self.reasons.wants(&self.origin, reg);
            return reg;
        }
        let reg = self.new_vreg(match value {
            Constant::Scalar(_) => RegClass::Int,
            Constant::Splat(_) | Constant::Lanes(_) => RegClass::Vector,
        });
        self.constants.insert(value, reg, position);
        self.reasons.wants(&self.origin, reg);
        reg
    }

    /// Entries of the branch table at hand, as positions among its successors.
    pub fn table(&self) -> &[u32] {
        &self.table
    }

    /// Pointer to the area for results in memory.
    pub fn ret_area(&self) -> Option<VReg> {
        self.ret_area
    }
}
/// The low 32 bits of a constant of the given width, sign-extended if it is narrower.
pub fn sign_extend(constant: u64, bits: u32) -> u32 {
    if bits >= 32 {
        return (constant & u64::from(u32::MAX)) as u32;
    }
    let shift = 32 - bits;
    (((constant << shift) & u64::from(u32::MAX)) as u32)
        .cast_signed()
        .wrapping_shr(shift)
        .cast_unsigned()
}
