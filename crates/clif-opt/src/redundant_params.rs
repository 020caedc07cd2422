//! Removes block parameters that always have the same value: each predecessor passes that value or
//! the parameter itself.
//!
//! Cranelift's pass does the same only for values that are not parameters. A front end that passes
//! all variables to every loop leaves more: an inner loop that does not change a variable has a
//! copy of the parameter of the outer loop.

use super::edit::{self, Edge};
use cranelift_codegen::entity::SecondaryMap;
use cranelift_codegen::ir::{Block, Function, Value};
use rustc_hash::FxHashMap;

/// Replaces redundant parameters by their values. Returns whether anything changed. Aliases remain.
pub fn run(func: &mut Function) -> bool {
    let entry = func.layout.entry_block();
    let candidates = |block: &Block| Some(*block) != entry && func.dfg.num_block_params(*block) > 0;
    let blocks: Vec<Block> = func.layout.blocks().filter(candidates).collect();
    // The arguments that each predecessor passes to a block; `None` if an argument is not a value.
    let mut incoming_args: SecondaryMap<Block, Option<Vec<Vec<Value>>>> = SecondaryMap::with_default(Some(Vec::new()));
    for block in func.layout.blocks() {
        let Some(inst) = func.layout.last_inst(block) else {
            continue;
        };
        for number in 0..edit::destinations(func, inst).len() {
            let edge = Edge { inst, number };
            let Some(target) = edit::target(func, edge) else {
                continue;
            };
            match (edit::args(func, edge), &mut incoming_args[target]) {
                (Some(args), Some(incoming)) => incoming.push(args),
                (None, incoming) => *incoming = None,
                (_, None) => {}
            }
        }
    }
    let mut replacements: FxHashMap<Value, Value> = FxHashMap::default();
    let mut changed = true;
    while changed {
        changed = false;
        for &block in &blocks {
            let Some(incoming) = &incoming_args[block] else {
                continue;
            };
            for (index, &param) in func.dfg.block_params(block).iter().enumerate() {
                if replacements.contains_key(&param) {
                    continue;
                }
                let mut values = incoming
                    .iter()
                    .filter_map(|args| args.get(index))
                    .map(|&arg| resolve(func, &replacements, arg));
                let mut others = values.by_ref().filter(|&value| value != param);
                let Some(one) = others.next() else { continue };
                if others.all(|value| value == one) {
                    replacements.insert(param, one);
                    changed = true;
                }
            }
        }
    }
    if replacements.is_empty() {
        return false;
    }
    replace(func, &blocks, &replacements);
    true
}

/// Follows aliases and replacements of a value.
fn resolve(func: &Function, replacements: &FxHashMap<Value, Value>, value: Value) -> Value {
    let mut value = func.dfg.resolve_aliases(value);
    while let Some(&replacement) = replacements.get(&value) {
        value = replacement;
    }
    value
}

fn replace(func: &mut Function, blocks: &[Block], replacements: &FxHashMap<Value, Value>) {
    let mut removed: SecondaryMap<Block, Vec<usize>> = SecondaryMap::new();
    for &block in blocks {
        let params: Vec<Value> = func.dfg.block_params(block).to_vec();
        for (index, &param) in params.iter().enumerate().rev() {
            if replacements.contains_key(&param) {
                removed[block].push(index);
            }
        }
    }
    let all: Vec<Block> = func.layout.blocks().collect();
    for block in all {
        let Some(inst) = func.layout.last_inst(block) else {
            continue;
        };
        for number in 0..edit::destinations(func, inst).len() {
            let edge = Edge { inst, number };
            if let Some(target) = edit::target(func, edge) {
                edit::remove_arguments(func, edge, &removed[target]);
            }
        }
    }
    for &block in blocks {
        let params: Vec<Value> = func.dfg.block_params(block).to_vec();
        for param in params {
            if replacements.contains_key(&param) {
                let value = resolve(func, replacements, param);
                func.dfg.remove_block_param(param);
                func.dfg.change_to_alias(param, value);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use cranelift_codegen::{Context, settings};

    #[test]
    fn parameters_passed_through_inner_loops_are_removed() {
        let text = "function %f(i32, i32) -> i32 {
            block0(v0: i32, v1: i32):
                jump block1(v0, v1)
            block1(v2: i32, v3: i32):
                jump block2(v2, v3, v3)
            block2(v4: i32, v5: i32, v6: i32):
                v7 = iadd v6, v4
                jump block3(v4, v5, v7, v4)
            block3(v8: i32, v9: i32, v10: i32, v11: i32):
                v12 = isub v10, v9
                v13 = isub v12, v11
                brif v13, block3(v8, v9, v13, v8), block4
            block4:
                brif v12, block2(v8, v9, v12), block5
            block5:
                v14 = iadd v8, v12
                brif v14, block1(v14, v9), block6
            block6:
                return v12
            }";
        let functions = cranelift_reader::parse_functions(text).unwrap();
        let mut ctx = Context::for_function(functions[0].clone());
        assert!(run(&mut ctx.func));
        crate::clean::resolve_aliases(&mut ctx.func);
        ctx.verify(&settings::Flags::new(settings::builder())).unwrap();
        let params = |number: u32| ctx.func.dfg.num_block_params(Block::from_u32(number));
        // The variable of the outermost loop and the sums of the inner loops remain.
        assert_eq!((params(1), params(2), params(3)), (1, 1, 1));
        assert!(!run(&mut ctx.func));
    }
}
