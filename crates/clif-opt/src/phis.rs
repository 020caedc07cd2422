//! Block parameters that are one value go: each way to the block passes that value, or the parameter itself.
//!
//! Cranelift's pass does the same for values that are no parameters. A front end that passes all variables to every loop leaves
//! others: what an inner loop only hands on is a parameter of the outer one, which changes, and that of the inner one is it all the time.

use super::edit::{self, Edge};
use cranelift_codegen::entity::SecondaryMap;
use cranelift_codegen::ir::{Block, Function, Value};
use rustc_hash::FxHashMap;

/// Replaces such parameters by what they are. Gives whether there were any; aliases are left behind.
pub fn run(func: &mut Function) -> bool {
    let entry = func.layout.entry_block();
    let candidates = |block: &Block| Some(*block) != entry && func.dfg.num_block_params(*block) > 0;
    let blocks: Vec<Block> = func.layout.blocks().filter(candidates).collect();
    // The arguments of each way to a block; `None` for a block that gets what is no value.
    let mut into: SecondaryMap<Block, Option<Vec<Vec<Value>>>> = SecondaryMap::with_default(Some(Vec::new()));
    for block in func.layout.blocks() {
        let Some(inst) = func.layout.last_inst(block) else {
            continue;
        };
        for number in 0..edit::destinations(func, inst).len() {
            let edge = Edge { inst, number };
            let Some(target) = edit::target(func, edge) else {
                continue;
            };
            match (edit::args(func, edge), &mut into[target]) {
                (Some(args), Some(ways)) => ways.push(args),
                (None, ways) => *ways = None,
                (_, None) => {}
            }
        }
    }
    let mut same: FxHashMap<Value, Value> = FxHashMap::default();
    let mut again = true;
    while again {
        again = false;
        for &block in &blocks {
            let Some(ways) = &into[block] else { continue };
            for (index, &param) in func.dfg.block_params(block).iter().enumerate() {
                if same.contains_key(&param) {
                    continue;
                }
                let mut values = ways
                    .iter()
                    .filter_map(|args| args.get(index))
                    .map(|&arg| found(func, &same, arg));
                let mut others = values.by_ref().filter(|&value| value != param);
                let Some(one) = others.next() else { continue };
                if others.all(|value| value == one) {
                    same.insert(param, one);
                    again = true;
                }
            }
        }
    }
    if same.is_empty() {
        return false;
    }
    replace(func, &blocks, &same);
    true
}

/// What a value is, as far as that is known.
fn found(func: &Function, same: &FxHashMap<Value, Value>, value: Value) -> Value {
    let mut value = func.dfg.resolve_aliases(value);
    while let Some(&other) = same.get(&value) {
        value = other;
    }
    value
}

fn replace(func: &mut Function, blocks: &[Block], same: &FxHashMap<Value, Value>) {
    let mut gone: SecondaryMap<Block, Vec<usize>> = SecondaryMap::new();
    for &block in blocks {
        let params: Vec<Value> = func.dfg.block_params(block).to_vec();
        for (index, &param) in params.iter().enumerate().rev() {
            if same.contains_key(&param) {
                gone[block].push(index);
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
                edit::remove_arguments(func, edge, &gone[target]);
            }
        }
    }
    for &block in blocks {
        let params: Vec<Value> = func.dfg.block_params(block).to_vec();
        for param in params {
            if same.contains_key(&param) {
                let value = found(func, same, param);
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
    fn what_inner_loops_hand_on_is_a_parameter_of_the_outer_one() {
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
        // Left are what the outermost loop changes, and the sums of the inner ones.
        assert_eq!((params(1), params(2), params(3)), (1, 1, 1));
        assert!(!run(&mut ctx.func));
    }
}
