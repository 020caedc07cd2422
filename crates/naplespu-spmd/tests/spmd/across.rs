//! Operations across lanes, under a mask that leaves out lanes.

use crate::kernels::parse;
use crate::run::{Case, options, run};

/// Work-items of the only group: not a multiple of the lanes.
const ITEMS: usize = 56;

/// Executes `operation`, which computes `v20` from `v9`, for work-items with an odd number or a
/// number below 20, and returns the results of all work-items; the others keep `!0`.
fn results(lanes: u32, declarations: &str, operation: &str) -> Vec<u32> {
    let text = format!(
        "function %kernel(i32) system_v {{
    fn0 = %__builtin_npu_local_index() -> i32
    {declarations}
block0(v0: i32):
    v1 = call fn0()
    v2 = iconst.i32 2
    v3 = ishl v1, v2
    v4 = iadd v0, v3
    v9 = load.i32 notrap aligned v4
    v5 = iconst.i32 1
    v6 = band v1, v5
    v7 = iconst.i32 20
    v8 = icmp ult v1, v7
    v10 = uextend.i32 v8
    v11 = bor v6, v10
    brif v11, block1, block2
block1:
{operation}
    store notrap aligned v20, v4+1024
    jump block2
block2:
    return
}}"
    );
    let functions = parse(&text);
    let mut memory: Vec<u32> = (0..512).map(|index| index * 7 % 31).collect();
    memory[256..].fill(!0);
    let case = Case {
        functions: &functions,
        options: options(ITEMS as u32, lanes),
        counts: [1, 1, 1],
        threads: 1,
        memory,
        numbers: &[],
        opt_level: "speed",
        timed: true,
    };
    let done = run(case).unwrap_or_else(|error| panic!("{error}"));
    done.memory[256..256 + ITEMS].to_vec()
}

fn active(index: usize) -> bool {
    index % 2 == 1 || index < 20
}

fn value(index: usize) -> u32 {
    index as u32 * 7 % 31
}

/// Checks an operation: `expected` has the active work-items of the subgroup and the one that asks.
fn check(declarations: &str, operation: &str, expected: impl Fn(&[usize], usize) -> u32) {
    for lanes in [16, 32, 64] {
        let results = results(lanes, declarations, operation);
        for (index, result) in results.into_iter().enumerate() {
            let first = index / lanes as usize * lanes as usize;
            let subgroup: Vec<usize> = (first..(first + lanes as usize).min(ITEMS))
                .filter(|&index| active(index))
                .collect();
            let right = if active(index) { expected(&subgroup, index) } else { !0 };
            assert_eq!(result, right, "work-item {index} of {lanes} lanes: {operation}");
        }
    }
}

#[test]
fn reductions_and_scans_combine_active_lanes() {
    type Combine = fn(u32, u32) -> u32;
    let operations: [(&str, u32, Combine); 6] = [
        ("add_i32", 0, |x, y| x.wrapping_add(y)),
        ("mul_i32", 1, |x, y| x.wrapping_mul(y)),
        ("umin_i32", !0, |x, y| x.min(y)),
        ("smax_i32", i32::MIN as u32, |x, y| (x as i32).max(y as i32) as u32),
        ("or_i32", 0, |x, y| x | y),
        ("and_i32", !0, |x, y| x & y),
    ];
    for (name, identity, combine) in operations {
        let declare = |extent: &str| format!("fn1 = %__builtin_npu_subgroup_{extent}{name}(i32) -> i32");
        let operation = "    v20 = call fn1(v9)";
        let fold =
            |items: &mut dyn Iterator<Item = &usize>| items.fold(identity, |sum, &item| combine(sum, value(item)));
        check(&declare(""), operation, |all, _| fold(&mut all.iter()));
        check(&declare("inclusive_"), operation, |all, own| {
            fold(&mut all.iter().filter(|&&item| item <= own))
        });
        check(&declare("exclusive_"), operation, |all, own| {
            fold(&mut all.iter().filter(|&&item| item < own))
        });
    }
}

#[test]
fn votes_see_active_lanes_only() {
    let compare = "    v19 = iconst.i32 3\n    v18 = icmp ugt v9, v19\n";
    let vote = |name: &str| format!("fn1 = %__builtin_npu_subgroup_{name}(i8) -> i8");
    let call = format!("{compare}    v17 = call fn1(v18)\n    v20 = uextend.i32 v17");
    check(&vote("any"), &call, |all, _| {
        all.iter().any(|&item| value(item) > 3).into()
    });
    check(&vote("all"), &call, |all, _| {
        all.iter().all(|&item| value(item) > 3).into()
    });
    let ballot = format!("{compare}    v20 = call fn1(v18)");
    check("fn1 = %__builtin_npu_subgroup_ballot(i8) -> i32", &ballot, |all, _| {
        let first = all[0] / 16 * 16;
        let lanes = all.iter().filter(|&&item| value(item) > 3 && item - first < 32);
        lanes.fold(0, |bits, item| bits | 1 << (item - first))
    });
    let elect = "    v17 = call fn1()\n    v20 = uextend.i32 v17";
    check("fn1 = %__builtin_npu_subgroup_elect() -> i8", elect, |all, own| {
        (all[0] == own).into()
    });
}

#[test]
fn lanes_read_values_of_other_lanes() {
    check(
        "fn1 = %__builtin_npu_subgroup_broadcast_first_i32(i32) -> i32",
        "    v20 = call fn1(v9)",
        |all, _| value(all[0]),
    );
    // Work-items below 20 read the one with the lowest bit flipped, others themselves.
    let shuffle = "    v17 = bxor v1, v10
    v18 = iconst.i32 15
    v19 = band v17, v18
    v20 = call fn1(v9, v19)";
    let results = results(
        16,
        "fn1 = %__builtin_npu_subgroup_shuffle_i32(i32, i32) -> i32",
        shuffle,
    );
    for index in (0..ITEMS).filter(|&index| active(index)) {
        let from = if index < 20 { index ^ 1 } else { index };
        assert_eq!(results[index], value(from), "work-item {index}");
    }
}
