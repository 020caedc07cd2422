//! The model of operations on lanes of 8 to 64 bits, in Rust's arithmetic.

/// Truncates a number to `width` bits.
pub fn truncate(width: u32, value: i128) -> u64 {
    value as u64 & (u64::MAX >> (64 - width))
}

/// Returns a lane as a signed number.
pub fn signed(width: u32, lane: u64) -> i128 {
    i128::from((lane << (64 - width)).cast_signed() >> (64 - width))
}

/// Returns the smallest and the largest signed number.
pub fn limits(width: u32) -> (i128, i128) {
    (-(1 << (width - 1)), (1 << (width - 1)) - 1)
}

/// Computes an operation on two lanes.
pub fn binary(op: &str, width: u32, a: u64, b: u64) -> u64 {
    let (sa, sb) = (signed(width, a), signed(width, b));
    let (ua, ub) = (i128::from(a), i128::from(b));
    let (min, max) = limits(width);
    let most = (1i128 << width) - 1;
    let result = match op {
        "iadd" => ua + ub,
        "isub" => ua - ub,
        "imul" => sa.wrapping_mul(sb),
        "band" => ua & ub,
        "bor" => ua | ub,
        "bxor" => ua ^ ub,
        "smin" => sa.min(sb),
        "smax" => sa.max(sb),
        "umin" => ua.min(ub),
        "umax" => ua.max(ub),
        "smulhi" => (sa * sb) >> width,
        "umulhi" => ((ua.cast_unsigned() * ub.cast_unsigned()) >> width).cast_signed(),
        "sadd_sat" => (sa + sb).clamp(min, max),
        "ssub_sat" => (sa - sb).clamp(min, max),
        "uadd_sat" => (ua + ub).min(most),
        "usub_sat" => (ua - ub).max(0),
        "avg_round" => (ua + ub + 1) >> 1,
        // Fixed-point fractions between -1 and 1; the product is rounded to nearest.
        "sqmul_round_sat" => ((sa * sb + (1 << (width - 2))) >> (width - 1)).min(max),
        _ => panic!("no operation `{op}`"),
    };
    truncate(width, result)
}

/// Computes an operation on one lane.
pub fn unary(op: &str, width: u32, a: u64) -> u64 {
    let result = match op {
        "bnot" => !i128::from(a),
        "ineg" => -i128::from(a),
        "iabs" => signed(width, a).abs(),
        "popcnt" => i128::from(a.count_ones()),
        _ => panic!("no operation `{op}`"),
    };
    truncate(width, result)
}

/// Shifts or rotates by an amount modulo the width.
pub fn shift(op: &str, width: u32, a: u64, by: u32) -> u64 {
    let by = by % width;
    let wide = u128::from(a);
    let result = match op {
        "ishl" => wide << by,
        "ushr" => wide >> by,
        "sshr" => (signed(width, a) >> by).cast_unsigned(),
        "rotl" => wide << by | wide >> (width - by),
        "rotr" => wide >> by | wide << (width - by),
        _ => panic!("no operation `{op}`"),
    };
    truncate(width, result.cast_signed())
}

/// Returns whether a condition of `icmp` holds.
pub fn holds(condition: &str, width: u32, a: u64, b: u64) -> bool {
    let with_sign = signed(width, a).cmp(&signed(width, b));
    let without = a.cmp(&b);
    match condition {
        "eq" => without.is_eq(),
        "ne" => without.is_ne(),
        "slt" => with_sign.is_lt(),
        "sle" => with_sign.is_le(),
        "sgt" => with_sign.is_gt(),
        "sge" => with_sign.is_ge(),
        "ult" => without.is_lt(),
        "ule" => without.is_le(),
        "ugt" => without.is_gt(),
        "uge" => without.is_ge(),
        _ => panic!("no condition `{condition}`"),
    }
}

/// Narrows a lane to half the width, with saturation.
pub fn narrow(op: &str, width: u32, lane: u64) -> u64 {
    let half = width / 2;
    let (min, max) = limits(half);
    let most = (1i128 << half) - 1;
    let result = match op {
        "snarrow" => signed(width, lane).clamp(min, max),
        "unarrow" => signed(width, lane).clamp(0, most),
        "uunarrow" => i128::from(lane).min(most),
        _ => panic!("no operation `{op}`"),
    };
    truncate(half, result)
}

/// Computes an operation on the bits of two floats. No test value is or produces a NaN.
pub fn float_binary(op: &str, width: u32, a: u64, b: u64) -> u64 {
    if width == 32 {
        let (a, b) = (f32::from_bits(a as u32), f32::from_bits(b as u32));
        let result = match op {
            "fadd" => a + b,
            "fsub" => a - b,
            "fmul" => a * b,
            "fdiv" => a / b,
            "fmin" => a.min(b),
            "fmax" => a.max(b),
            "fcopysign" => a.copysign(b),
            _ => panic!("no operation `{op}`"),
        };
        return result.to_bits().into();
    }
    let (a, b) = (f64::from_bits(a), f64::from_bits(b));
    let result = match op {
        "fadd" => a + b,
        "fsub" => a - b,
        "fmul" => a * b,
        "fdiv" => a / b,
        "fmin" => a.min(b),
        "fmax" => a.max(b),
        "fcopysign" => a.copysign(b),
        _ => panic!("no operation `{op}`"),
    };
    result.to_bits()
}

/// Computes an operation on the bits of one float.
pub fn float_unary(op: &str, width: u32, a: u64) -> u64 {
    // f32 converts to f64 exactly, and the double rounding of a square root is harmless.
    let x = if width == 32 {
        f32::from_bits(a as u32).into()
    } else {
        f64::from_bits(a)
    };
    let result: f64 = match op {
        "fneg" => -x,
        "fabs" => x.abs(),
        "sqrt" => x.abs().sqrt(),
        "ceil" => x.ceil(),
        "floor" => x.floor(),
        "trunc" => x.trunc(),
        "nearest" => x.round_ties_even(),
        _ => panic!("no operation `{op}`"),
    };
    if width == 32 {
        (result as f32).to_bits().into()
    } else {
        result.to_bits()
    }
}

/// Rounds a float towards zero to an integer of the same width.
pub fn float_to_integer(op: &str, width: u32, a: u64) -> u64 {
    let x = if width == 32 {
        f32::from_bits(a as u32).into()
    } else {
        f64::from_bits(a)
    };
    let (min, max) = limits(width);
    let result = match op {
        "fcvt_to_sint_sat" => (x as i128).clamp(min, max),
        "fcvt_to_uint_sat" => (x as i128).clamp(0, (1 << width) - 1),
        _ => panic!("no operation `{op}`"),
    };
    truncate(width, result)
}

/// Converts an integer to the nearest float of the same width.
pub fn integer_to_float(op: &str, width: u32, a: u64) -> u64 {
    let number = if op == "fcvt_from_sint" {
        signed(width, a)
    } else {
        i128::from(a)
    };
    if width == 32 {
        (number as f32).to_bits().into()
    } else {
        (number as f64).to_bits()
    }
}
