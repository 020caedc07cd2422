//! Tests of the copies of code that timed calls on several threads execute.

use super::*;
use npu_mc::machine::{CACHE_LINE, ICACHE_SETS};
use npu_sim::{Config, TimingConfig};

/// Calls three functions that share a set of the instruction cache.
const LOOP: &str = "
function %many(i32) -> i32 system_v {
    sig0 = (i32) -> i32 system_v
    fn0 = colocated %a sig0
    fn1 = colocated %b sig0
    fn2 = colocated %c sig0
block0(v0: i32):
    v1 = iconst.i32 0
    jump block1(v0, v1)
block1(v2: i32, v3: i32):
    v4 = call fn0(v3)
    v5 = call fn1(v4)
    v6 = call fn2(v5)
    v7 = iconst.i32 -1
    v8 = iadd v2, v7
    brif v8, block1(v8, v6), block2
block2:
    return v6
}";

fn add(name: &str, number: i32) -> Function {
    parse(&format!(
        "function %{name}(i32) -> i32 system_v {{
block0(v0: i32):
    v1 = iconst.i32 {number}
    v2 = iadd v0, v1
    return v2
}}"
    ))
}

/// Returns a module with `many` and its callees, each at the same set of the instruction cache.
fn module_with_conflict() -> (NpuModule, FuncId) {
    let mut module = on_device(&[("opt_level", "speed")], Config::default());
    module.set_timing(Some(TimingConfig::default()));
    let signature = words(1, 1);
    for (number, name) in (1..).zip(["a", "b", "c"]) {
        let id = declare(&mut module, name, Linkage::Export, &signature);
        body(&mut module, id, add(name, number)).unwrap();
        let wall = declare(&mut module, &format!("wall{name}"), Linkage::Export, &words(0, 0));
        let rest = vec![0; ((ICACHE_SETS - 1) * CACHE_LINE) as usize];
        module.define_function_bytes(wall, 64, &rest, &[]).unwrap();
    }
    let many = define(&mut module, LOOP);
    (module, many)
}

fn results(module: &mut NpuModule, many: FuncId) -> Result<Vec<Vec<DataValue>>, RunError> {
    module.call_threads(many, &[DataValue::I32(40)], 8)
}

/// The results of eight threads.
fn eight(number: i32) -> Vec<Vec<DataValue>> {
    vec![vec![DataValue::I32(number)]; 8]
}

#[test]
fn threads_of_a_core_execute_copies_of_code_in_which_they_can_hang() {
    let (mut module, many) = module_with_conflict();
    assert_eq!(results(&mut module, many).unwrap(), eight(240));
    let report = module.timing_report().unwrap();
    // The copies count as their function.
    let names: Vec<&str> = report.functions.iter().map(|function| function.name.as_str()).collect();
    assert_eq!(names.len(), 4, "{names:?}");
    // Calls by a thread alone and by threads of different cores share the code.
    assert_eq!(module.call(many, &[DataValue::I32(40)]).unwrap(), [DataValue::I32(240)]);
}

/// A branch of a copy to a redefined function goes to its copy, and not to the removed one.
#[test]
fn copies_follow_a_redefined_function() {
    let (mut module, many) = module_with_conflict();
    assert_eq!(results(&mut module, many).unwrap(), eight(240));
    let b = module.function_by_name("b").unwrap();
    for number in [4, 9] {
        let mut ctx = Context::for_function(add("b", number));
        module.redefine_function(b, &mut ctx).unwrap();
        assert_eq!(results(&mut module, many).unwrap(), eight(40 * (4 + number)));
    }
    module.free_function(b).unwrap();
    match results(&mut module, many) {
        Err(RunError::Undefined { name, .. }) => assert_eq!(name, "b"),
        other => panic!("{other:?}"),
    }
}
