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

use crate::instruction::{CONVENTIONS, Generator, Style, straight_opcodes, types_of};
use crate::random::Dice;
use cranelift_codegen::entity::{PrimaryMap, SecondaryMap};
use cranelift_codegen::ir::entities::AnyEntity;
use cranelift_codegen::ir::immediates::Imm64;
use cranelift_codegen::ir::{
    Block, DebugTag, Function, GlobalValueData, Inst, InstBuilder, MemFlagsData, Opcode, RelSourceLoc, SourceLoc,
    StackSlotData, StackSlotKind, Type, UserFuncName, UserStackMapEntry, Value, ValueLabel, ValueLabelAssignments,
    ValueLabelStart, types,
};
use cranelift_codegen::settings;
use cranelift_codegen::verifier::VerifierError;
use cranelift_naplespu::{Isa, verify_function};
use naplespu_filetests::reduce::{insts, remove};

/// Iterations of the repair before the function is abandoned.
const REPAIRS: usize = 8;

/// Terminators without successors; frequent ones are repeated.
const EXITS: &[Opcode] = {
    use Opcode::{Return, ReturnCall, ReturnCallIndirect, Trap};
    &[Return, Return, Return, Trap, ReturnCall, ReturnCallIndirect]
};

/// The terminator of each block, and its targets.
type Skeleton = PrimaryMap<Block, (Opcode, Vec<Block>)>;

/// Generates a function that Cranelift's verifier accepts. Returns `None` if the repair fails.
pub fn generate(dice: &mut Dice<'_>, isa: &Isa) -> Option<Function> {
    let style = Style {
        opcodes: straight_opcodes().collect(),
        ..Style::default()
    };
    let mut g = Generator::new(dice, isa, style);
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
            let kind = match self.tame || self.dice.chance(4, 5) {
                true => StackSlotKind::ExplicitSlot,
                false => StackSlotKind::ExplicitDynamicSlot,
            };
            let data = StackSlotData::new(kind, self.dice.range(0, 300), self.dice.range(0, 8));
            self.func.create_sized_stack_slot(data);
        }
        self.symbol(false);
        if !self.tame {
            self.symbol(true);
            self.func.create_global_value(GlobalValueData::VMContext);
            self.derived_globals();
        }
        if self.dice.chance(1, 8) {
            self.func.stack_limit = self.dice.key(&self.func.global_values);
        }
    }

    /// Adds global values that are computed from others.
    fn derived_globals(&mut self) {
        let (base, global_type) = (self.dice.key(&self.func.global_values), types::I32);
        let flags = self.func.dfg.mem_flags.insert(MemFlagsData::trusted());
        let (Some(base), Ok(flags), offset) = (base, flags, 8.into()) else {
            return;
        };
        let loaded = GlobalValueData::Load {
            base,
            offset,
            global_type,
            flags,
        };
        let (base, offset) = (self.func.create_global_value(loaded), Imm64::new(16));
        let sum = GlobalValueData::IAddImm {
            base,
            offset,
            global_type,
        };
        self.func.create_global_value(sum);
        let vector_type = types::I32X4;
        let scale = GlobalValueData::DynScaleTargetConst { vector_type };
        self.func.create_global_value(scale);
    }

    /// Creates the blocks with their parameters and returns them with their terminators and targets.
    fn skeleton(&mut self) -> Skeleton {
        let count = self.dice.range(1, 7usize);
        let blocks: Vec<Block> = (0..count).map(|_| self.func.dfg.make_block()).collect();
        let mut all = Skeleton::new();
        for (index, &block) in blocks.iter().enumerate() {
            let is_last = index + 1 == count;
            let (end, targets) = match count > 1 && (!is_last || self.dice.chance(1, 4)) {
                true if !self.tame && self.dice.chance(1, 10) => {
                    let calls = [Opcode::TryCall, Opcode::TryCallIndirect];
                    (self.dice.one_of(&calls), self.dice.range(1, 3))
                }
                true => match self.dice.below(6) {
                    0 | 1 => (Opcode::Jump, 1),
                    2..5 => (Opcode::Brif, 2),
                    _ => (Opcode::BrTable, self.dice.range(1, 5)),
                },
                false => (self.dice.one_of(EXITS), 0),
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
        let dominators = dominators(skeleton);
        let mut blocks: Vec<Block> = skeleton.keys().collect();
        let dominates = |block: Block, other: Block| dominators[block] >> other.as_u32() & 1 != 0;
        let count = |block: Block| skeleton.keys().filter(|&other| dominates(block, other)).count();
        blocks.sort_by_key(|&block| count(block));
        let mut defined: SecondaryMap<Block, Vec<Value>> = SecondaryMap::new();
        for block in blocks {
            self.current = block;
            let outer = skeleton.keys().filter(|&other| dominates(block, other));
            self.scope = outer.flat_map(|other| defined[other].clone()).collect();
            let outer = self.scope.len();
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
        let slots = self.func.sized_stack_slots.clone();
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
            let slot = self.dice.key(&slots);
            if (opcode.is_call() || opcode == Opcode::SequencePoint) && self.dice.chance(1, 4) {
                let user = DebugTag::User(self.dice.bits() as u32);
                let tags = [user].into_iter().chain(slot.map(DebugTag::StackSlot));
                self.func.debug_tags.set(inst, tags);
            }
            if let Some(slot) = slot.filter(|_| opcode.is_call() && opcode.is_safepoint() && self.dice.chance(1, 4)) {
                let ty = self.dice.one_of(&[types::I32, types::I64, types::I8]);
                let offset = 4 * self.dice.range(0, 3);
                let entry = UserStackMapEntry { ty, slot, offset };
                self.func.dfg.append_user_stack_map_entry(inst, entry);
            }
            let results = self.func.dfg.inst_results(inst).to_vec();
            for value in results.into_iter().filter(|_| labels) {
                let from = RelSourceLoc::new(self.dice.range(0, 40));
                let label = ValueLabel::from_u32(self.dice.range(0, 5));
                let starts = ValueLabelAssignments::Starts(vec![ValueLabelStart { from, label }]);
                let all = self.func.dfg.values_labels.get_or_insert_default();
                all.insert(value, starts);
            }
        }
    }
}

/// Returns the blocks that dominate each block, as bits. All blocks dominate an unreachable one.
fn dominators(skeleton: &Skeleton) -> SecondaryMap<Block, u32> {
    let mut all = SecondaryMap::with_default(u32::MAX);
    all[Block::from_u32(0)] = 1;
    // An iteration follows each path by at least one edge.
    for _ in skeleton.keys() {
        for (block, (_, targets)) in skeleton {
            for &target in targets {
                all[target] &= all[block] | 1 << target.as_u32();
            }
        }
    }
    all
}

/// Removes the instructions that the verifier rejects.
fn repair(mut func: Function) -> Option<Function> {
    let flags = settings::Flags::new(settings::builder());
    for _ in 0..REPAIRS {
        let Err(errors) = verify_function(&func, &flags) else {
            return Some(func);
        };
        let inst = |error: &VerifierError| match error.location {
            AnyEntity::Inst(inst) => Some(inst),
            _ => None,
        };
        let bad: Vec<Inst> = errors.0.iter().filter_map(inst).collect();
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
