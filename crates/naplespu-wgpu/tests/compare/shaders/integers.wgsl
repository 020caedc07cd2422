// Arithmetic of integers, with the divisors 0 and -1.
//
// dispatch 4 1 1
// buffer 0 storage i32 256
// buffer 1 storage i32 256 -3 4
// buffer 2 storage zero 4096

@group(0) @binding(0) var<storage, read> a: array<i32, 256>;
@group(0) @binding(1) var<storage, read> b: array<i32, 256>;
@group(0) @binding(2) var<storage, read_write> out: array<array<u32, 16>, 256>;

@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3u) {
    let x = a[id.x];
    let y = b[id.x];
    let u = bitcast<u32>(x);
    let v = bitcast<u32>(y);
    let s = v & 31u;
    let r = &out[id.x];
    (*r)[0] = bitcast<u32>(x + y);
    (*r)[1] = bitcast<u32>(x * y);
    (*r)[2] = bitcast<u32>(x / y);
    (*r)[3] = bitcast<u32>(x % y);
    (*r)[4] = u / v;
    (*r)[5] = u % v;
    (*r)[6] = u << s;
    (*r)[7] = u >> s;
    (*r)[8] = bitcast<u32>(x >> s);
    (*r)[9] = bitcast<u32>(-x ^ ~y);
    (*r)[10] = select(0u, 1u, x < y) | select(0u, 2u, u < v) | select(0u, 4u, x >= y) | select(0u, 8u, u > v);
    (*r)[11] = bitcast<u32>(min(x, y) - max(x, y));
    (*r)[12] = min(u, v) ^ max(u, v);
    (*r)[13] = bitcast<u32>(abs(x) + sign(y));
    (*r)[14] = bitcast<u32>(clamp(x, -1000, 1000));
    (*r)[15] = clamp(u, 10u, 1u << 30u);
}
