//! Control flow, pointers, memory, atomic operations and subgroups.

use crate::run::{Case, agreed, run, wgsl};
use naplespu_shader::{Error, Options};

/// Runs a body with the numbers of work-items `id`, and returns one word of each of 32 work-items.
fn words(globals: &str, body: &str) -> Result<Vec<u32>, String> {
    let text = format!(
        "{globals}
         @group(0) @binding(0) var<storage, read_write> out: array<u32>;
         @group(0) @binding(1) var<storage, read_write> data: array<i32>;
         @compute @workgroup_size(32) fn main(@builtin(local_invocation_index) id: u32) {{ {body} }}"
    );
    let data: Vec<u32> = (0..16).map(|number| number * 10).collect();
    agreed(&text, &[(1, 8), (16, 8), (32, 8)], |module| {
        Case::new(module, vec![vec![0; 32], data.clone()])
    })
}

fn check(globals: &str, body: &str, expected: impl Fn(u32) -> u32) -> Result<(), String> {
    let expected: Vec<u32> = (0..32).map(expected).collect();
    assert_eq!(words(globals, body)?, expected, "{body}");
    Ok(())
}

#[test]
fn loops_with_continue_break_and_return() -> Result<(), String> {
    let globals = "
        fn find(limit: u32) -> u32 {
            var sum = 0u;
            for (var i = 0u; ; i++) {
                if i == 3u { continue; }
                if i > limit { break; }
                if sum > 100u { return sum + 1000u; }
                sum += i;
            }
            return sum;
        }";
    let find = |limit: u32| {
        let mut sum = 0;
        for i in 0.. {
            if i == 3 {
                continue;
            }
            if i > limit {
                break;
            }
            if sum > 100 {
                return sum + 1000;
            }
            sum += i;
        }
        sum
    };
    check(globals, "out[id] = find(id);", find)?;
    check(
        "",
        "var n = id; var steps = 0u; loop { if n == 0u { break; } steps++; continuing { n /= 2u; break if steps > 3u; } } out[id] = steps;",
        |id| (32 - id.leading_zeros()).min(4),
    )
}

#[test]
fn switches() -> Result<(), String> {
    check(
        "",
        "var r = 0u;
         switch i32(id) - 1 {
             case -1, 5: { r = 1u; }
             default: { if id > 20u { break; } r = 2u; }
             case 2: { r = 3u; loop { switch id { default: { break; } } break; } r += 1u; }
         }
         out[id] = r;",
        |id| match id {
            0 | 6 => 1,
            3 => 4,
            21.. => 0,
            _ => 2,
        },
    )
}

#[test]
fn pointers_to_variables_and_their_parts() -> Result<(), String> {
    let globals = "
        struct Pair { a: vec2u, b: array<u32, 3> }
        var<private> pair: Pair;
        fn bump(p: ptr<function, u32>, by: u32) { *p += by; }
        fn fill(p: ptr<private, array<u32, 3>>, first: u32) { for (var i = 0u; i < 3u; i++) { (*p)[i] = first + i; } }";
    let body = "
        var v = vec4u(id, 1u, 2u, 3u);
        var m: array<array<u32, 2>, 2>;
        var w = v.y;
        bump(&w, 5u);
        v.y = w;
        v[id % 4u] += 100u;
        m[id & 1u][1] = 7u;
        bump(&m[1][1], 1u);
        fill(&pair.b, id);
        pair.a.y = 9u;
        let copy = pair;
        out[id] = v.x + v.y + v.z + v.w + 1000u * m[id & 1u][1] + 100000u * copy.b[id % 3u] + copy.a.y;";
    check(globals, body, |id| {
        id + 6 + 2 + 3 + 100 + 1000 * (7 + (id & 1)) + 100_000 * (id + id % 3) + 9
    })
}

#[test]
fn dynamic_indices_out_of_range_stay_inside() -> Result<(), String> {
    // `data` has 16 elements, `id` goes to 31.
    check("", "out[id] = u32(data[id]);", |id| if id < 16 { id * 10 } else { 0 })?;
    check(
        "",
        "data[i32(id) - 16] = 5; storageBarrier(); out[id] = u32(data[id & 15u]);",
        |id| match id & 15 {
            0..16 => 5,
            _ => 0,
        },
    )?;
    // The last element of a private array stands for those above.
    check(
        "",
        "var a: array<u32, 8>; for (var i = 0u; i < 20u; i++) { a[i] = i; } out[id] = a[id];",
        |id| if id < 7 { id } else { 19 },
    )?;
    check(
        "var<workgroup> tile: array<u32, 24>;",
        "tile[id] = id + 1u; workgroupBarrier(); out[id] = tile[31u - id];",
        |id| if id < 8 { 0 } else { 32 - id },
    )
}

#[test]
fn constant_tables() -> Result<(), String> {
    let globals = "const TABLE = array<u32, 10>(9, 8, 7, 6, 5, 4, 3, 2, 1, 0); const SHORT = array(3u, 1u);";
    check(globals, "out[id] = TABLE[id % 10u] + 100u * SHORT[id & 1u];", |id| {
        9 - id % 10 + 100 * [3, 1][(id & 1) as usize]
    })
}

#[test]
fn atomics_in_both_memories() -> Result<(), String> {
    let globals = "
        var<workgroup> sum: atomic<u32>;
        var<workgroup> lowest: atomic<i32>;
        var<workgroup> flags: atomic<u32>;
        var<workgroup> owner: atomic<u32>;";
    let body = "
        atomicAdd(&sum, id);
        atomicMin(&lowest, -i32(id));
        atomicOr(&flags, 1u << id);
        workgroupBarrier();
        atomicXor(&flags, 1u << id);
        atomicSub(&sum, 1u);
        let swapped = atomicCompareExchangeWeak(&owner, id + 100u, 5u);
        workgroupBarrier();
        out[id] = atomicLoad(&sum) + atomicLoad(&flags) + u32(-atomicLoad(&lowest)) + u32(swapped.exchanged) + swapped.old_value;";
    check(globals, body, |_| 496 - 32 + 31)
}

#[test]
fn uniform_loads_of_workgroup_memory() -> Result<(), String> {
    check(
        "var<workgroup> chosen: vec2u;",
        "if id == 7u { chosen = vec2u(id, 2u); } let v = workgroupUniformLoad(&chosen); out[id] = v.x * v.y;",
        |_| 14,
    )
}

#[test]
fn subgroup_operations() -> Result<(), String> {
    let text = "
        @group(0) @binding(0) var<storage, read_write> out: array<u32>;
        @compute @workgroup_size(32) fn main(
            @builtin(local_invocation_index) id: u32,
            @builtin(subgroup_invocation_id) lane: u32,
            @builtin(subgroup_size) size: u32,
            @builtin(subgroup_id) group: u32,
        ) {
            var r = subgroupAdd(1u) + subgroupInclusiveAdd(1u) * 100u;
            r += subgroupExclusiveAdd(lane);
            r += subgroupMax(lane) + subgroupMin(id);
            r += subgroupShuffleXor(lane, 1u) + subgroupBroadcast(id, 3u) + subgroupBroadcastFirst(id);
            r += u32(f32(subgroupAdd(0.5)));
            r += u32(subgroupAny(lane == 2u)) + u32(subgroupAll(lane == 2u)) + countOneBits(subgroupBallot(lane < 5u).x);
            if lane % 2u == 0u { r += subgroupAdd(1000u); }
            r += quadSwapX(lane) + subgroupShuffleDown(lane, lane % 2u) + size + group;
            out[id] = r;
        }";
    let module = wgsl(text)?;
    for lanes in [16, 32] {
        let mut case = Case::new(&module, vec![vec![0; 32]]);
        case.options.lanes = lanes;
        let found = run(case)?.swap_remove(0);
        for id in 0..32 {
            let (lane, first) = (id % lanes, id / lanes * lanes);
            let mut expected = lanes + 100 * (lane + 1) + lane * (lane.max(1) - 1) / 2 + lanes - 1 + first;
            expected += (lane ^ 1) + first + 3 + first + lanes / 2 + 1 + 5;
            if lane % 2 == 0 {
                expected += 1000 * (lanes / 2);
            }
            // The last odd lane of a subgroup has no neighbor.
            if lane == lanes - 1 {
                continue;
            }
            expected += (lane ^ 1) + lane + lane % 2 + lanes + id / lanes;
            assert_eq!(found[id as usize], expected, "work-item {id} with {lanes} lanes");
        }
    }
    Ok(())
}

/// Returns the number of branches in the function of a work-item.
fn branches(globals: &str, body: &str) -> Result<usize, String> {
    let text = format!(
        "{globals}
         @group(0) @binding(0) var<storage, read_write> out: array<u32>;
         @group(0) @binding(1) var<storage, read_write> fixed: array<u32, 64>;
         @compute @workgroup_size(32) fn main(@builtin(global_invocation_id) id: vec3u, @builtin(local_invocation_index) item: u32) {{
             {body}
         }}"
    );
    let kernel = wgsl(&text)?.compile(None, &Options::default());
    let clif = kernel
        .map_err(|error| error.to_string())?
        .function
        .display()
        .to_string();
    Ok(clif.matches("brif").count())
}

#[test]
fn indices_in_range_have_no_check() -> Result<(), String> {
    let rows: &[(&str, usize)] = &[
        ("out[id.x] = 1u;", 1),
        ("if id.x < arrayLength(&out) { out[id.x] += 1u; }", 1),
        (
            "if id.x >= arrayLength(&out) { return; } out[id.x] = out[id.x] + 1u;",
            1,
        ),
        ("fixed[item] = 1u; fixed[item + 32u] = 2u;", 0),
        ("fixed[item + 33u] = 2u;", 1),
        (
            "fixed[id.x & 63u] = 1u; fixed[id.x % 64u] = 2u; fixed[id.x % 60u + 3u] = 3u;",
            0,
        ),
        ("for (var i = 0; i < 64; i++) { fixed[i] = 1u; }", 1),
        ("for (var i = 0; i <= 64; i++) { fixed[i] = 1u; }", 2),
        ("for (var i = 0; i < 64; i++) { fixed[i] = 1u; i -= 1; }", 2),
        ("for (var i = 0u; i < 64u; i++) { fixed[i] = 1u; }", 1),
        (
            "for (var half = 16u; half > 0u; half /= 2u) { if item < half { fixed[item + half] = 1u; } }",
            2,
        ),
        (
            "let at = vec2i(id.xy); if at.x >= 0 && at.x < 8 && at.y >= 0 && at.y < 8 { fixed[at.y * 8 + at.x] = 1u; }",
            1,
        ),
        ("var a = array<u32, 3>(1, 2, 3); out[0] = a[item % 3u];", 0),
    ];
    for (body, expected) in rows {
        assert_eq!(branches("", body)?, *expected, "{body}");
    }
    Ok(())
}

#[test]
fn pointers_to_buffers_and_workgroup_memory_are_arguments() -> Result<(), String> {
    let globals = "
        requires unrestricted_pointer_parameters;
        enable subgroups;
        var<workgroup> counts: array<atomic<u32>, 4>;
        var<private> calls = 0u;
        fn add(p: ptr<storage, i32, read_write>, by: i32) { *p += by; calls++; }
        fn total(p: ptr<storage, array<i32>, read_write>) -> i32 {
            var sum = 0;
            for (var i = 0u; i < arrayLength(p); i++) { sum += (*p)[i]; }
            return sum;
        }
        fn count(p: ptr<workgroup, atomic<u32>>) -> u32 { return atomicAdd(p, 1u); }
        fn count_of(p: ptr<workgroup, array<atomic<u32>, 4>>, i: u32) { _ = count(&(*p)[i]); }";
    let body = "
        count_of(&counts, id % 4u);
        if id < 16u { add(&data[id], i32(id)); }
        if subgroupElect() { calls += 10u; }
        storageBarrier();
        workgroupBarrier();
        let count = atomicLoad(&counts[id % 4u]);
        out[id] = u32(total(&data)) + count * 10000u + (calls % 10u) * 1000000u;";
    check(globals, body, |id| 1320 + 80_000 + u32::from(id < 16) * 1_000_000)?;
    for call in ["set(&out[0])", "set(&out[0], 1.5)", "set(1u, &out[0])"] {
        let wrong = wgsl(&format!(
            "@group(0) @binding(0) var<storage, read_write> out: array<u32>;
             fn set(p: ptr<storage, u32, read_write>, by: u32) {{ *p = by; }}
             fn caller(p: ptr<storage, array<u32>, read_write>) {{ {call}; }}
             @compute @workgroup_size(1) fn main() {{ caller(&out); }}"
        ));
        if let Ok(module) = wrong {
            let error = module.compile(None, &Options::default()).err();
            assert!(matches!(error, Some(Error::Pointers(_))), "{call}: {error:?}");
        }
    }
    Ok(())
}
