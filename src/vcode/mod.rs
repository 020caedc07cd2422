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
use crate::reason::{Maker, Reasons, Why};
use cranelift_codegen::ir::{self, SourceLoc, ValueLabel};
use pool::VectorPool;
use regalloc2::{Block, Inst, InstRange, Operand, OperandConstraint, OperandKind, OperandPos, PRegSet, RegClass, VReg};
use smallvec::SmallVec;
use std::fmt;
use std::ops::Range;
use std::sync::OnceLock;

/// Where an instruction comes from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Origin {
    /// Source location in the program that was compiled to CLIF.
    pub srcloc: SourceLoc,
    /// The CLIF instruction.
    pub inst: Option<ir::Inst>,
    /// Why it is there.
    pub why: Why,
}

impl Origin {
    /// Of an instruction that belongs to no instruction of CLIF.
    pub fn made_by(maker: Maker) -> Self {
        Self {
            why: Why::made_by(maker),
            ..Self::default()
        }
    }

    /// The same place, but no instruction of CLIF, and something else made it.
    #[must_use]
    pub fn nobodys(self, maker: Maker) -> Self {
        Self {
            inst: None,
            why: Why::made_by(maker),
            ..self
        }
    }

    /// The same, but something else made it.
    #[must_use]
    pub fn remade_by(self, maker: Maker) -> Self {
        Self {
            why: self.why.remade_by(maker),
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
    /// Whether it catches exceptions.
    pub has_handlers: bool,
    /// Whether a tail call ends it.
    pub has_tail_calls: bool,
    /// How much higher the stack pointer is when it returns.
    pub popped: u32,
    /// The lowest address that the frame may have.
    pub stack_limit: Option<StackLimit>,
    /// Whether there may be a virtual register that holds a vector.
    pub has_vectors: bool,
    /// Whether the function needs `fp`.
    pub uses_frame_pointer: bool,
    /// Labels of values, sorted by register.
    pub labels: Vec<LabelledRange>,
    /// What the reasons of instructions stand for.
    pub reasons: Reasons,
    /// The operands of all instructions, and where those of each end. Both are empty while they are not known.
    operands: Vec<Operand>,
    operand_ends: Vec<u32>,
    /// How often each register is used, arguments of branches included, as lowering left the instructions.
    uses: Vec<u32>,
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

/// Collects the operands as well, after each register has become what it is an alias of, and counts the uses.
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

/// The register that a register stands for. The aliases have one for each; those that stand for themselves are their own.
pub fn resolved(aliases: &[VReg], mut reg: VReg) -> VReg {
    while aliases[reg.vreg()] != reg {
        reg = aliases[reg.vreg()];
    }
    reg
}

impl VCode {
    /// Replaces registers that are aliases by what they stand for; finds operands and uses on the way. To be called once, when
    /// lowering has all instructions and blocks.
    ///
    /// # Errors
    ///
    /// [`CompileError::TooLarge`] if there are more operands than 32 bits can count.
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

    /// Computes predecessors, and operands unless they are known. To be called once, when the instructions are complete.
    ///
    /// # Errors
    ///
    /// [`CompileError::TooLarge`] if there are more operands than 32 bits can count.
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

    /// The sum over all registers of the instructions from the first that names it to the last.
    pub fn live_instructions(&self) -> usize {
        let mut lasts = vec![u32::MAX; self.num_vregs];
        let mut sum = 0;
        let mut start = 0;
        for (&end, position) in self.operand_ends.iter().zip(0u32..) {
            for operand in &self.operands[start..end as usize] {
                // What lies between this mention and the one before.
                let last = &mut lasts[operand.vreg().vreg()];
                sum += position.saturating_sub(*last) as usize;
                *last = position;
            }
            start = end as usize;
        }
        sum
    }
}

/// What calls can be said to change.
fn clobber_mask(has_vectors: bool) -> PRegSet {
    static MASKS: OnceLock<[PRegSet; 2]> = OnceLock::new();
    let masks = MASKS.get_or_init(|| {
        let all = clobbered(RegisterSet::All);
        let scalars = all.into_iter().filter(|reg| reg.class() == RegClass::Int);
        [scalars.collect(), all]
    });
    masks[usize::from(has_vectors)]
}

/// Where the operands of an instruction end, if its own are the last in the list.
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
    /// Gives each line of the text, without its end: the starts of blocks, and instructions with their numbers.
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
