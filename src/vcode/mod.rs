//! A function as machine instructions in basic blocks: the form between lowering and emission.
//!
//! Invariants: blocks are numbered in layout order, the entry first; instructions of a block are contiguous; every
//! block ends in exactly one branch or exit; no edge is critical; every virtual register is defined once.

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
use cranelift_codegen::ir::{self, SourceLoc, ValueLabel};
use pool::VectorPool;
use regalloc2::{Block, Inst, InstRange, Operand, OperandConstraint, OperandKind, OperandPos, PRegSet, RegClass, VReg};
use std::fmt;
use std::ops::Range;

/// Where an instruction comes from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Origin {
    /// Source location in the program that was compiled to CLIF.
    pub srcloc: SourceLoc,
    /// The CLIF instruction.
    pub inst: Option<ir::Inst>,
}

/// A basic block.
#[derive(Clone, Debug)]
pub struct VBlock {
    /// Its instructions.
    pub insts: Range<u32>,
    /// Successors, in the order of the branch.
    pub succs: Vec<Block>,
    /// Predecessors.
    pub preds: Vec<Block>,
    /// Parameters.
    pub params: Vec<VReg>,
    /// For each successor the arguments for its parameters.
    pub branch_args: Vec<Vec<VReg>>,
    /// The CLIF block it was made from; none for the blocks that split critical edges.
    pub clif: Option<ir::Block>,
}

/// A value label bound to a virtual register for a range of instructions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LabelledRange {
    /// The register.
    pub reg: VReg,
    /// First instruction at which the label holds.
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
    /// For each instruction where it comes from.
    pub origins: Vec<Origin>,
    /// The blocks in layout order.
    pub blocks: Vec<VBlock>,
    /// How many virtual registers there are.
    pub num_vregs: usize,
    /// Bytes needed at the bottom of the frame for arguments of calls.
    pub outgoing_args: u32,
    /// Bytes of stack arguments that the caller provides.
    pub incoming_args: u32,
    /// Size and alignment of the areas that lowering reserved in the frame.
    pub locals: Vec<(u32, u32)>,
    /// Vectors that follow the code.
    pub pool: VectorPool,
    /// Bytes of stack arguments that its tail calls need at most, rounded up to the alignment of the stack.
    pub tail_args: u32,
    /// Whether the function calls anything and goes on afterwards.
    pub has_calls: bool,
    /// Whether a tail call ends it.
    pub has_tail_calls: bool,
    /// How much higher the stack pointer is when it returns.
    pub popped: u32,
    /// The lowest address that the frame may have.
    pub stack_limit: Option<StackLimit>,
    /// Whether the function needs `fp`.
    pub uses_frame_pointer: bool,
    /// Labels of values, sorted by register.
    pub labels: Vec<LabelledRange>,
    operands: Vec<Operand>,
    operand_ends: Vec<u32>,
    debug_labels: Vec<(VReg, Inst, Inst, u32)>,
    /// What calls can be said to change: a function without vectors need not hear of those.
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

impl VCode {
    /// Computes predecessors and operand lists. To be called once, when the instructions are complete.
    ///
    /// # Errors
    ///
    /// [`CompileError::TooLarge`] if there are more operands than 32 bits can count.
    pub fn finish(&mut self) -> Result<(), CompileError> {
        for index in 0..self.blocks.len() {
            for succ in self.blocks[index].succs.clone() {
                self.blocks[succ.index()].preds.push(Block::new(index));
            }
        }
        self.operands.reserve(self.insts.len() * 3);
        self.operand_ends.reserve(self.insts.len());
        for inst in &mut self.insts {
            inst.visit_operands(&mut Collect(&mut self.operands));
            let end = u32::try_from(self.operands.len());
            self.operand_ends
                .push(end.map_err(|_| CompileError::TooLarge("the function has too many operands".to_owned()))?);
        }
        let has_vectors = self.operands.iter().any(|operand| operand.class() == RegClass::Vector);
        let has_vectors = has_vectors
            || self
                .blocks
                .iter()
                .flat_map(|b| &b.params)
                .any(|p| p.class() == RegClass::Vector);
        let clobbered = clobbered(RegisterSet::All).into_iter();
        self.clobber_mask = clobbered
            .filter(|reg| has_vectors || reg.class() == RegClass::Int)
            .collect();
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

impl fmt::Display for VCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, block) in self.blocks.iter().enumerate() {
            write!(f, "block{index}")?;
            if !block.params.is_empty() {
                let params: Vec<String> = block.params.iter().map(|p| Reg::Virtual(*p).to_string()).collect();
                write!(f, "({})", params.join(", "))?;
            }
            write!(f, ":")?;
            if let Some(clif) = block.clif {
                write!(f, "  ; {clif}")?;
            }
            writeln!(f)?;
            for inst in &self.insts[block.insts.start as usize..block.insts.end as usize] {
                write!(f, "    {inst}")?;
                if inst.is_branch() {
                    for (succ, args) in block.succs.iter().zip(&block.branch_args) {
                        let args: Vec<String> = args.iter().map(|a| Reg::Virtual(*a).to_string()).collect();
                        write!(f, " block{}({})", succ.index(), args.join(", "))?;
                    }
                }
                writeln!(f)?;
            }
        }
        Ok(())
    }
}
