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

use super::instruction::Generator;
use arbitrary::{Result, Unstructured};
use cranelift_codegen::cursor::{Cursor, FuncCursor};
use cranelift_codegen::ir::entities::AnyEntity;
use cranelift_codegen::ir::instructions::InstructionFormat;
use cranelift_codegen::ir::{
    Block, DebugTag, Function, GlobalValueData, Inst, InstBuilderBase, Opcode, RelSourceLoc, SourceLoc, StackSlotData,
    StackSlotKind, Type, UserFuncName, UserStackMapEntry, ValueLabel, ValueLabelAssignments, ValueLabelStart, types,
};
use cranelift_codegen::isa::CallConv;
use cranelift_codegen::settings;
use cranelift_naplespu::Isa;
use cranelift_naplespu::internals::refuses;
use cranelift_naplespu::verify_function;
use naplespu_reduce::remove;

/// Iterations of the repair before the function is abandoned.
const REPAIRS: usize = 8;

/// The terminator of a block in the skeleton.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum End {
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
///
/// # Errors
///
/// Returns an error if the bytes cannot produce a choice. The end of the bytes is not an error.
pub fn generate(u: &mut Unstructured<'_>, isa: &Isa) -> Result<Option<Function>> {
    let tame = u.ratio(3, 5)?;
    let convention = convention(u, tame)?;
    let mut generator = Generator::new(u, isa, tame, convention);
    generator.func.name = UserFuncName::testcase("f");
    generator.func.signature = generator.signature(convention)?;
    declarations(&mut generator)?;
    let skeleton = skeleton(&mut generator)?;
    body(&mut generator, &skeleton)?;
    extras(&mut generator)?;
    let func = generator.func;
    Ok(repair(func))
}

fn convention(u: &mut Unstructured<'_>, tame: bool) -> Result<CallConv> {
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
    let common = if tame || u.ratio(2, 3)? { 3 } else { all.len() };
    u.choose(&all[..common]).copied()
}

/// Declares stack slots and global values.
fn declarations(generator: &mut Generator<'_, '_>) -> Result<()> {
    for _ in 0..generator.u.int_in_range(0..=3)? {
        let kind = if generator.tame || generator.u.ratio(4, 5)? {
            StackSlotKind::ExplicitSlot
        } else {
            StackSlotKind::ExplicitDynamicSlot
        };
        let size = generator.u.int_in_range(0..=300)?;
        let data = StackSlotData::new(kind, size, generator.u.int_in_range(0..=8)?);
        generator.func.create_sized_stack_slot(data);
    }
    generator.symbol(false)?;
    if !generator.tame {
        generator.symbol(true)?;
        generator.func.create_global_value(GlobalValueData::VMContext);
        generator.derived_globals()?;
        if generator.u.ratio(1, 8)? {
            let all: Vec<_> = generator.func.global_values.keys().collect();
            generator.func.stack_limit = Some(*generator.u.choose(&all)?);
        }
    } else if generator.u.ratio(1, 10)? {
        generator.func.stack_limit = generator.func.global_values.keys().next();
    }
    Ok(())
}

/// Chooses the terminators and creates the blocks with their parameters.
fn skeleton(generator: &mut Generator<'_, '_>) -> Result<Vec<Skeleton>> {
    let count = generator.u.int_in_range(1..=7usize)?;
    let mut all = Vec::new();
    for index in 0..count {
        let inner = count > 1 && (index + 1 < count || generator.u.ratio(1, 4)?);
        let end = match inner {
            true if !generator.tame && generator.u.ratio(1, 10)? => {
                *generator.u.choose(&[End::Try, End::TryIndirect])?
            }
            true => *generator.u.choose(INNER)?,
            false => *generator.u.choose(EXITS)?,
        };
        let targets = match end {
            End::Jump => 1,
            End::Brif => 2,
            End::Table => generator.u.int_in_range(1..=5)?,
            End::Try | End::TryIndirect => generator.u.int_in_range(1..=3)?,
            _ => 0,
        };
        let targets: Result<Vec<usize>> = (0..targets)
            // Forward edges are more frequent, so that most blocks are reachable. The entry block
            // has no predecessors.
            .map(|_| match generator.u.ratio(3, 4)? && index + 1 < count {
                true => generator.u.int_in_range(index + 1..=count - 1),
                false => generator.u.int_in_range(1..=count - 1),
            })
            .collect();
        all.push(Skeleton { end, targets: targets? });
    }
    for index in 0..count {
        let block = generator.func.dfg.make_block();
        generator.blocks.push(block);
        if index == 0 {
            let params: Vec<Type> = generator.func.signature.params.iter().map(|p| p.value_type).collect();
            for ty in params {
                generator.func.dfg.append_block_param(block, ty);
            }
        } else {
            for _ in 0..generator.u.int_in_range(0..=3)? {
                let ty = generator.ty()?;
                generator.func.dfg.append_block_param(block, ty);
            }
        }
        generator.func.layout.append_block(block);
        if index > 0 && generator.u.ratio(1, 12)? {
            generator.func.layout.set_cold(block);
        }
    }
    Ok(all)
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
fn body(generator: &mut Generator<'_, '_>, skeleton: &[Skeleton]) -> Result<()> {
    let dominators = dominators(skeleton);
    let mut order: Vec<usize> = (0..skeleton.len()).collect();
    order.sort_by_key(|&index| dominators[index].count_ones());
    let mut defined = vec![Vec::new(); skeleton.len()];
    for index in order {
        generator.scope = (0..skeleton.len())
            .filter(|&other| dominators[index] & 1 << other != 0)
            .flat_map(|other| defined[other].clone())
            .collect();
        let outer = generator.scope.len();
        let block = generator.blocks[index];
        generator.current = block;
        let params = generator.func.dfg.block_params(block).to_vec();
        generator.scope.extend(params);
        for _ in 0..generator.u.int_in_range(0..=10)? {
            generator.instruction()?;
        }
        let targets: Vec<Block> = skeleton[index].targets.iter().map(|&to| generator.blocks[to]).collect();
        generator.terminator(skeleton[index].end, &targets)?;
        defined[index] = generator.scope.split_off(outer);
    }
    Ok(())
}

fn insts(func: &Function) -> Vec<Inst> {
    let blocks = func.layout.blocks();
    blocks.flat_map(|block| func.layout.block_insts(block)).collect()
}

/// Adds metadata to instructions and values that does not change their results.
fn extras(generator: &mut Generator<'_, '_>) -> Result<()> {
    let slots: Vec<_> = generator.func.sized_stack_slots.keys().collect();
    let labels = generator.u.ratio(1, 4)?;
    if labels {
        generator.func.dfg.collect_debug_info();
    }
    for inst in insts(&generator.func) {
        let opcode = generator.func.dfg.insts[inst].opcode();
        if generator.u.ratio(1, 3)? {
            let loc = generator.u.int_in_range(0..=40)?;
            generator.func.set_srcloc(inst, SourceLoc::new(loc));
        }
        if opcode.is_call() || opcode == Opcode::SequencePoint {
            if generator.u.ratio(1, 4)? {
                let mut tags = vec![DebugTag::User(generator.u.arbitrary()?)];
                tags.extend(slots.first().map(|&slot| DebugTag::StackSlot(slot)));
                generator.func.debug_tags.set(inst, tags);
            }
            if opcode.is_safepoint() && !slots.is_empty() && generator.u.ratio(1, 4)? {
                let entry = UserStackMapEntry {
                    ty: *generator.u.choose(&[types::I32, types::I64, types::I8])?,
                    slot: *generator.u.choose(&slots)?,
                    offset: 4 * generator.u.int_in_range(0..=3)?,
                };
                generator.func.dfg.append_user_stack_map_entry(inst, entry);
            }
        }
        if labels {
            let results = generator.func.dfg.inst_results(inst).to_vec();
            for value in results {
                let start = ValueLabelStart {
                    from: RelSourceLoc::new(generator.u.int_in_range(0..=40)?),
                    label: ValueLabel::from_u32(generator.u.int_in_range(0..=5)?),
                };
                if let Some(all) = generator.func.dfg.values_labels.as_mut() {
                    all.insert(value, ValueLabelAssignments::Starts(vec![start]));
                }
            }
        }
    }
    Ok(())
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

/// Returns all opcodes that do not end a block.
pub(super) fn straight_opcodes() -> impl Iterator<Item = Opcode> {
    let ends = |opcode: &Opcode| opcode.is_terminator() || opcode.is_branch();
    Opcode::all().iter().copied().filter(move |opcode| !ends(opcode))
}

/// Returns whether this target refuses the instruction.
pub(super) fn refused(func: &Function, inst: Inst, isa: &Isa) -> bool {
    refuses(func, inst, isa)
}

/// Appends an instruction to a block.
pub(super) fn append(
    func: &mut Function,
    block: Block,
    data: cranelift_codegen::ir::InstructionData,
    ctrl: Type,
) -> Inst {
    let mut cursor = FuncCursor::new(func).at_bottom(block);
    cursor.ins().build(data, ctrl).0
}

/// Returns whether the opcode is a call, whose operands depend on a signature.
pub(super) fn is_call(opcode: Opcode) -> bool {
    matches!(
        opcode.format(),
        InstructionFormat::Call | InstructionFormat::CallIndirect
    )
}
