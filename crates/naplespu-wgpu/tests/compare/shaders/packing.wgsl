// Packed numbers and conversions.
//
// dispatch 1 1 1
// buffer 0 storage f32 256 -1.25 1.25
// buffer 1 storage zero 1024

@group(0) @binding(0) var<storage, read> a: array<vec4f>;
@group(0) @binding(1) var<storage, read_write> out: array<array<u32, 16>>;

@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3u) {
    // Multiples of 1/128 have no ties that may be rounded in either direction.
    let p = trunc(a[id.x] * 128.0) / 128.0;
    let r = &out[id.x];
    (*r)[0] = pack2x16float(p.xy);
    (*r)[1] = bitcast<u32>(unpack2x16float((*r)[0]).y);
    (*r)[2] = bitcast<u32>(i32(p.x * 300.0));
    (*r)[3] = u32(p.y * 300.0);
    (*r)[4] = bitcast<u32>(f32(bitcast<i32>(bitcast<u32>(p.z))));
    (*r)[5] = bitcast<u32>(f32(bitcast<u32>(p.w)));
    (*r)[6] = u32(p.x > 0.0) + 2u * u32(bool(i32(p.y * 2.0)));
    (*r)[7] = bitcast<u32>(p.x) & 0xff800000u;
    (*r)[8] = u32(i32(p.z * 1e6)) ^ u32(1e9 * abs(p.w));
}
