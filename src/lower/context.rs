//! The state of lowering a function: the context of the ISLE rules and of the algorithms that they
//! call.
//!
//! A value has virtual registers from the start. If the rule that computes the value returns other
//! registers, the value's registers become aliases of them.

use super::constants::{Constant, ConstantPool};
use super::hoist::Hoist;
use super::try_call::TryCall;
use crate::abi::sig::{CalleeSignatures, SigInfo};
use crate::error::{CompileError, Refusal};
use crate::inst::{AMode, Access, MInst, SelectWord, reg::Reg};
use crate::isa::Isa;
use crate::provenance::RuleChains;
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

/// The maximum number of words that one branch selects. All their registers are live at once.
const MAX_SELECT_WORDS: usize = 8;

/// The virtual registers of one value: words, low word first, or sixteen lanes each, in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ValueRegs {
    pub(super) regs: [VReg; 4],
    pub(super) len: u8,
}

impl ValueRegs {
    /// Returns a value in one register.
    pub fn one(reg: VReg) -> Self {
        Self { regs: [reg; 4], len: 1 }
    }

    /// Returns a value in one to four registers, low word first; `None` for any other number.
    pub fn from_slice(list: &[VReg]) -> Option<Self> {
        let len = u8::try_from(list.len()).ok().filter(|len| (1..=4).contains(len))?;
        let mut regs = [*list.first()?; 4];
        regs[..list.len()].copy_from_slice(list);
        Some(Self { regs, len })
    }

    /// Returns the registers.
    pub fn as_slice(&self) -> &[VReg] {
        &self.regs[..usize::from(self.len)]
    }
}

/// The result of a rule: the registers of each result of the instruction.
pub type InstOutput = SmallVec<[ValueRegs; 2]>;

/// The ISLE rules that algorithms in Rust call.
pub trait Rules {
    /// Returns the value in a register whose upper bits are extended as the signature requires.
    fn extended(&mut self, value: Value, extension: ir::ArgumentExtension) -> Reg;

    /// Loads an unsigned number of `bytes` bytes from an address.
    fn load_bytes(&mut self, access: Access, addr: AMode, bytes: u8) -> Reg;

    /// Stores the low bytes of a register.
    fn store_bytes(&mut self, access: Access, src: Reg, addr: AMode, bytes: u8);
}

/// The state of lowering one function, and the context of the ISLE rules.
pub struct Lower<'a> {
    /// The function.
    pub func: &'a Function,
    /// The target.
    pub isa: &'a Isa,
    /// The ABI locations of the function's own arguments and results.
    pub sig: SigInfo,
    /// The ABI locations for its callees.
    pub(super) callees: CalleeSignatures,
    /// The machine instructions that are already emitted.
    pub vcode: VCode,
    /// The constants without a definition yet.
    pub constants: ConstantPool,
    pub(super) hoist: Hoist,
    /// The index of the current block in the order.
    pub(super) block: usize,
    pub(super) value_regs: SecondaryMap<Value, Option<ValueRegs>>,
    pub(super) uses: SecondaryMap<Value, u32>,
    pub(super) lowered_uses: SecondaryMap<Value, u32>,
    /// Whether an instruction with the value's opcode can produce a
    /// [constant](Self::wide_constant).
    pub(super) may_be_constant: SecondaryMap<Value, bool>,
    /// Loads whose only user requires the value sign-extended to 32 bits.
    pub(super) signed_loads: SecondaryMap<Value, bool>,
    /// For each register of a value that compares lanes: the scalar register for users that require
    /// one bit per lane.
    pub(super) masks: SecondaryMap<Value, [Option<VReg>; MAX_REGISTERS as usize]>,
    /// The current part: the index of the register that represents a vector of several registers.
    pub(super) part: u8,
    /// Whether any vector occupies several registers.
    pub(super) has_parts: bool,
    pub(super) aliases: Vec<VReg>,
    /// The instructions of the current CLIF instruction, in order.
    pub(super) current: Vec<MInst>,
    /// The instructions of the whole function, in reverse order.
    pub(super) reversed: Vec<MInst>,
    /// The origins of `reversed`.
    pub(super) origins: Vec<Origin>,
    pub(super) labels: Vec<(VReg, usize, ir::ValueLabel)>,
    pub(super) origin: Origin,
    /// The rules that produced the instructions in `current`.
    pub(super) rule_chains: RuleChains,
    /// The address space that the current CLIF instruction accesses.
    pub(super) space: Space,
    /// The entries of the branch table of the current terminator.
    pub(super) table: Vec<u32>,
    pub(super) fault: Option<CompileError>,
    /// The pointer to the area for results in memory, saved at entry.
    pub(super) ret_area: Option<VReg>,
    /// The calls with handlers, by the blocks that they terminate.
    pub(super) try_calls: HashMap<ir::Block, Rc<TryCall>>,
}

/// Returns a map with an entry for every value of the function.
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
        rule_chains: RuleChains,
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
            rule_chains,
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

    /// Returns a new virtual register.
    pub fn new_vreg(&mut self, class: RegClass) -> VReg {
        if self.aliases.len() >= VReg::MAX {
            // regalloc2 cannot number more registers. The fault ends the compilation.
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

    /// Returns the error for an instruction that no rule covers.
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

    /// Reports a broken invariant if `found` is `None`.
    pub fn known<T>(&mut self, found: Option<T>, expected: &'static str) -> Option<T> {
        if found.is_none() {
            self.internal_here(expected);
        }
        found
    }

    /// Reports a broken invariant if the numbers differ.
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

    /// Records a broken invariant, for a constructor that cannot fail.
    pub fn set_internal(&mut self, instruction: impl std::fmt::Display, expected: &'static str) {
        self.set_fault(CompileError::internal("vcode", instruction, expected));
    }

    /// Returns the registers of a result, low word first. Records a fault unless they are one to
    /// four virtual registers.
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

    /// Creates an area of the frame. Size and alignment are in bytes.
    pub fn new_local(&mut self, size: u32, align: u32) -> u32 {
        let area = u32::try_from(self.vcode.locals.len()).unwrap_or_else(|_| {
            self.set_fault(CompileError::TooLarge("the frame has too many areas".to_owned()));
            0
        });
        self.vcode.locals.push((size, align));
        area
    }

    /// Records the first fault, for constructors that cannot fail.
    pub fn set_fault(&mut self, fault: CompileError) {
        self.fault.get_or_insert(fault);
    }

    /// Returns whether the current CLIF instruction accesses the scratchpad.
    pub fn accesses_scratchpad(&self) -> bool {
        self.space == Space::Scratchpad
    }

    /// Appends an instruction to those of the current CLIF instruction. Redirects an access to main
    /// memory to the address space of the CLIF instruction.
    pub fn emit(&mut self, mut inst: MInst) {
        if self.accesses_scratchpad()
            && let MInst::Load { op, .. } | MInst::Store { op, .. } = &mut inst
            && let Some(other) = relation::to_scratchpad(*op)
        {
            *op = other;
        }
        self.current.push(inst);
    }

    /// Returns the registers of a block parameter.
    pub fn param_regs(&self, param: Value) -> Option<ValueRegs> {
        self.value_regs[param]
    }

    /// Defines a constant before all instructions that are already lowered.
    pub(super) fn define(&mut self, value: Constant, reg: VReg) {
        self.reversed.push(value.define(reg));
        self.origins.push(Origin {
            provenance: self.rule_chains.of_constant(reg),
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
        self.rule_chains
            .append_origins(&mut self.origins, self.current.len(), self.origin);
        self.reversed.extend(self.current.drain(..).rev());
    }

    /// Returns the words of a select at the end of the current instructions, if the following
    /// select can include them: it has the same condition and does not read them.
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

    /// Returns a register with the constant, which is defined earlier in the block or before its
    /// loop.
    pub fn constant(&mut self, value: u32) -> VReg {
        self.shared_constant(Constant::Scalar(value))
    }

    /// Returns a register with a constant of any kind, like [`constant`](Self::constant).
    pub fn shared_constant(&mut self, value: Constant) -> VReg {
        let position = self.reversed.len();
        if let Some(reg) = self.constants.get(value, position) {
            // Lowering runs backwards, so this use precedes the others.
            self.rule_chains.record_use(&self.origin, reg);
            return reg;
        }
        let reg = self.new_vreg(match value {
            Constant::Scalar(_) => RegClass::Int,
            Constant::Splat(_) | Constant::Lanes(_) => RegClass::Vector,
        });
        self.constants.insert(value, reg, position);
        self.rule_chains.record_use(&self.origin, reg);
        reg
    }

    /// Returns the entries of the current branch table, as positions among the successors.
    pub fn table(&self) -> &[u32] {
        &self.table
    }

    /// Returns the pointer to the area for results in memory.
    pub fn ret_area(&self) -> Option<VReg> {
        self.ret_area
    }
}
/// Returns the low 32 bits of a constant of the given width, sign-extended if it is narrower.
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
