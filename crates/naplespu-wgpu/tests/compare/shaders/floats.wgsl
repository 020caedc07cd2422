// Arithmetic of floats and functions that are exact or nearly so. The numbers have magnitudes from
// 1/8 to 8, because flushed subnormals may differ.
//
// dispatch 2 1 1
// buffer 0 storage f32 128 -8 8
// buffer 1 storage f32 128 0.125 8
// buffer 2 storage zero-f32 2048
//
// Division may be off by 2.5 ulps, and fract and mod of products by the difference of fused
// operations.
// ulps 3
// absolute 1e-6

@group(0) @binding(0) var<storage, read> a: array<f32>;
@group(0) @binding(1) var<storage, read> b: array<f32>;
@group(0) @binding(2) var<storage, read_write> out: array<array<f32, 16>>;

@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3u) {
    let x = a[id.x];
    let y = b[id.x];
    let r = &out[id.x];
    (*r)[0] = x + y;
    (*r)[1] = x - y;
    (*r)[2] = x * y;
    (*r)[3] = x / y;
    (*r)[4] = floor(x) + ceil(y) * 100.0;
    (*r)[5] = trunc(x) + round(y) * 100.0;
    (*r)[6] = abs(x) + sign(x) * 100.0;
    (*r)[7] = min(x, y) + 100.0 * max(x, y);
    (*r)[8] = clamp(x, -1.0, y);
    (*r)[9] = step(x, y) + saturate(x);
    (*r)[10] = sqrt(y);
    (*r)[11] = fract(y);
    (*r)[12] = select(x, y, x < y && y < 4.0);
    (*r)[13] = f32(i32(x * 1000.0)) + f32(u32(y));
    (*r)[14] = ldexp(y, i32(x));
    (*r)[15] = quantizeToF16(y);
}
