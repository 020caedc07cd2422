//! Functions over all of CLIF from bytes: every opcode, type, calling convention and kind of
//! metadata.
//!
//! A function is made in three steps. The skeleton fixes the blocks and their terminators, and so
//! the dominator tree. Instructions are added with operands that dominate them. The repair removes
//! everything that Cranelift's verifier reports. The result is valid, so the compiler must compile
//! or refuse it.
//!
//! More than half of the functions are tame: they avoid opcodes and types that this target refuses.
//! The others use everything, and nearly all of them are refused.

use crate::instruction::{CONVENTIONS, Generator, types_of};
use crate::random::Dice;
use cranelift_codegen::cursor::{Cursor, FuncCursor};
use cranelift_codegen::dominator_tree::DominatorTree;
use cranelift_codegen::entity::{PrimaryMap, SecondaryMap};
use cranelift_codegen::flowgraph::ControlFlowGraph;
use cranelift_codegen::ir::entities::AnyEntity;
use cranelift_codegen::ir::immediates::Imm64;
use cranelift_codegen::ir::{
    Block, BlockCall, DebugTag, Function, GlobalValue, GlobalValueData, Inst, InstBuilder, JumpTableData, MemFlagsData,
    Opcode, RelSourceLoc, SourceLoc, StackSlotData, StackSlotKind, TrapCode, Type, UserFuncName, UserStackMapEntry,
    Value, ValueLabel, ValueLabelAssignments, ValueLabelStart, types,
};
use cranelift_codegen::settings;
use cranelift_naplespu::{Isa, verify_function};
use naplespu_filetests::reduce::{insts, remove};

/// Iterations of the repair before the function is abandoned.
const REPAIRS: usize = 8;

/// Terminators with successors; frequent ones are repeated.
const INNER: &[Opcode] = {
    use Opcode::{BrTable, Brif, Jump};
    &[Jump, Jump, Brif, Brif, Brif, BrTable]
};
const EXITS: &[Opcode] = {
    use Opcode::{Return, ReturnCall, ReturnCallIndirect, Trap};
    &[Return, Return, Return, Trap, ReturnCall, ReturnCallIndirect]
};

/// The terminator of each block, and its targets.
type Skeleton = PrimaryMap<Block, (Opcode, Vec<Block>)>;

/// Generates a function that Cranelift's verifier accepts. Returns `None` if the repair fails.
pub fn generate(dice: Dice<'_, '_>, isa: &Isa) -> Option<Function> {
    let mut g = Generator::new(dice, isa, None);
    g.tame = g.dice.chance(3, 5);
    let is_common = g.tame || g.dice.chance(2, 3);
    g.convention = g.dice.one_of(if is_common { &CONVENTIONS[..3] } else { &CONVENTIONS });
    g.func.name = UserFuncName::testcase("f");
    g.func.signature = g.signature(g.convention);
    g.declarations();
    let skeleton = g.skeleton();
    g.body(&skeleton);
    g.extras();
    repair(g.func)
}

impl Generator<'_, '_, '_> {
    /// Declares stack slots and global values.
    fn declarations(&mut self) {
        for _ in 0..self.dice.range(0, 3) {
            let kind = if self.tame || self.dice.chance(4, 5) {
                StackSlotKind::ExplicitSlot
            } else {
                StackSlotKind::ExplicitDynamicSlot
            };
            let (size, align_shift) = (self.dice.range(0, 300), self.dice.range(0, 8));
            let data = StackSlotData::new(kind, size, align_shift);
            self.func.create_sized_stack_slot(data);
        }
        self.symbol(false);
        if !self.tame {
            self.symbol(true);
            self.func.create_global_value(GlobalValueData::VMContext);
            self.derived_globals();
        }
        if self.dice.chance(1, 8) {
            let all: Vec<GlobalValue> = self.func.global_values.keys().collect();
            self.func.stack_limit = Some(self.dice.one_of(&all));
        }
    }

    /// Adds global values that are computed from others.
    fn derived_globals(&mut self) {
        let all: Vec<GlobalValue> = self.func.global_values.keys().collect();
        let (base, global_type) = (self.dice.one_of(&all), types::I32);
        let Ok(flags) = self.func.dfg.mem_flags.insert(MemFlagsData::trusted()) else {
            return;
        };
        let offset = 8.into();
        let base = self.func.create_global_value(GlobalValueData::Load {
            base,
            offset,
            global_type,
            flags,
        });
        let offset = Imm64::new(16);
        self.func.create_global_value(GlobalValueData::IAddImm {
            base,
            offset,
            global_type,
        });
        let vector_type = types::I32X4;
        self.func
            .create_global_value(GlobalValueData::DynScaleTargetConst { vector_type });
    }

    /// Chooses the terminators and creates the blocks with their parameters.
    fn skeleton(&mut self) -> Skeleton {
        let count = self.dice.range(1, 7usize);
        let blocks: Vec<Block> = (0..count).map(|_| self.func.dfg.make_block()).collect();
        let mut all = Skeleton::new();
        for (index, &block) in blocks.iter().enumerate() {
            let is_last = index + 1 == count;
            let has_targets = count > 1 && (!is_last || self.dice.chance(1, 4));
            let end = match has_targets {
                true if !self.tame && self.dice.chance(1, 10) => {
                    self.dice.one_of(&[Opcode::TryCall, Opcode::TryCallIndirect])
                }
                true => self.dice.one_of(INNER),
                false => self.dice.one_of(EXITS),
            };
            let targets = match end {
                Opcode::Jump => 1,
                Opcode::Brif => 2,
                Opcode::BrTable => self.dice.range(1, 5),
                Opcode::TryCall | Opcode::TryCallIndirect => self.dice.range(1, 3),
                _ => 0,
            };
            // Forward edges are more frequent, so that most blocks are reachable. The entry block
            // has no predecessors.
            let target = |_| {
                let is_forward = self.dice.chance(3, 4) && !is_last;
                blocks[self.dice.range(if is_forward { index + 1 } else { 1 }, count - 1)]
            };
            let targets = (0..targets).map(target).collect();
            let params: Vec<Type> = match index {
                0 => types_of(&self.func.signature.params),
                _ => (0..self.dice.range(0, 3)).map(|_| self.ty()).collect(),
            };
            for ty in params {
                self.func.dfg.append_block_param(block, ty);
            }
            self.func.layout.append_block(block);
            if index > 0 && self.dice.chance(1, 12) {
                self.func.layout.set_cold(block);
            }
            all.push((end, targets));
        }
        all
    }

    /// Fills the blocks; dominators first. An instruction that is not possible as a terminator is
    /// replaced by a trap.
    fn body(&mut self, skeleton: &Skeleton) {
        let tree = dominators(skeleton);
        let unreachable = skeleton.keys().filter(|&block| !tree.is_reachable(block));
        let mut defined: SecondaryMap<Block, Vec<Value>> = SecondaryMap::new();
        for block in tree.cfg_rpo().copied().chain(unreachable) {
            self.scope.clear();
            let mut dominator = tree.idom(block);
            while let Some(other) = dominator {
                self.scope.extend(&defined[other]);
                dominator = tree.idom(other);
            }
            let outer = self.scope.len();
            self.current = block;
            self.scope.extend(self.func.dfg.block_params(block));
            for _ in 0..self.dice.range(0, 10) {
                self.instruction();
            }
            let (end, targets) = &skeleton[block];
            self.targets.clone_from(targets);
            if self.instruction_of(*end).is_none() {
                let code = self.trap();
                self.cursor().ins().trap(code);
            }
            defined[block] = self.scope.split_off(outer);
        }
    }

    /// Adds metadata to instructions and values that does not change their results.
    fn extras(&mut self) {
        let slots: Vec<_> = self.func.sized_stack_slots.keys().collect();
        let labels = self.dice.chance(1, 4);
        if labels {
            self.func.dfg.collect_debug_info();
        }
        for inst in insts(&self.func) {
            let opcode = self.func.dfg.insts[inst].opcode();
            if self.dice.chance(1, 3) {
                let loc = SourceLoc::new(self.dice.range(0, 40));
                self.func.set_srcloc(inst, loc);
            }
            if (opcode.is_call() || opcode == Opcode::SequencePoint) && self.dice.chance(1, 4) {
                let mut tags = vec![DebugTag::User(self.dice.bits() as u32)];
                tags.extend(slots.first().map(|&slot| DebugTag::StackSlot(slot)));
                self.func.debug_tags.set(inst, tags);
            }
            if opcode.is_call() && opcode.is_safepoint() && !slots.is_empty() && self.dice.chance(1, 4) {
                let ty = self.dice.one_of(&[types::I32, types::I64, types::I8]);
                let (slot, offset) = (self.dice.one_of(&slots), 4 * self.dice.range(0, 3));
                let entry = UserStackMapEntry { ty, slot, offset };
                self.func.dfg.append_user_stack_map_entry(inst, entry);
            }
            for &value in self.func.dfg.inst_results(inst).to_vec().iter().filter(|_| labels) {
                let from = RelSourceLoc::new(self.dice.range(0, 40));
                let label = ValueLabel::from_u32(self.dice.range(0, 5));
                let start = ValueLabelStart { from, label };
                if let Some(all) = self.func.dfg.values_labels.as_mut() {
                    all.insert(value, ValueLabelAssignments::Starts(vec![start]));
                }
            }
        }
    }
}

/// Returns the dominator tree of the skeleton, from a function with the same edges.
fn dominators(skeleton: &Skeleton) -> DominatorTree {
    let mut func = Function::new();
    for _ in skeleton.keys() {
        let block = func.dfg.make_block();
        func.layout.append_block(block);
    }
    for (block, (_, targets)) in skeleton {
        let pool = &mut func.dfg.value_lists;
        let calls: Vec<BlockCall> = targets.iter().map(|&to| BlockCall::new(to, [], pool)).collect();
        let table = calls
            .split_first()
            .map(|(first, others)| JumpTableData::new(*first, others));
        let table = table.map(|table| func.create_jump_table(table));
        let mut cursor = FuncCursor::new(&mut func).at_bottom(block);
        let index = cursor.ins().iconst(types::I32, 0);
        match table {
            Some(table) => cursor.ins().br_table(index, table),
            None => cursor.ins().trap(TrapCode::STACK_OVERFLOW),
        };
    }
    DominatorTree::with_function(&func, &ControlFlowGraph::with_function(&func))
}

/// Removes the instructions that the verifier rejects.
fn repair(mut func: Function) -> Option<Function> {
    let flags = settings::Flags::new(settings::builder());
    for _ in 0..REPAIRS {
        let Err(errors) = verify_function(&func, &flags) else {
            return Some(func);
        };
        let inst = |entity| match entity {
            AnyEntity::Inst(inst) => Some(inst),
            _ => None,
        };
        let bad: Vec<Inst> = errors.0.iter().filter_map(|error| inst(error.location)).collect();
        if bad.is_empty() {
            return None;
        }
        for inst in bad {
            // An instruction may have several errors.
            if func.layout.inst_block(inst).is_some() && !remove(&mut func, inst) {
                return None;
            }
        }
    }
    None
}
