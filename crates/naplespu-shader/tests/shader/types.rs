//! Numbers of 16 and 64 bits, and atomic operations on floats and on 64 bits.

use crate::run::{Case, agreed, run, wgsl};

/// Runs a body, with the number of the work-item in `id`, on 64 work-items: buffer 0 has `out` words
/// of the type `result`, buffer 1 has `input` as words of the type `argument`.
fn words(
    enable: &str,
    [result, argument]: [&str; 2],
    body: &str,
    out: usize,
    input: &[u32],
) -> Result<Vec<u32>, String> {
    let text = format!(
        "{enable}
         @group(0) @binding(0) var<storage, read_write> out: array<{result}>;
         @group(0) @binding(1) var<storage, read> input: array<{argument}>;
         @compute @workgroup_size(64) fn main(@builtin(local_invocation_index) id: u32) {{ {body} }}"
    );
    agreed(&text, &[(1, 8), (16, 4), (32, 2), (128, 1)], |module| Case {
        strict_float: true,
        ..Case::new(module, vec![vec![0; out], input.to_vec()])
    })
}

/// The bits of the half that is the nearest to a number, for normal halves.
fn half(number: f64) -> u32 {
    if number == 0.0 {
        return u32::from(number.is_sign_negative()) << 15;
    }
    let exponent = number.abs().log2().floor();
    let scaled = (number.abs() * 2f64.powf(10.0 - exponent)).round_ties_even() as u32;
    let bits = scaled + ((exponent as i32 + 14) as u32 * 1024);
    bits | u32::from(number < 0.0) << 15
}

/// The value of a normal half.
fn value(bits: u32) -> f64 {
    let magnitude = match bits & 0x7fff {
        0 => 0.0,
        bits => f64::from(1024 + (bits & 1023)) * 2f64.powi((bits >> 10) as i32 - 25),
    };
    if bits & 0x8000 == 0 { magnitude } else { -magnitude }
}

/// Pairs of halves between 1 and 8 with any sign.
fn halves() -> Vec<u32> {
    let mut random = fastrand::Rng::with_seed(5);
    let mut one = || random.u32(0x3c00..0x4800) | random.u32(..2) << 15;
    (0..64).map(|_| one() | one() << 16).collect()
}

#[test]
fn halves_are_rounded_after_each_operation() -> Result<(), String> {
    type Operation = fn(f64, f64) -> f64;
    let operations: [(&str, Operation); 9] = [
        ("a + b", |a, b| a + b),
        ("a - b", |a, b| a - b),
        ("a * b", |a, b| a * b),
        ("a / b", |a, b| a / b),
        ("sqrt(abs(a))", |a, _| a.abs().sqrt()),
        ("max(a, -b)", |a, b| a.max(-b)),
        ("floor(a)", |a, _| a.floor()),
        ("f16(f32(a) * 3.0001)", |a, _| f64::from(a as f32 * 3.0001)),
        ("select(a, b, a < b)", |a, b| if a < b { b } else { a }),
    ];
    let input = halves();
    for (text, operation) in operations {
        let body = format!("let a = input[id].x; let b = input[id].y; out[id] = vec2({text}, -({text}));");
        let results = words("enable f16;", ["vec2<f16>", "vec2<f16>"], &body, 64, &input)?;
        for (&pair, result) in input.iter().zip(results) {
            let (a, b) = (value(pair & 0xffff), value(pair >> 16));
            let expected = half(operation(a, b));
            assert_eq!(result, expected | (expected ^ 0x8000) << 16, "{text} of {a} and {b}");
        }
    }
    Ok(())
}

#[test]
fn halves_have_their_places_in_memory() -> Result<(), String> {
    // `a` at 0, `b` at 4, `c` at 8, `d` at 14, `m` at 20, `n` at 28.
    let globals = "enable f16;
        struct All { a: f16, b: vec2<f16>, c: vec3<f16>, d: array<f16, 3>, m: mat2x2<f16>, n: f32 }
        var<workgroup> shared_halves: array<f16, 64>;
        var<workgroup> shared_all: All;";
    let body = "
        shared_halves[id] = f16(id);
        if id == 0u { shared_all = input[0]; }
        workgroupBarrier();
        var all = input[id];
        all.a = shared_halves[63u - id];
        all.b = all.b.yx;
        all.c[1] = shared_all.d[id % 3u];
        all.d[id % 3u] *= 2.0h;
        all.m[id % 2u] = vec2(all.a, 1.0h) + shared_all.m[1];
        all.n = f32(all.d[0]) + f32(all.c.z);
        out[id] = all;";
    let one = |number: u32| half(f64::from(number));
    let pair = |low: u32, high: u32| one(low) | one(high) << 16;
    let item = [
        pair(1, 0),
        pair(2, 3),
        pair(4, 5),
        pair(6, 7),
        pair(8, 9),
        pair(10, 11),
        pair(12, 13),
        1f32.to_bits(),
    ];
    let mut input: Vec<u32> = item.repeat(64);
    for index in 0..64 {
        // The bytes between the members.
        input[index * 8] |= 0x5555_0000;
    }
    let results = words(globals, ["All", "All"], body, 512, &input)?;
    for (id, found) in results.chunks_exact(8).enumerate() {
        let id = id as u32;
        let mut d = [7, 8, 9];
        let chosen = d[id as usize % 3];
        d[id as usize % 3] *= 2;
        let mut m = [pair(10, 11), pair(12, 13)];
        m[id as usize % 2] = pair(63 - id + 12, 14);
        assert_eq!(found[0] & 0xffff, one(63 - id), "a of {id}");
        let others = [pair(3, 2), pair(4, chosen), pair(6, d[0]), pair(d[1], d[2])];
        assert_eq!(found[1..5], others, "b, c and d of {id}");
        assert_eq!(found[5..7], m, "m of {id}");
        assert_eq!(f32::from_bits(found[7]), (d[0] + 6) as f32, "n of {id}");
    }
    Ok(())
}

/// Pairs of words that are interesting as integers of 64 bits.
fn wide() -> Vec<u64> {
    let mut random = fastrand::Rng::with_seed(9);
    let special = [0, 1, 2, 10, u64::MAX, 1 << 63, (1 << 63) - 1, 1 << 32, 0xffff_ffff];
    let mut all: Vec<u64> = special
        .iter()
        .flat_map(|&a| special.iter().flat_map(move |&b| [a, b]))
        .collect();
    all.truncate(96);
    while all.len() < 128 {
        all.push(random.u64(..) >> random.u32(..64));
    }
    all
}

fn split(numbers: &[u64]) -> Vec<u32> {
    let halves = numbers
        .iter()
        .flat_map(|&number| [number as u32, (number >> 32) as u32]);
    halves.collect()
}

#[test]
fn integers_of_64_bits() -> Result<(), String> {
    type Operation = fn(u64, u64) -> u64;
    let operations: [(&str, Operation); 24] = [
        ("a + b", u64::wrapping_add),
        ("a - b", u64::wrapping_sub),
        ("a * b", u64::wrapping_mul),
        ("a / b", |a, b| a.checked_div(b).unwrap_or(a)),
        ("a % b", |a, b| a.checked_rem(b).unwrap_or(0)),
        ("(a & b) ^ (a | ~b)", |a, b| (a & b) ^ (a | !b)),
        ("a << u32(b & 63lu)", |a, b| a << (b & 63)),
        ("a >> u32(b & 63lu)", |a, b| a >> (b & 63)),
        ("min(a, b) + max(a, 5lu)", |a, b| a.min(b).wrapping_add(a.max(5))),
        ("select(a, b, a < b)", |a, b| if a < b { b } else { a }),
        ("u64(u32(a)) * 3lu", |a, _| u64::from(a as u32).wrapping_mul(3)),
        ("u64(i32(a))", |a, _| a as i32 as u64),
        ("u64(i64(a) / i64(b))", |a, b| {
            (a as i64).checked_div(b as i64).unwrap_or(a as i64) as u64
        }),
        ("u64(i64(a) % i64(b))", |a, b| {
            (a as i64).checked_rem(b as i64).unwrap_or(0) as u64
        }),
        ("u64(i64(a) >> 7u)", |a, _| (a as i64 >> 7) as u64),
        ("u64(abs(i64(a)))", |a, _| (a as i64).wrapping_abs() as u64),
        ("u64(sign(i64(a)))", |a, _| (a as i64).signum() as u64),
        ("u64(clamp(i64(a), -5li, 7li))", |a, _| (a as i64).clamp(-5, 7) as u64),
        ("u64(-i64(a))", |a, _| a.wrapping_neg()),
        ("countOneBits(a) + countLeadingZeros(b)", |a, b| {
            u64::from(a.count_ones() + b.leading_zeros())
        }),
        ("firstTrailingBit(a)", |a, _| {
            if a == 0 { u64::MAX } else { a.trailing_zeros().into() }
        }),
        ("firstLeadingBit(a)", |a, _| {
            63u64.wrapping_sub(a.leading_zeros().into())
        }),
        ("reverseBits(a)", |a, _| a.reverse_bits()),
        ("extractBits(a, 30u, 10u)", |a, _| a >> 30 & 0x3ff),
    ];
    let numbers = wide();
    for batch in operations.chunks(6) {
        let mut body = "let a = input[2u * id]; let b = input[2u * id + 1u];".to_owned();
        for (index, (text, _)) in batch.iter().enumerate() {
            body += &format!("out[id * {}u + {index}u] = {text};\n", batch.len());
        }
        let results = words("", ["u64", "u64"], &body, 128 * batch.len(), &split(&numbers))?;
        for (pair, found) in numbers.chunks_exact(2).zip(results.chunks_exact(2 * batch.len())) {
            for ((text, operation), word) in batch.iter().zip(found.chunks_exact(2)) {
                let found = u64::from(word[0]) | u64::from(word[1]) << 32;
                let expected = operation(pair[0], pair[1]);
                assert_eq!(found, expected, "{text} of {:#x} and {:#x}", pair[0], pair[1]);
            }
        }
    }
    Ok(())
}

#[test]
fn wide_numbers_in_private_and_workgroup_memory() -> Result<(), String> {
    let globals = "
        struct Mixed { a: u32, b: u64, c: array<u32, 3>, d: f64 }
        var<workgroup> tile: array<Mixed, 64>;";
    let body = "
        var local: array<Mixed, 4>;
        local[id % 4u] = Mixed(id, u64(id) << 33u, array(1u, 2u, id), f64(id) * 0.5lf);
        local[(id + 1u) % 4u].c[1] = 9u;
        tile[id] = local[id % 4u];
        workgroupBarrier();
        let other = tile[63lu - u64(id)];
        out[id] = other.b + u64(other.a) + u64(other.c[2]) + u64(f32(other.d) * 4.0) + u64(local[(id + 1u) % 4u].c[1]);";
    let results = words(globals, ["u64", "u32"], body, 128, &[0; 4])?;
    for (id, found) in results.chunks_exact(2).enumerate() {
        let other = 63 - id as u32;
        assert_eq!(*found, [4 * other + 9, 2 * other], "{id}");
    }
    Ok(())
}

#[test]
fn doubles() -> Result<(), String> {
    let body = "
        let a = f64(input[id]); let b = f64(id) + 0.25lf;
        let v = vec3(a, b, 1.0lf);
        let m = mat2x2<f64>(a, b, b, a);
        out[id * 6u] = a * b - a / b;
        out[id * 6u + 1u] = select(floor(a), fract(b), a > b) + min(a, b) * sqrt(b);
        out[id * 6u + 2u] = dot(v, v.zxy) + length(v);
        out[id * 6u + 3u] = (m * vec2(b, a)).y + determinant(m);
        out[id * 6u + 4u] = f64(u32(b) + 7u) + f64(i32(-b)) + f64(f32(a)) + abs(-a) + sign(-b);
        out[id * 6u + 5u] = mix(a, b, 0.5lf) + clamp(a, 1.0lf, 2.0lf) + step(a, b) + trunc(-a);";
    let input: Vec<f32> = (0..64).map(|index| (index * 37 % 64) as f32 * 0.375).collect();
    let bits: Vec<u32> = input.iter().map(|one| one.to_bits()).collect();
    let results = words("", ["f64", "f32"], body, 768, &bits)?;
    for (id, found) in results.chunks_exact(12).enumerate() {
        let (a, b) = (f64::from(input[id]), id as f64 + 0.25);
        let length = (a * a + b * b + 1.0).sqrt();
        let expected = [
            a * b - a / b,
            if a > b { b.fract() } else { a.floor() } + a.min(b) * b.sqrt(),
            a + b * a + b + length,
            b * b + a * a + (a * a - b * b),
            f64::from(b as u32 + 7) + f64::from(-b as i32) + a + a - 1.0,
            a * 0.5 + b * 0.5 + a.clamp(1.0, 2.0) + f64::from(u8::from(a <= b)) + (-a).trunc(),
        ];
        for (word, expected) in found.chunks_exact(2).zip(expected) {
            let found = f64::from_bits(u64::from(word[0]) | u64::from(word[1]) << 32);
            let error = (found - expected).abs();
            assert!(
                error <= 1e-12 * expected.abs().max(1.0),
                "{id}: {found} instead of {expected}"
            );
        }
    }
    Ok(())
}

#[test]
fn atomic_operations_on_floats_and_64_bits() -> Result<(), String> {
    let text = "
        struct All { sum: atomic<f32>, last: atomic<f32>, wide: atomic<u64>, least: atomic<i64>, most: atomic<u64> }
        @group(0) @binding(0) var<storage, read_write> all: All;
        @compute @workgroup_size(64) fn main(@builtin(local_invocation_index) id: u32) {
            atomicAdd(&all.sum, f32(id) * 0.5);
            atomicSub(&all.sum, 1.0);
            if id == 7u { atomicStore(&all.last, 3.5); }
            atomicAdd(&all.wide, u64(id) << 31u);
            atomicMin(&all.least, -(i64(id) << 33u));
            atomicMax(&all.most, u64(id) << 40u);
        }";
    let module = wgsl(text)?;
    for (lanes, threads) in [(1, 8), (16, 8), (64, 1)] {
        let mut case = Case::new(&module, vec![vec![0; 8]]);
        (case.options.lanes, case.threads) = (lanes, threads);
        let found = run(case)?.swap_remove(0);
        let wide = |at: usize| u64::from(found[at]) | u64::from(found[at + 1]) << 32;
        assert_eq!(f32::from_bits(found[0]), 1008.0 - 64.0);
        assert_eq!(f32::from_bits(found[1]), 3.5);
        assert_eq!(wide(2), 2016 << 31);
        assert_eq!(wide(4) as i64, -(63 << 33));
        assert_eq!(wide(6), 63 << 40);
    }
    Ok(())
}

#[test]
fn a_ballot_has_a_bit_for_each_lane() -> Result<(), String> {
    let body = "
        if id % 3u != 1u {
            let bits = subgroupBallot(id % 5u != 2u);
            let counts = countOneBits(bits);
            out[id] = counts.x + counts.y + counts.z + counts.w;
        }";
    let text = format!(
        "@group(0) @binding(0) var<storage, read_write> out: array<u32>;
         @compute @workgroup_size(128) fn main(@builtin(local_invocation_index) id: u32) {{ {body} }}"
    );
    let module = wgsl(&text)?;
    let votes = |first: u32, lanes: u32| {
        let lanes = first..first + lanes;
        lanes.filter(|id| id % 3 != 1 && id % 5 != 2).count() as u32
    };
    for lanes in [16, 32, 64, 128] {
        let mut case = Case::new(&module, vec![vec![0; 128]]);
        case.options.lanes = lanes;
        let found = run(case)?.swap_remove(0);
        for (id, found) in found.into_iter().enumerate() {
            let id = id as u32;
            let expected = if id % 3 == 1 {
                0
            } else {
                votes(id / lanes * lanes, lanes)
            };
            assert_eq!(found, expected, "{lanes} lanes, lane {id}");
        }
    }
    Ok(())
}
