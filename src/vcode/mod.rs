//! VCode: a function as machine instructions in basic blocks, between lowering and emission.
//!
//! Invariants: blocks are numbered in layout order, the entry first; instructions of a block are
//! contiguous; every block ends in exactly one branch or exit; no edge is critical; every virtual
//! register is defined once.

pub mod dce;
pub mod pool;
pub mod presched;

use crate::abi::limit::StackLimit;
use crate::abi::registers::{RegisterSet, clobbered};
use crate::error::CompileError;
use crate::inst::{
    MInst,
    operands::OperandVisitor,
    reg::{Reg, to_preg},
};
use crate::provenance::{Producer, Provenance, RuleChains};
use cranelift_codegen::ir::{self, SourceLoc, ValueLabel};
use pool::VectorPool;
use regalloc2::{Block, Inst, InstRange, Operand, OperandConstraint, OperandKind, OperandPos, PRegSet, RegClass, VReg};
use smallvec::SmallVec;
use std::fmt;
use std::ops::Range;
use std::sync::OnceLock;

/// The origin of an instruction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Origin {
    /// Source location in the program that was compiled to CLIF.
    pub srcloc: SourceLoc,
    /// The CLIF instruction.
    pub inst: Option<ir::Inst>,
    /// The rules or the pass that produced it.
    pub provenance: Provenance,
}

impl Origin {
    /// Creates the origin of an instruction that belongs to no CLIF instruction.
    pub fn produced_by(producer: Producer) -> Self {
        Self {
            provenance: Provenance::produced_by(producer),
            ..Self::default()
        }
    }

    /// Removes the CLIF instruction and replaces the producer. The source location stays.
    #[must_use]
    pub fn without_inst(self, producer: Producer) -> Self {
        Self {
            inst: None,
            provenance: Provenance::produced_by(producer),
            ..self
        }
    }

    /// Replaces the producer.
    #[must_use]
    pub fn with_producer(self, producer: Producer) -> Self {
        Self {
            provenance: self.provenance.with_producer(producer),
            ..self
        }
    }
}

/// Parameters of a block, or arguments for them.
pub type VRegs = SmallVec<[VReg; 4]>;

/// A basic block.
#[derive(Clone, Debug)]
pub struct VBlock {
    /// Its instructions.
    pub insts: Range<u32>,
    /// Successors, in the order of the branch.
    pub succs: SmallVec<[Block; 2]>,
    /// Predecessors.
    pub preds: SmallVec<[Block; 2]>,
    /// Parameters.
    pub params: VRegs,
    /// For each successor the arguments for its parameters.
    pub branch_args: SmallVec<[VRegs; 2]>,
    /// The CLIF block. `None` for a block that splits a critical edge.
    pub clif: Option<ir::Block>,
}

/// A value label bound to a virtual register for a range of instructions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LabelledRange {
    /// The register.
    pub reg: VReg,
    /// Index of the first instruction of the range.
    pub start: u32,
    /// One past the last.
    pub end: u32,
    /// The label.
    pub label: ValueLabel,
}

/// A function as machine instructions.
#[derive(Clone, Debug, Default)]
pub struct VCode {
    /// The instructions of all blocks.
    pub insts: Vec<MInst>,
    /// The origin of each instruction.
    pub origins: Vec<Origin>,
    /// The blocks in layout order.
    pub blocks: Vec<VBlock>,
    /// The number of virtual registers.
    pub num_vregs: usize,
    /// Bytes at the bottom of the frame for arguments of calls.
    pub outgoing_args: u32,
    /// Bytes of stack arguments that the caller provides.
    pub incoming_args: u32,
    /// Size and alignment of the areas that lowering reserved in the frame.
    pub locals: Vec<(u32, u32)>,
    /// Constant vectors after the code.
    pub pool: VectorPool,
    /// The maximum number of bytes of stack arguments of tail calls, rounded up to the alignment of
    /// the stack.
    pub tail_args: u32,
    /// Whether the function contains a call that returns.
    pub has_calls: bool,
    /// Whether it catches exceptions.
    pub has_handlers: bool,
    /// Whether it ends with a tail call.
    pub has_tail_calls: bool,
    /// The increase of the stack pointer from entry to return.
    pub popped: u32,
    /// The lower bound of the frame's addresses.
    pub stack_limit: Option<StackLimit>,
    /// Whether a virtual register may hold a vector.
    pub has_vectors: bool,
    /// Whether the function needs `fp`.
    pub uses_frame_pointer: bool,
    /// Labels of values, sorted by register.
    pub labels: Vec<LabelledRange>,
    /// The rule chains to which the provenance of instructions refers.
    pub rule_chains: RuleChains,
    /// The operands of all instructions, and the end of the operands of each instruction. Both are
    /// empty while they are not up to date.
    operands: Vec<Operand>,
    operand_ends: Vec<u32>,
    /// The number of uses of each register, including arguments of branches, at the end of
    /// lowering.
    uses: Vec<u32>,
    debug_labels: Vec<(VReg, Inst, Inst, u32)>,
    /// The registers that calls may clobber. Without vectors, the vector registers are left out.
    clobber_mask: PRegSet,
}

struct Collect<'a>(&'a mut Vec<Operand>);

impl OperandVisitor for Collect<'_> {
    fn operand(&mut self, reg: &mut Reg, constraint: OperandConstraint, kind: OperandKind, pos: OperandPos) {
        if let Reg::Virtual(vreg) = *reg {
            self.0.push(Operand::new(vreg, constraint, kind, pos));
        }
    }
}

/// Replaces aliases of registers, collects the operands and counts the uses.
struct Resolve<'a> {
    aliases: &'a [VReg],
    uses: &'a mut [u32],
    operands: &'a mut Vec<Operand>,
}

impl OperandVisitor for Resolve<'_> {
    fn operand(&mut self, reg: &mut Reg, constraint: OperandConstraint, kind: OperandKind, pos: OperandPos) {
        if let Reg::Virtual(vreg) = reg {
            *vreg = resolved(self.aliases, *vreg);
            self.uses[vreg.vreg()] += u32::from(kind == OperandKind::Use);
            self.operands.push(Operand::new(*vreg, constraint, kind, pos));
        }
    }
}

/// Returns the register for which an alias stands. `aliases` maps each register to another one, or
/// to itself if it is no alias.
pub fn resolved(aliases: &[VReg], mut reg: VReg) -> VReg {
    while aliases[reg.vreg()] != reg {
        reg = aliases[reg.vreg()];
    }
    reg
}

impl VCode {
    /// Replaces aliases of registers, and collects operands and uses. Lowering calls it once, when
    /// all instructions and blocks exist.
    ///
    /// # Errors
    ///
    /// [`CompileError::TooLarge`] if the number of operands exceeds 32 bits.
    pub fn resolve(&mut self, aliases: &[VReg]) -> Result<(), CompileError> {
        self.num_vregs = aliases.len();
        self.uses = vec![0; aliases.len()];
        for arg in self
            .blocks
            .iter_mut()
            .flat_map(|block| &mut block.branch_args)
            .flatten()
        {
            *arg = resolved(aliases, *arg);
            self.uses[arg.vreg()] += 1;
        }
        self.operands.reserve(self.insts.len() * 3);
        self.operand_ends.reserve(self.insts.len());
        let mut visitor = Resolve {
            aliases,
            uses: &mut self.uses,
            operands: &mut self.operands,
        };
        for inst in &mut self.insts {
            inst.visit_operands(&mut visitor);
            self.operand_ends.push(operand_count(visitor.operands)?);
        }
        Ok(())
    }

    /// Collects the operands.
    fn collect(&mut self) -> Result<(), CompileError> {
        self.operands.clear();
        self.operand_ends.clear();
        for inst in &mut self.insts {
            inst.visit_operands(&mut Collect(&mut self.operands));
            self.operand_ends.push(operand_count(&self.operands)?);
        }
        Ok(())
    }

    /// Computes predecessors, and operands unless they are up to date. It must be called once, when
    /// the instructions are complete.
    ///
    /// # Errors
    ///
    /// [`CompileError::TooLarge`] if the number of operands exceeds 32 bits.
    pub fn finish(&mut self) -> Result<(), CompileError> {
        for index in 0..self.blocks.len() {
            for number in 0..self.blocks[index].succs.len() {
                let succ = self.blocks[index].succs[number];
                self.blocks[succ.index()].preds.push(Block::new(index));
            }
        }
        if self.operand_ends.len() != self.insts.len() {
            self.collect()?;
        }
        self.clobber_mask = clobber_mask(self.has_vectors);
        self.labels.sort_by_key(|l| (l.reg.vreg(), l.start));
        self.debug_labels = self
            .labels
            .iter()
            .map(|l| {
                (
                    l.reg,
                    Inst::new(l.start as usize),
                    Inst::new(l.end as usize),
                    l.label.as_u32(),
                )
            })
            .collect();
        Ok(())
    }

    /// Returns the sum over all registers of the number of instructions from the first one that
    /// names the register to the last.
    pub fn live_instructions(&self) -> usize {
        let mut lasts = vec![u32::MAX; self.num_vregs];
        let mut sum = 0;
        let mut start = 0;
        for (&end, position) in self.operand_ends.iter().zip(0u32..) {
            for operand in &self.operands[start..end as usize] {
                // Add the distance to the previous mention of the register.
                let last = &mut lasts[operand.vreg().vreg()];
                sum += position.saturating_sub(*last) as usize;
                *last = position;
            }
            start = end as usize;
        }
        sum
    }
}

/// Returns the registers that calls may clobber.
fn clobber_mask(has_vectors: bool) -> PRegSet {
    static MASKS: OnceLock<[PRegSet; 2]> = OnceLock::new();
    let masks = MASKS.get_or_init(|| {
        let all = clobbered(RegisterSet::All);
        let scalars = all.into_iter().filter(|reg| reg.class() == RegClass::Int);
        [scalars.collect(), all]
    });
    masks[usize::from(has_vectors)]
}

/// Returns the end of the operands of an instruction whose operands are the last in the list.
fn operand_count(operands: &[Operand]) -> Result<u32, CompileError> {
    u32::try_from(operands.len()).map_err(|_| CompileError::TooLarge("the function has too many operands".to_owned()))
}

impl regalloc2::Function for VCode {
    fn num_insts(&self) -> usize {
        self.insts.len()
    }

    fn num_blocks(&self) -> usize {
        self.blocks.len()
    }

    fn entry_block(&self) -> Block {
        Block::new(0)
    }

    fn block_insns(&self, block: Block) -> InstRange {
        let range = &self.blocks[block.index()].insts;
        InstRange::new(Inst::new(range.start as usize), Inst::new(range.end as usize))
    }

    fn block_succs(&self, block: Block) -> &[Block] {
        &self.blocks[block.index()].succs
    }

    fn block_preds(&self, block: Block) -> &[Block] {
        &self.blocks[block.index()].preds
    }

    fn block_params(&self, block: Block) -> &[VReg] {
        &self.blocks[block.index()].params
    }

    fn is_ret(&self, insn: Inst) -> bool {
        self.insts[insn.index()].is_exit()
    }

    fn is_branch(&self, insn: Inst) -> bool {
        self.insts[insn.index()].is_branch()
    }

    fn branch_blockparams(&self, block: Block, _insn: Inst, succ_idx: usize) -> &[VReg] {
        &self.blocks[block.index()].branch_args[succ_idx]
    }

    fn inst_operands(&self, insn: Inst) -> &[Operand] {
        let index = insn.index();
        let start = if index == 0 { 0 } else { self.operand_ends[index - 1] };
        &self.operands[start as usize..self.operand_ends[index] as usize]
    }

    fn inst_clobbers(&self, insn: Inst) -> PRegSet {
        match &self.insts[insn.index()] {
            MInst::Call(info) => info.clobbers & self.clobber_mask,
            MInst::TryCall(info) => info.call.clobbers,
            MInst::Op { op, .. } => {
                let mut set = PRegSet::empty();
                for &reg in op.desc().implicit_defs {
                    set.add(to_preg(reg));
                }
                set
            }
            _ => PRegSet::empty(),
        }
    }

    fn num_vregs(&self) -> usize {
        self.num_vregs
    }

    fn debug_value_labels(&self) -> &[(VReg, Inst, Inst, u32)] {
        &self.debug_labels
    }

    fn spillslot_size(&self, regclass: RegClass) -> usize {
        crate::abi::registers::spill_words(regclass)
    }
}

impl VCode {
    /// Passes each line of the text to `line`, without its end: labels of blocks, and instructions
    /// with their numbers.
    pub fn lines(&self, mut line: impl FnMut(Option<usize>, String)) {
        for (index, block) in self.blocks.iter().enumerate() {
            let mut text = format!("block{index}");
            let names = |list: &VRegs| -> String {
                let names: Vec<String> = list.iter().map(|&reg| Reg::Virtual(reg).to_string()).collect();
                names.join(", ")
            };
            if !block.params.is_empty() {
                text += &format!("({})", names(&block.params));
            }
            text.push(':');
            if let Some(clif) = block.clif {
                text += &format!("  ; {clif}");
            }
            line(None, text);
            for number in block.insts.start as usize..block.insts.end as usize {
                let inst = &self.insts[number];
                let mut text = format!("    {inst}");
                if inst.is_branch() {
                    for (succ, args) in block.succs.iter().zip(&block.branch_args) {
                        text += &format!(" block{}({})", succ.index(), names(args));
                    }
                }
                line(Some(number), text);
            }
        }
    }
}

impl fmt::Display for VCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut result = Ok(());
        self.lines(|_, text| {
            if result.is_ok() {
                result = writeln!(f, "{text}");
            }
        });
        result
    }
}
