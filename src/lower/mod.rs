//! CLIF to VCode.
//!
//! Blocks and instructions are visited backwards, so that every use is known before its definition: a definition that
//! all its users folded into themselves is never lowered. Which machine instructions an instruction becomes is said by
//! ISLE rules: those that `crates/tdgen` makes from the patterns in `td/`, and those in `isle/`.
//!
//! A value has its virtual registers from the start; when the rule that computes it hands back other registers, the
//! value's own become aliases of these.

pub mod address;
pub mod ahead;
pub mod constants;
pub mod dead;
pub mod facts;
pub mod float;
pub mod hoist;
pub mod isle;
pub mod order;
pub mod vector;
pub mod wide;
pub mod words;

use crate::abi::limit::StackLimit;
use crate::abi::sig::SigInfo;
use crate::error::{CompileError, Refusal};
use crate::inst::{MInst, operands::OperandVisitor, reg::Reg};
use crate::isa::Isa;
use crate::runtime;
use crate::spaces::{self, Space};
use crate::vcode::{LabelledRange, Origin, VBlock, VCode};
use constants::{Constant, ConstantPool};
use cranelift_codegen::Context;
use cranelift_codegen::entity::SecondaryMap;
use cranelift_codegen::ir::{self, Function, Inst, Opcode, Type, Value, ValueDef, ValueLabelAssignments, types};
use cranelift_codegen::settings::OptLevel;
use hoist::Hoist;
use npu_mc::relation;
use order::{BlockOrder, LoweredBlock};
use regalloc2::{Block, OperandConstraint, OperandKind, OperandPos, RegClass, VReg};
use smallvec::SmallVec;

/// The virtual registers of one value, low word first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ValueRegs {
    regs: [VReg; 4],
    len: u8,
}

impl ValueRegs {
    /// A value in one register.
    pub fn one(reg: VReg) -> Self {
        Self {
            regs: [reg, VReg::invalid(), VReg::invalid(), VReg::invalid()],
            len: 1,
        }
    }

    /// A value in one to four registers, low word first; `None` for any other number.
    pub fn from_slice(list: &[VReg]) -> Option<Self> {
        let len = u8::try_from(list.len()).ok().filter(|len| (1..=4).contains(len))?;
        let mut regs = [VReg::invalid(); 4];
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

/// The registers that hold a value of the type: class and number. `None` for types that this target does not hold in
/// registers.
pub fn registers_of(ty: Type) -> Option<(RegClass, u8)> {
    match ty {
        types::I8 | types::I16 | types::I32 | types::F16 | types::F32 => Some((RegClass::Int, 1)),
        types::I64 | types::F64 => Some((RegClass::Int, 2)),
        types::I128 | types::F128 => Some((RegClass::Int, 4)),
        types::I8X16 | types::I16X16 | types::I32X16 | types::F32X16 => Some((RegClass::Vector, 1)),
        _ => None,
    }
}

/// The state of lowering one function; the context of the ISLE rules.
pub struct Lower<'a> {
    /// The function.
    pub func: &'a Function,
    /// The target.
    pub isa: &'a Isa,
    /// Where the function's own arguments and results are.
    pub sig: SigInfo,
    /// The machine instructions so far.
    pub vcode: VCode,
    /// Constants waiting for their definition.
    pub constants: ConstantPool,
    hoist: Hoist,
    /// Place in the order of the block at hand.
    block: usize,
    value_regs: SecondaryMap<Value, Option<ValueRegs>>,
    uses: SecondaryMap<Value, u32>,
    lowered_uses: SecondaryMap<Value, u32>,
    /// Loads whose only user wants the value sign-extended to 32 bits.
    signed_loads: SecondaryMap<Value, bool>,
    /// For values that compare lanes: the scalar register in which users want a bit a lane.
    masks: SecondaryMap<Value, Option<VReg>>,
    aliases: Vec<VReg>,
    /// Instructions of the CLIF instruction at hand, in order.
    current: Vec<MInst>,
    /// Instructions of the whole function, in reverse order.
    reversed: Vec<(MInst, Origin)>,
    labels: Vec<(VReg, usize, ir::ValueLabel)>,
    origin: Origin,
    /// Where the CLIF instruction at hand accesses memory.
    space: Space,
    /// For the terminator at hand: entries of its branch table.
    table: Vec<u32>,
    fault: Option<CompileError>,
    /// Pointer to the area for results in memory, saved at entry.
    ret_area: Option<VReg>,
}

/// Lowers the function in the context, whose control flow graph and dominator tree must be up to date.
///
/// # Errors
///
/// [`CompileError::Unsupported`] for an instruction that no rule covers.
pub fn lower(ctx: &mut Context, isa: &Isa, sig: SigInfo) -> Result<VCode, CompileError> {
    let optimize = isa.flags().opt_level() != OptLevel::None;
    if optimize {
        ctx.compute_loop_analysis();
    }
    let order = BlockOrder::new(ctx);
    let hoist = if optimize {
        Hoist::new(ctx, &order)
    } else {
        Hoist::default()
    };
    let mut lower = Lower::new(&ctx.func, isa, sig, hoist);
    lower.run(&order)?;
    Ok(lower.vcode)
}

impl<'a> Lower<'a> {
    fn new(func: &'a Function, isa: &'a Isa, sig: SigInfo, hoist: Hoist) -> Self {
        Self {
            func,
            isa,
            sig,
            vcode: VCode::default(),
            constants: ConstantPool::default(),
            hoist,
            block: 0,
            value_regs: SecondaryMap::with_capacity(func.dfg.num_values()),
            uses: SecondaryMap::with_capacity(func.dfg.num_values()),
            lowered_uses: SecondaryMap::with_capacity(func.dfg.num_values()),
            signed_loads: SecondaryMap::new(),
            masks: SecondaryMap::new(),
            aliases: Vec::new(),
            current: Vec::new(),
            reversed: Vec::new(),
            labels: Vec::new(),
            origin: Origin::default(),
            space: Space::Main,
            table: Vec::new(),
            fault: None,
            ret_area: None,
        }
    }

    fn run(&mut self, order: &BlockOrder) -> Result<(), CompileError> {
        self.count_uses(order);
        if self.sig.ret_area.is_some() {
            self.ret_area = Some(self.new_vreg(RegClass::Int));
        }
        let mut ends = vec![0usize; order.blocks.len()];
        let mut blocks: Vec<VBlock> = Vec::with_capacity(order.blocks.len());
        for (index, block) in order.blocks.iter().enumerate().rev() {
            self.block = index;
            let vblock = match block {
                LoweredBlock::Clif { block, succs } => self.lower_block(*block, succs, index == 0)?,
                LoweredBlock::Edge { call, target, from } => {
                    self.origin = Origin::default();
                    self.emit(MInst::Jump);
                    self.flush_current();
                    let args = self.block_args(call);
                    self.end_constants();
                    VBlock {
                        insts: 0..0,
                        succs: vec![Block::new(*target)],
                        preds: Vec::new(),
                        params: Vec::new(),
                        branch_args: vec![args],
                        clif: None,
                        cold: [*from, call.block(&self.func.dfg.value_lists)]
                            .iter()
                            .any(|&end| self.func.layout.is_cold(end)),
                    }
                }
            };
            ends[index] = self.reversed.len();
            blocks.push(vblock);
        }
        blocks.reverse();
        self.assemble(blocks, &ends);
        match self.fault.take() {
            Some(fault) => Err(fault),
            None => Ok(()),
        }
    }

    /// Counts the uses of every value in reachable code and gives each value its registers.
    fn count_uses(&mut self, order: &BlockOrder) {
        for block in &order.blocks {
            let LoweredBlock::Clif { block, .. } = block else {
                continue;
            };
            for &param in self.func.dfg.block_params(*block) {
                self.assign_regs(param);
            }
            for inst in self.func.layout.block_insts(*block) {
                for value in self.func.dfg.inst_values(inst) {
                    self.uses[self.func.dfg.resolve_aliases(value)] += 1;
                }
                for &result in self.func.dfg.inst_results(inst) {
                    self.assign_regs(result);
                }
            }
        }
    }

    fn assign_regs(&mut self, value: Value) {
        let ty = self.func.dfg.value_type(value);
        if let Some((class, len)) = registers_of(ty) {
            let mut regs = [VReg::invalid(); 4];
            for reg in &mut regs[..usize::from(len)] {
                *reg = self.new_vreg(class);
            }
            self.value_regs[value] = Some(ValueRegs { regs, len });
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
        let reg = VReg::new(self.aliases.len(), class);
        self.aliases.push(reg);
        reg
    }

    fn resolve(&self, mut reg: VReg) -> VReg {
        while self.aliases[reg.vreg()] != reg {
            reg = self.aliases[reg.vreg()];
        }
        reg
    }

    fn lower_block(
        &mut self,
        block: ir::Block,
        succs: &[order::Successor],
        is_entry: bool,
    ) -> Result<VBlock, CompileError> {
        let mut branch_args = Vec::with_capacity(succs.len());
        let mut first = true;
        let mut inst_cursor = self.func.layout.last_inst(block);
        while let Some(inst) = inst_cursor {
            self.origin = Origin {
                srcloc: self.func.srcloc(inst),
                inst: Some(inst),
            };
            if first {
                // The terminator is lowered first; the arguments it passes are uses that come just before it.
                self.table = order::table_entries(self.func, inst);
            }
            if first || self.is_needed(inst) {
                self.lower_inst(inst)?;
            }
            if first {
                for succ in succs {
                    branch_args.push(if succ.split {
                        Vec::new()
                    } else {
                        self.block_args(&succ.call)
                    });
                }
                self.receive_constants();
                first = false;
            }
            inst_cursor = self.func.layout.prev_inst(inst);
        }
        self.origin = Origin::default();
        self.end_constants();
        let mut params = Vec::new();
        if is_entry {
            self.label_params(block);
            self.lower_args(block);
        } else {
            self.label_params(block);
            for &param in self.func.dfg.block_params(block) {
                if let Some(regs) = self.value_regs[param] {
                    params.extend_from_slice(regs.as_slice());
                }
            }
        }
        Ok(VBlock {
            insts: 0..0,
            succs: succs.iter().map(|s| Block::new(s.index)).collect(),
            preds: Vec::new(),
            params,
            branch_args,
            clif: Some(block),
            cold: self.func.layout.is_cold(block),
        })
    }

    /// Whether the instruction does something that shows, or a lowered instruction uses one of its results.
    fn is_needed(&self, inst: Inst) -> bool {
        let data = &self.func.dfg.insts[inst];
        let opcode = data.opcode();
        let trapping_load = opcode.can_load()
            && !self.func.dfg.insts[inst]
                .memflags()
                .is_some_and(|flags| self.func.dfg.mem_flags[flags].notrap());
        let effect = opcode.is_call()
            || opcode.is_terminator()
            || opcode.can_store()
            || opcode.other_side_effects()
            || trapping_load
            || (opcode.can_trap() && !opcode.can_load());
        effect
            || self
                .func
                .dfg
                .inst_results(inst)
                .iter()
                .any(|&r| self.lowered_uses[r] > 0 || self.masks[r].is_some())
    }

    fn lower_inst(&mut self, inst: Inst) -> Result<(), CompileError> {
        if self.func.dfg.insts[inst].opcode().is_call() && !crate::intrinsics::is_instruction(self.func, inst) {
            // A constant is cheaper to make again than to keep across a call.
            self.flush_all_constants();
        }
        let results: SmallVec<[Value; 2]> = self.func.dfg.inst_results(inst).iter().copied().collect();
        self.label_results(&results);
        self.space = spaces::of_inst(self.func, inst);
        let output = isle::lower(self, inst);
        self.space = Space::Main;
        let Some(output) = output else {
            return Err(self.refusal(inst));
        };
        for (&result, regs) in results.iter().zip(&output) {
            let Some(own) = self.value_regs[result] else { continue };
            for (&from, &to) in own.as_slice().iter().zip(regs.as_slice()) {
                debug_assert_eq!(from.class(), to.class());
                let to = self.resolve(to);
                if from != to {
                    self.aliases[from.vreg()] = to;
                }
            }
        }
        self.flush_current();
        self.flush_old_constants();
        Ok(())
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

    /// Remembers the first fault found by a constructor that cannot fail.
    pub fn set_fault(&mut self, fault: CompileError) {
        self.fault.get_or_insert(fault);
    }

    /// Adds an instruction behind those already emitted for the CLIF instruction at hand. An access to main memory becomes one
    /// to the space that the CLIF instruction names.
    pub fn emit(&mut self, mut inst: MInst) {
        if self.space == Space::Scratchpad
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

    /// Ends the instructions of one CLIF instruction.
    pub fn finish_inst(&mut self) {
        self.flush_current();
    }

    fn flush_current(&mut self) {
        let origin = self.origin;
        self.reversed
            .extend(self.current.drain(..).rev().map(|inst| (inst, origin)));
    }

    /// Defines the constants of the block at its start, or in front of the loop that it belongs to.
    fn end_constants(&mut self) {
        for (value, reg) in self.constants.take_all() {
            match self.hoist.take(self.block, value, reg) {
                Some(other) if other == reg => {}
                Some(other) => self.aliases[reg.vreg()] = self.resolve(other),
                None => self.reversed.push((value.define(reg), Origin::default())),
            }
        }
    }

    /// Promises the constants that loops behind this block want to have made in it.
    fn receive_constants(&mut self) {
        let position = self.reversed.len();
        for (value, reg) in self.hoist.arrivals(self.block) {
            match self.constants.get(value, position) {
                Some(other) => self.aliases[reg.vreg()] = other,
                None => self.constants.insert(value, reg, position),
            }
        }
    }

    /// Defines the constants that were last used a while ago, here, in front of their first use.
    fn flush_old_constants(&mut self) {
        if self.hoist.leaves(self.block) {
            return;
        }
        let position = self.reversed.len();
        for (value, reg) in self.constants.take_older_than(position) {
            self.reversed.push((value.define(reg), Origin::default()));
        }
    }

    fn flush_all_constants(&mut self) {
        for (value, reg) in self.constants.take_all() {
            self.reversed.push((value.define(reg), Origin::default()));
        }
    }

    /// A register with the constant, defined somewhere above the current instruction in its block.
    pub fn constant(&mut self, value: u32) -> VReg {
        self.shared_constant(Constant::Scalar(value))
    }

    /// The same for constants of every kind.
    pub fn shared_constant(&mut self, value: Constant) -> VReg {
        let position = self.reversed.len();
        if let Some(reg) = self.constants.get(value, position) {
            return reg;
        }
        let reg = self.new_vreg(match value {
            Constant::Scalar(_) => RegClass::Int,
            Constant::Splat(_) | Constant::Lanes(_) => RegClass::Vector,
        });
        self.constants.insert(value, reg, position);
        reg
    }

    fn block_args(&mut self, call: &ir::BlockCall) -> Vec<VReg> {
        let values: Vec<Value> = call
            .args(&self.func.dfg.value_lists)
            .filter_map(|arg| arg.as_value())
            .collect();
        let mut regs = Vec::with_capacity(values.len());
        for value in values {
            regs.extend_from_slice(self.put_in_regs(value).as_slice());
        }
        regs
    }

    /// The constant that the value is, zero-extended from its type.
    pub fn as_constant(&self, value: Value) -> Option<u64> {
        let value = self.func.dfg.resolve_aliases(value);
        let ValueDef::Result(inst, 0) = self.func.dfg.value_def(value) else {
            return None;
        };
        let ir::InstructionData::UnaryImm {
            opcode: Opcode::Iconst,
            imm,
        } = self.func.dfg.insts[inst]
        else {
            return None;
        };
        let bits = self.func.dfg.value_type(value).bits();
        let raw = imm.bits().cast_unsigned();
        Some(if bits >= 64 { raw } else { raw & ((1 << bits) - 1) })
    }

    /// The registers of a value, which is thereby used.
    pub fn put_in_regs(&mut self, value: Value) -> ValueRegs {
        let value = self.func.dfg.resolve_aliases(value);
        let regs = self.value_regs[value];
        if let Some(lanes) = self.constant_vector(value) {
            return ValueRegs::one(self.vector_constant(&lanes));
        }
        if let (Some(constant), Some(ValueRegs { len, .. })) = (self.wide_constant(value), regs) {
            let bits = self.func.dfg.value_type(value).bits();
            if bits < 32 {
                // Upper bits of narrow integers are undefined: zeros make a number of one instruction of any of them, and all
                // ones is another that is shared with -1 of other types.
                let signed = sign_extend(constant as u64, bits);
                let number = if signed == u32::MAX { signed } else { constant as u32 };
                return ValueRegs::one(self.constant(number));
            }
            return self.value_regs(words::Words::constant(constant, len.into()));
        }
        self.lowered_uses[value] += 1;
        regs.unwrap_or_else(|| {
            let ty = self.func.dfg.value_type(value);
            self.set_fault(CompileError::Unsupported(vec![Refusal {
                function: self.func.name.to_string(),
                inst: None,
                srcloc: None,
                what: format!("a value of type {ty} ({value})"),
                help: None,
            }]));
            ValueRegs::one(VReg::new(0, RegClass::Int))
        })
    }

    /// Asks the load that defines the value for sign extension to 32 bits, if the value has no other user.
    pub fn request_signed_load(&mut self, value: Value) -> bool {
        let value = self.func.dfg.resolve_aliases(value);
        let ValueDef::Result(inst, 0) = self.func.dfg.value_def(value) else {
            return false;
        };
        let single = self.uses[value] == 1 && self.func.dfg.insts[inst].opcode() == Opcode::Load;
        if single {
            self.signed_loads[value] = true;
        }
        single
    }

    /// Whether the user of a load asked for sign extension.
    pub fn wants_signed_load(&self, inst: Inst) -> bool {
        self.func
            .dfg
            .inst_results(inst)
            .first()
            .is_some_and(|&v| self.signed_loads[v])
    }

    /// Entries of the branch table at hand, as positions among its successors.
    pub fn table(&self) -> &[u32] {
        &self.table
    }

    /// Pointer to the area for results in memory.
    pub fn ret_area(&self) -> Option<VReg> {
        self.ret_area
    }

    fn label_results(&mut self, results: &[Value]) {
        for &result in results {
            self.label_value(result);
        }
    }

    fn label_params(&mut self, block: ir::Block) {
        for &param in self.func.dfg.block_params(block) {
            self.label_value(param);
        }
    }

    /// Notes the labels of a value that is defined by the instructions emitted next.
    fn label_value(&mut self, value: Value) {
        let Some(labels) = &self.func.dfg.values_labels else {
            return;
        };
        let starts = match labels.get(&value) {
            Some(ValueLabelAssignments::Starts(starts)) => starts,
            Some(ValueLabelAssignments::Alias { value, .. }) => match labels.get(value) {
                Some(ValueLabelAssignments::Starts(starts)) => starts,
                _ => return,
            },
            None => return,
        };
        let Some(regs) = self.value_regs[value] else { return };
        // A label names one place, so of a value in several registers it names the low word.
        let Some(&low) = regs.as_slice().first() else { return };
        for start in starts {
            self.labels.push((low, self.reversed.len(), start.label));
        }
    }

    /// Turns the reversed list into the final one and resolves aliases.
    fn assemble(&mut self, mut blocks: Vec<VBlock>, ends: &[usize]) {
        struct Resolve<'b>(&'b [VReg]);
        impl OperandVisitor for Resolve<'_> {
            fn operand(&mut self, reg: &mut Reg, _: OperandConstraint, _: OperandKind, _: OperandPos) {
                if let Reg::Virtual(vreg) = reg {
                    while self.0[vreg.vreg()] != *vreg {
                        *vreg = self.0[vreg.vreg()];
                    }
                }
            }
        }
        let total = self.reversed.len();
        let mut visitor = Resolve(&self.aliases);
        let (mut insts, origins): (Vec<MInst>, Vec<Origin>) = self.reversed.drain(..).rev().unzip();
        for inst in &mut insts {
            inst.visit_operands(&mut visitor);
        }
        for arg in blocks.iter_mut().flat_map(|block| &mut block.branch_args).flatten() {
            while self.aliases[arg.vreg()] != *arg {
                *arg = self.aliases[arg.vreg()];
            }
        }
        let passed = blocks.iter().flat_map(|block| &block.branch_args).flatten().copied();
        let dead = dead::find(&mut insts, passed, self.aliases.len());

        // Places move up by the instructions that are gone in front of them.
        let to_u32 = |n: usize| u32::try_from(n).unwrap_or(u32::MAX);
        let mut place = Vec::with_capacity(total + 1);
        let mut kept = 0;
        for dead in &dead {
            place.push(to_u32(kept));
            kept += usize::from(!dead);
        }
        place.push(to_u32(kept));
        for (index, block) in blocks.iter_mut().enumerate() {
            let start = total - ends[index];
            let end = ends.get(index + 1).map_or(total, |&next| total - next);
            block.insts = place[start]..place[end];
        }
        let mut alive = dead.iter().map(|dead| !dead);
        insts.retain(|_| alive.next().unwrap_or(true));
        let mut origins: Vec<Origin> = origins
            .into_iter()
            .zip(&dead)
            .filter(|(_, dead)| !**dead)
            .map(|(origin, _)| origin)
            .collect();
        let mut labels: Vec<LabelledRange> = self
            .labels
            .iter()
            .map(|&(reg, reversed, label)| LabelledRange {
                reg: self.resolve(reg),
                start: place[total - reversed],
                end: to_u32(kept),
                label,
            })
            .filter(|l| l.start < l.end)
            .collect();
        labels.dedup();
        self.vcode.labels = labels;
        if self.isa.flags().opt_level() != OptLevel::None && runtime::is_routine(self.func) {
            for block in &blocks {
                let range = block.insts.start as usize..block.insts.end as usize;
                ahead::run(&mut insts[range.clone()], &mut origins[range]);
            }
        }
        self.vcode.insts = insts;
        self.vcode.origins = origins;
        self.vcode.blocks = blocks;
        self.vcode.num_vregs = self.aliases.len();
        self.vcode.incoming_args = self.sig.stack_args;
        self.vcode.popped = self.sig.popped;
        // One that cannot be computed has been refused.
        self.vcode.stack_limit = StackLimit::new(self.func, &self.sig).ok().flatten();
        self.vcode.finish();
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
