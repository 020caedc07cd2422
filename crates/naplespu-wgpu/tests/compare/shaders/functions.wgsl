// Frexp, modf, and functions with several results and pointers to workgroup and private memory.
//
// dispatch 1 1 1
// buffer 0 storage f32 64 -100 100
// buffer 1 storage zero-f32 512
//
// Products may be fused with sums.
// ulps 2
// absolute 1e-5

struct Pair {
    low: f32,
    high: f32,
}

@group(0) @binding(0) var<storage, read> a: array<f32>;
@group(0) @binding(1) var<storage, read_write> out: array<array<f32, 8>>;

var<private> calls: u32;

fn ordered(a: f32, b: f32) -> Pair {
    calls++;
    if a < b { return Pair(a, b); }
    return Pair(b, a);
}

fn swap(a: ptr<function, f32>, b: ptr<function, f32>) {
    let old = *a;
    *a = *b;
    *b = old;
    calls += 2u;
}

fn horner(x: f32, coefficients: array<f32, 4>) -> f32 {
    var all = coefficients;
    var sum = 0.0;
    for (var i = 3; i >= 0; i--) { sum = sum * x + all[i]; }
    return sum;
}

@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3u) {
    var x = a[id.x];
    var y = a[63u - id.x];
    let parts = modf(x);
    let scaled = frexp(x);
    let pair = ordered(x, y);
    if x < y { swap(&x, &y); }
    let r = &out[id.x];
    (*r)[0] = parts.whole;
    (*r)[1] = parts.fract;
    (*r)[2] = scaled.fract;
    (*r)[3] = f32(scaled.exp);
    (*r)[4] = pair.low;
    (*r)[5] = pair.high - x;
    (*r)[6] = horner(x / 128.0, array<f32, 4>(1.0, -2.0, 0.5, 3.0));
    (*r)[7] = f32(calls);
}
