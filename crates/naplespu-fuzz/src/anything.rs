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

use crate::instruction::Generator;
use crate::random::Dice;
use cranelift_codegen::ir::InstBuilder;
use cranelift_codegen::ir::entities::AnyEntity;
use cranelift_codegen::ir::immediates::Imm64;
use cranelift_codegen::ir::{
    Block, BlockArg, BlockCall, DebugTag, ExceptionTableData, ExceptionTableItem, ExceptionTag, Function, GlobalValue,
    GlobalValueData, Inst, InstructionData, JumpTableData, MemFlagsData, Opcode, RelSourceLoc, SourceLoc,
    StackSlotData, StackSlotKind, Type, UserFuncName, UserStackMapEntry, ValueLabel, ValueLabelAssignments,
    ValueLabelStart, types,
};
use cranelift_codegen::isa::CallConv;
use cranelift_codegen::settings;
use cranelift_naplespu::{Isa, verify_function};
use naplespu_filetests::reduce::remove;

/// Iterations of the repair before the function is abandoned.
const REPAIRS: usize = 8;

/// The terminator of a block in the skeleton.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    Return,
    Trap,
    TailCall,
    TailCallIndirect,
    Jump,
    Brif,
    Table,
    Try,
    TryIndirect,
}

/// Terminators with successors; frequent ones are repeated.
const INNER: &[End] = &[End::Jump, End::Jump, End::Brif, End::Brif, End::Brif, End::Table];
const EXITS: &[End] = &[
    End::Return,
    End::Return,
    End::Return,
    End::Trap,
    End::TailCall,
    End::TailCallIndirect,
];

struct Skeleton {
    end: End,
    targets: Vec<usize>,
}

/// Generates a function that Cranelift's verifier accepts. Returns `None` if the repair fails.
pub fn generate(dice: Dice<'_, '_>, isa: &Isa) -> Option<Function> {
    let mut generator = Generator::new(dice, isa, None);
    generator.tame = generator.dice.chance(3, 5);
    generator.convention = convention(&mut generator);
    generator.func.name = UserFuncName::testcase("f");
    generator.func.signature = generator.signature(generator.convention);
    declarations(&mut generator);
    let skeleton = skeleton(&mut generator);
    body(&mut generator, &skeleton);
    extras(&mut generator);
    repair(generator.func)
}

fn convention(generator: &mut Generator<'_, '_, '_>) -> CallConv {
    let all = [
        CallConv::Fast,
        CallConv::SystemV,
        CallConv::Tail,
        CallConv::PreserveAll,
        CallConv::Probestack,
        CallConv::WindowsFastcall,
        CallConv::AppleAarch64,
        CallConv::Winch,
    ];
    let is_common = generator.tame || generator.dice.chance(2, 3);
    generator.dice.one_of(if is_common { &all[..3] } else { &all })
}

/// Declares stack slots and global values.
fn declarations(generator: &mut Generator<'_, '_, '_>) {
    for _ in 0..generator.dice.range(0, 3) {
        let kind = if generator.tame || generator.dice.chance(4, 5) {
            StackSlotKind::ExplicitSlot
        } else {
            StackSlotKind::ExplicitDynamicSlot
        };
        let size = generator.dice.range(0, 300);
        let data = StackSlotData::new(kind, size, generator.dice.range(0, 8));
        generator.func.create_sized_stack_slot(data);
    }
    generator.symbol(false);
    if !generator.tame {
        generator.symbol(true);
        generator.func.create_global_value(GlobalValueData::VMContext);
        derived_globals(generator);
        if generator.dice.chance(1, 8) {
            let all: Vec<_> = generator.func.global_values.keys().collect();
            generator.func.stack_limit = Some(generator.dice.one_of(&all));
        }
    } else if generator.dice.chance(1, 10) {
        generator.func.stack_limit = generator.func.global_values.keys().next();
    }
}

/// Chooses the terminators and creates the blocks with their parameters.
fn skeleton(generator: &mut Generator<'_, '_, '_>) -> Vec<Skeleton> {
    let count = generator.dice.range(1, 7usize);
    let mut all = Vec::new();
    for index in 0..count {
        let inner = count > 1 && (index + 1 < count || generator.dice.chance(1, 4));
        let end = match inner {
            true if !generator.tame && generator.dice.chance(1, 10) => {
                generator.dice.one_of(&[End::Try, End::TryIndirect])
            }
            true => generator.dice.one_of(INNER),
            false => generator.dice.one_of(EXITS),
        };
        let targets = match end {
            End::Jump => 1,
            End::Brif => 2,
            End::Table => generator.dice.range(1, 5),
            End::Try | End::TryIndirect => generator.dice.range(1, 3),
            _ => 0,
        };
        let targets: Vec<usize> = (0..targets)
            // Forward edges are more frequent, so that most blocks are reachable. The entry block
            // has no predecessors.
            .map(|_| match generator.dice.chance(3, 4) && index + 1 < count {
                true => generator.dice.range(index + 1, count - 1),
                false => generator.dice.range(1, count - 1),
            })
            .collect();
        all.push(Skeleton { end, targets });
    }
    for index in 0..count {
        let block = generator.func.dfg.make_block();
        if index == 0 {
            let params: Vec<Type> = generator.func.signature.params.iter().map(|p| p.value_type).collect();
            for ty in params {
                generator.func.dfg.append_block_param(block, ty);
            }
        } else {
            for _ in 0..generator.dice.range(0, 3) {
                let ty = generator.ty();
                generator.func.dfg.append_block_param(block, ty);
            }
        }
        generator.func.layout.append_block(block);
        if index > 0 && generator.dice.chance(1, 12) {
            generator.func.layout.set_cold(block);
        }
    }
    all
}

/// Returns the dominators of each block as a bit set. An unreachable block is dominated only by
/// itself.
fn dominators(skeleton: &[Skeleton]) -> Vec<u32> {
    let all = (1u32 << skeleton.len()) - 1;
    let mut sets = vec![all; skeleton.len()];
    sets[0] = 1;
    let mut reached = 1u32;
    let mut changed = true;
    while changed {
        changed = false;
        for (from, block) in skeleton
            .iter()
            .enumerate()
            .filter(|(from, _)| reached & 1 << from != 0)
            .collect::<Vec<_>>()
        {
            for &to in &block.targets {
                let set = sets[to] & sets[from] | 1 << to;
                changed |= set != sets[to] || reached & 1 << to == 0;
                sets[to] = set;
                reached |= 1 << to;
            }
        }
    }
    for (index, set) in sets.iter_mut().enumerate() {
        if reached & 1 << index == 0 {
            *set = 1 << index;
        }
    }
    sets
}

/// Fills the blocks; dominators first.
fn body(generator: &mut Generator<'_, '_, '_>, skeleton: &[Skeleton]) {
    let dominators = dominators(skeleton);
    let blocks: Vec<Block> = generator.func.layout.blocks().collect();
    let mut order: Vec<usize> = (0..skeleton.len()).collect();
    order.sort_by_key(|&index| dominators[index].count_ones());
    let mut defined = vec![Vec::new(); skeleton.len()];
    for index in order {
        generator.scope = (0..skeleton.len())
            .filter(|&other| dominators[index] & 1 << other != 0)
            .flat_map(|other| defined[other].clone())
            .collect();
        let outer = generator.scope.len();
        let block = blocks[index];
        generator.current = block;
        let params = generator.func.dfg.block_params(block).to_vec();
        generator.scope.extend(params);
        for _ in 0..generator.dice.range(0, 10) {
            generator.instruction();
        }
        let targets: Vec<Block> = skeleton[index].targets.iter().map(|&to| blocks[to]).collect();
        terminator(generator, skeleton[index].end, &targets);
        defined[index] = generator.scope.split_off(outer);
    }
}

fn insts(func: &Function) -> Vec<Inst> {
    let blocks = func.layout.blocks();
    blocks.flat_map(|block| func.layout.block_insts(block)).collect()
}

/// Adds metadata to instructions and values that does not change their results.
fn extras(generator: &mut Generator<'_, '_, '_>) {
    let slots: Vec<_> = generator.func.sized_stack_slots.keys().collect();
    let labels = generator.dice.chance(1, 4);
    if labels {
        generator.func.dfg.collect_debug_info();
    }
    for inst in insts(&generator.func) {
        let opcode = generator.func.dfg.insts[inst].opcode();
        if generator.dice.chance(1, 3) {
            let loc = generator.dice.range(0, 40);
            generator.func.set_srcloc(inst, SourceLoc::new(loc));
        }
        if opcode.is_call() || opcode == Opcode::SequencePoint {
            if generator.dice.chance(1, 4) {
                let mut tags = vec![DebugTag::User(generator.dice.bits() as u32)];
                tags.extend(slots.first().map(|&slot| DebugTag::StackSlot(slot)));
                generator.func.debug_tags.set(inst, tags);
            }
            if opcode.is_safepoint() && !slots.is_empty() && generator.dice.chance(1, 4) {
                let entry = UserStackMapEntry {
                    ty: generator.dice.one_of(&[types::I32, types::I64, types::I8]),
                    slot: generator.dice.one_of(&slots),
                    offset: 4 * generator.dice.range(0, 3),
                };
                generator.func.dfg.append_user_stack_map_entry(inst, entry);
            }
        }
        if labels {
            let results = generator.func.dfg.inst_results(inst).to_vec();
            for value in results {
                let start = ValueLabelStart {
                    from: RelSourceLoc::new(generator.dice.range(0, 40)),
                    label: ValueLabel::from_u32(generator.dice.range(0, 5)),
                };
                if let Some(all) = generator.func.dfg.values_labels.as_mut() {
                    all.insert(value, ValueLabelAssignments::Starts(vec![start]));
                }
            }
        }
    }
}

/// Removes the instructions and declarations that the verifier rejects.
fn repair(mut func: Function) -> Option<Function> {
    let flags = settings::Flags::new(settings::builder());
    for _ in 0..REPAIRS {
        let Err(errors) = verify_function(&func, &flags) else {
            return Some(func);
        };
        let mut bad: Vec<Inst> = errors
            .0
            .iter()
            .filter_map(|error| match error.location {
                AnyEntity::Inst(inst) => Some(inst),
                _ => None,
            })
            .collect();
        bad.sort_unstable();
        bad.dedup();
        if bad.is_empty() {
            return None;
        }
        for inst in bad {
            if func.layout.inst_block(inst).is_some() && !remove(&mut func, inst) {
                return None;
            }
        }
    }
    None
}

/// Ends the current block, with a trap if the requested terminator is not possible.
fn terminator(generator: &mut Generator<'_, '_, '_>, end: End, targets: &[Block]) {
    if ending(generator, end, targets).is_none() {
        let code = generator.trap();
        generator.cursor().ins().trap(code);
    }
}

/// Returns a jump target with arguments; results of a call may be among the arguments.
fn branch(generator: &mut Generator<'_, '_, '_>, to: Block, results: &[Type]) -> Option<BlockCall> {
    let mut args = Vec::new();
    for param in generator.func.dfg.block_params(to).to_vec() {
        let ty = generator.type_of(param);
        let index = results.iter().position(|&result| result == ty);
        let value = generator.value(ty);
        args.push(match index {
            Some(index) => BlockArg::TryCallRet(index as u32),
            None => BlockArg::Value(value?),
        });
    }
    Some(BlockCall::new(to, args, &mut generator.func.dfg.value_lists))
}

fn ending(generator: &mut Generator<'_, '_, '_>, end: End, targets: &[Block]) -> Option<()> {
    let data = match end {
        End::Return => {
            let returns: Vec<Type> = generator.func.signature.returns.iter().map(|r| r.value_type).collect();
            let values = generator.values(&returns)?;
            generator.cursor().ins().return_(&values);
            return Some(());
        }
        End::Trap => return None,
        End::TailCall => generator.call(Opcode::ReturnCall, true)?,
        End::TailCallIndirect => generator.call(Opcode::ReturnCallIndirect, true)?,
        End::Jump => InstructionData::Jump {
            opcode: Opcode::Jump,
            destination: branch(generator, targets[0], &[])?,
        },
        End::Brif => {
            let integers = [types::I8, types::I8, types::I16, types::I32, types::I64, types::I128];
            let ty = generator.dice.one_of(&integers);
            InstructionData::Brif {
                opcode: Opcode::Brif,
                arg: generator.value(ty)?,
                blocks: [branch(generator, targets[0], &[])?, branch(generator, targets[1], &[])?],
            }
        }
        End::Table => {
            let index = generator.value(types::I32)?;
            let calls = targets.iter().map(|&target| branch(generator, target, &[]));
            let calls: Vec<BlockCall> = calls.collect::<Option<_>>()?;
            let table = JumpTableData::new(calls[0], &calls[1..]);
            let table = generator.func.create_jump_table(table);
            generator.cursor().ins().br_table(index, table);
            return Some(());
        }
        End::Try | End::TryIndirect => {
            let signature = generator.callee_signature(false);
            let args = generator.arguments(signature)?;
            let results = generator.func.dfg.signatures[signature].returns.iter();
            let results: Vec<Type> = results.map(|r| r.value_type).collect();
            let normal = branch(generator, targets[0], &results)?;
            let mut items = Vec::new();
            for (tag, &target) in (0..).zip(&targets[1..]) {
                if generator.dice.chance(1, 4) {
                    items.extend(generator.value(types::I32).map(ExceptionTableItem::Context));
                }
                let call = branch(generator, target, &[])?;
                items.push(ExceptionTableItem::Tag(ExceptionTag::with_number(tag)?, call));
            }
            let exception = ExceptionTableData::new(signature, normal, items);
            let exception = generator.func.dfg.exception_tables.push(exception);
            if end == End::Try {
                let callee = generator.import(signature);
                generator.cursor().ins().try_call(callee, &args, exception);
            } else {
                let callee = generator.value(types::I32)?;
                generator.cursor().ins().try_call_indirect(callee, &args, exception);
            }
            return Some(());
        }
    };
    let ctrl = match data {
        InstructionData::Brif { arg, .. } => generator.type_of(arg),
        InstructionData::CallIndirect { .. } => types::I32,
        _ => types::INVALID,
    };
    generator.append(data, ctrl);
    Some(())
}

/// Adds global values that are computed from others.
fn derived_globals(generator: &mut Generator<'_, '_, '_>) {
    let all: Vec<GlobalValue> = generator.func.global_values.keys().collect();
    let base = generator.dice.one_of(&all);
    let flags = MemFlagsData::trusted();
    let Ok(flags) = generator.func.dfg.mem_flags.insert(flags) else {
        return;
    };
    let base = generator.func.create_global_value(GlobalValueData::Load {
        base,
        offset: 8.into(),
        global_type: types::I32,
        flags,
    });
    generator.func.create_global_value(GlobalValueData::IAddImm {
        base,
        offset: Imm64::new(16),
        global_type: types::I32,
    });
    generator
        .func
        .create_global_value(GlobalValueData::DynScaleTargetConst {
            vector_type: types::I32X4,
        });
}
