// Functions whose error WGSL bounds absolutely or in units in the last place.
//
// dispatch 1 1 1
// buffer 0 storage f32 64 -3 3
// buffer 1 storage f32 64 0.5 4
// buffer 2 storage zero-f32 1024
//
// sin and cos may be off by 2^-11 absolutely, log2 by 2^-21, exp by 3 + 2 |x| ulps, pow by those of
// exp2(y * log2(x)), and inverse functions by 4096 ulps.
// ulps 4096
// absolute 0.001

@group(0) @binding(0) var<storage, read> a: array<f32>;
@group(0) @binding(1) var<storage, read> b: array<f32>;
@group(0) @binding(2) var<storage, read_write> out: array<array<f32, 16>>;

@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3u) {
    let x = a[id.x];
    let y = b[id.x];
    let r = &out[id.x];
    (*r)[0] = sin(x);
    (*r)[1] = cos(x);
    (*r)[2] = tan(x / 3.0);
    (*r)[3] = exp(x);
    (*r)[4] = exp2(x);
    (*r)[5] = log(y);
    (*r)[6] = log2(y);
    (*r)[7] = pow(y, x);
    (*r)[8] = asin(x / 3.0);
    (*r)[9] = acos(x / 3.0);
    (*r)[10] = atan(x);
    (*r)[11] = atan2(x, y);
    (*r)[12] = sinh(x) / cosh(x);
    (*r)[13] = tanh(x);
    (*r)[14] = asinh(x) + acosh(1.0 + y) + atanh(x / 4.0);
    (*r)[15] = inverseSqrt(y) + radians(x) + degrees(x) / 180.0;
}
