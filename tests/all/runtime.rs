//! Compares the integer runtime routines, compiled by this back end and run on the simulator, with
//! Rust's arithmetic.

use cranelift_codegen::data_value::DataValue;
use cranelift_codegen::settings::{self, Configurable};
use cranelift_naplespu::isa;
use naplespu_jit::Program;

fn program(opt_level: &str, clif: &str) -> Program {
    let mut flags = settings::builder();
    flags.set("opt_level", opt_level).unwrap();
    let isa = isa::lookup_by_name("naplespu")
        .unwrap()
        .finish(settings::Flags::new(flags))
        .unwrap();
    let mut program = Program::with_config(isa, npu_sim::Config::testing(1));
    program.module().unwrap().import_runtime();
    for function in cranelift_reader::parse_functions(clif).unwrap() {
        program.define(&function).unwrap();
    }
    program
}

/// Returns numbers close to which quotient estimates are likely to be wrong.
fn edges() -> Vec<u32> {
    let mut all = vec![3, 5, 6, 7, 9, 10, 100, 1000, 0x5555_5555, 0xaaaa_aaab, 1_000_000_007];
    for bit in 0..32 {
        let power = 1u32 << bit;
        all.extend([power.wrapping_sub(1), power, power.wrapping_add(1), power | power >> 1]);
    }
    // Numbers at which the conversion to float rounds or fails (docs/machine/operations.md).
    for shift in 0..=8 {
        for top in [0xff_ffffu32, 0xff_fffe, 0xff_fffd, 0x80_0001] {
            all.extend([top << shift, (top << shift) | ((1 << shift) - 1)]);
        }
    }
    all.extend([0u32, 1, 2].map(|n| u32::MAX - n));
    let negated: Vec<u32> = all.iter().map(|n| n.wrapping_neg()).collect();
    all.extend(negated);
    all.sort_unstable();
    all.dedup();
    all
}

fn expected(n: u32, d: u32) -> [u32; 4] {
    let (sn, sd) = (n.cast_signed(), d.cast_signed());
    [
        n / d,
        n % d,
        sn.wrapping_div(sd).cast_unsigned(),
        sn.wrapping_rem(sd).cast_unsigned(),
    ]
}

const ALL_FOUR: &str = "
function %four(i32, i32) -> i32, i32, i32, i32 {
block0(v0: i32, v1: i32):
    v2 = udiv v0, v1
    v3 = urem v0, v1
    v4 = sdiv v0, v1
    v5 = srem v0, v1
    return v2, v3, v4, v5
}";

#[test]
fn edge_cases() {
    let mut program = program("speed", ALL_FOUR);
    let edges = edges();
    for &n in &edges {
        for &d in edges.iter().filter(|&&d| d != 0) {
            if n == 0x8000_0000 && d == u32::MAX {
                continue;
            }
            let args = [n, d].map(|arg| DataValue::I32(arg.cast_signed()));
            let results = program
                .call("four", &args)
                .unwrap_or_else(|error| panic!("{n:#x}, {d:#x}: {error}"));
            let results: Vec<u32> = results
                .iter()
                .map(|value| match value {
                    DataValue::I32(n) => n.cast_unsigned(),
                    other => panic!("{other}"),
                })
                .collect();
            assert_eq!(results, expected(n, d), "udiv, urem, sdiv, srem of {n:#x} by {d:#x}");
        }
    }
}

/// Callers check the operands, but the routines must terminate for unchecked ones. The remainder of
/// the overflowing division is 0.
#[test]
fn unchecked_operands() {
    let mut program = program(
        "none",
        "function %raw(i32, i32) -> i32, i32, i32, i32 {
            sig0 = (i32, i32) -> i32 probestack
            fn0 = %__npu_udiv32 sig0
            fn1 = %__npu_urem32 sig0
            fn2 = %__npu_sdiv32 sig0
            fn3 = %__npu_srem32 sig0
        block0(v0: i32, v1: i32):
            v2 = call fn0(v0, v1)
            v3 = call fn1(v0, v1)
            v4 = call fn2(v0, v1)
            v5 = call fn3(v0, v1)
            return v2, v3, v4, v5
        }",
    );
    for n in edges() {
        program.set_step_limit(1000);
        program
            .call("raw", &[DataValue::I32(n.cast_signed()), DataValue::I32(0)])
            .unwrap();
    }
    let results = program
        .call("raw", &[DataValue::I32(i32::MIN), DataValue::I32(-1)])
        .unwrap();
    assert_eq!(results[3], DataValue::I32(0));
}

/// Generates operands of all magnitudes and signs, half of them next to a multiple of the divisor,
/// and hashes the results of `count` divisions of each kind.
const DRIVER: &str = "
function %drive(i32, i32) -> i32, i32 {
block0(v0: i32, v1: i32):
    v2 = iconst.i32 0
    jump block1(v0, v2, v1)

block1(v10: i32, v11: i32, v12: i32):
    brif v12, block2, block3

block3:
    return v10, v11

block2:
    v913 = iconst.i32 13
    v13 = ishl v10, v913
    v14 = bxor v10, v13
    v915 = iconst.i32 17
    v15 = ushr v14, v915
    v16 = bxor v14, v15
    v917 = iconst.i32 5
    v17 = ishl v16, v917
    v18 = bxor v16, v17
    v920 = iconst.i32 13
    v20 = ishl v18, v920
    v21 = bxor v18, v20
    v922 = iconst.i32 17
    v22 = ushr v21, v922
    v23 = bxor v21, v22
    v924 = iconst.i32 5
    v24 = ishl v23, v924
    v25 = bxor v23, v24
    v930 = iconst.i32 13
    v30 = ishl v25, v930
    v31 = bxor v25, v30
    v932 = iconst.i32 17
    v32 = ushr v31, v932
    v33 = bxor v31, v32
    v934 = iconst.i32 5
    v34 = ishl v33, v934
    v35 = bxor v33, v34
    v40 = ushr v18, v35
    v941 = iconst.i32 5
    v41 = ushr v35, v941
    v42 = ushr v25, v41
    v43 = iconst.i32 1
    v44 = umax v42, v43
    ; next to a multiple
    v45 = udiv v40, v44
    v46 = imul v45, v44
    v947 = iconst.i32 11
    v47 = ushr v35, v947
    v48 = band v47, v43
    v49 = isub v46, v48
    v950 = iconst.i32 12
    v50 = ushr v35, v950
    v51 = band v50, v43
    v52 = select v51, v49, v40
    ; signs
    v953 = iconst.i32 31
    v53 = sshr v35, v953
    v54 = bxor v52, v53
    v955 = iconst.i32 1
    v55 = ishl v35, v955
    v956 = iconst.i32 31
    v56 = sshr v55, v956
    v57 = bxor v44, v56
    v58 = isub v57, v56
    v59 = isub v54, v53
    v60 = udiv v59, v58
    v61 = urem v59, v58
    v62 = sdiv v59, v58
    v63 = srem v59, v58
    v964 = iconst.i32 5
    v64 = rotl v11, v964
    v65 = bxor v64, v60
    v966 = iconst.i32 5
    v66 = rotl v65, v966
    v67 = bxor v66, v61
    v968 = iconst.i32 5
    v68 = rotl v67, v968
    v69 = bxor v68, v62
    v970 = iconst.i32 5
    v70 = rotl v69, v970
    v71 = bxor v70, v63
    v72 = iconst.i32 -1640531527
    v73 = imul v71, v72
    v74 = isub v12, v43
    jump block1(v35, v73, v74)
}";

fn xorshift(mut state: u32) -> u32 {
    state ^= state << 13;
    state ^= state >> 17;
    state ^ state << 5
}

fn drive(mut state: u32, count: u32) -> [u32; 2] {
    let mut hash = 0u32;
    for _ in 0..count {
        let first = xorshift(state);
        let second = xorshift(first);
        state = xorshift(second);
        let d = second.wrapping_shr(state >> 5).max(1);
        let mut n = first.wrapping_shr(state);
        if state >> 12 & 1 != 0 {
            n = (n / d * d).wrapping_sub(state >> 11 & 1);
        }
        let n = if state >> 31 & 1 != 0 { n.wrapping_neg() } else { n };
        let d = if state >> 30 & 1 != 0 { d.wrapping_neg() } else { d };
        for result in expected(n, d) {
            hash = hash.rotate_left(5) ^ result;
        }
        hash = hash.wrapping_mul(0x9e37_79b9);
    }
    [state, hash]
}

#[test]
fn a_million_random_operands() {
    let mut program = program("speed", DRIVER);
    let (mut seed, batch) = (0x1234_5678u32, 10_000u32);
    for _ in 0..100 {
        let args = [seed, batch].map(|arg| DataValue::I32(arg.cast_signed()));
        let results = program
            .call("drive", &args)
            .unwrap_or_else(|error| panic!("seed {seed:#x}: {error}"));
        let [next, hash] = drive(seed, batch);
        let expected = [next, hash].map(|result| DataValue::I32(result.cast_signed()));
        assert_eq!(results, expected, "a batch of {batch} from seed {seed:#x}");
        seed = next;
    }
}

/// Checks the bound on the reciprocal that the proof in `runtime/div.clif` uses, for a sample of
/// the divisors in its range.
#[test]
fn reciprocal_bounds() {
    use npu_sim::fp;
    for d in (2u32..1 << 24).filter(|d| *d < 1 << 12 || d % 37 == 0 || d.count_ones() < 3 || *d > (1 << 24) - 4096) {
        let float = fp::from_int(d);
        let (low, exact) = (
            u64::from(fp::to_int(fp::div(0x4f7f_ffff, float))),
            (1u64 << 32) as f64 / f64::from(d),
        );
        assert!((low as f64) < exact, "{d}");
        assert!(low as f64 > exact * (1.0 - 2f64.powi(-23)) - 1.0, "{d}");
        if d < 1 << 11 {
            let high = u64::from(fp::to_int(fp::div(0x4f80_0006, float)));
            assert!(high as f64 >= exact && high * u64::from(d) - (1 << 32) < 3329, "{d}");
        }
    }
    for h in (1u32 << 16..1 << 24).filter(|h| h % 37 == 0 || *h < 0x1_1000 || *h > 0xff_f000) {
        let x = u128::from(fp::to_int(fp::div(0x56ff_fe00, fp::from_int(h))));
        for d in [u128::from(h) << 8, (u128::from(h) << 8) + 255] {
            assert!(x * d <= 1 << 55, "{h}");
            assert!(((1 << 55) - x * d) >> 41 == 0, "{h}");
        }
    }
}
