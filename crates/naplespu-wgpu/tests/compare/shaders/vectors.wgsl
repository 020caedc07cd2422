// Vectors and matrices: products, geometry, and swizzles.
//
// dispatch 1 1 1
// buffer 0 storage f32 256 -2 2
// buffer 1 storage zero-f32 1024
//
// Products may be fused with sums of up to four terms. Determinants and normalized vectors have
// more operations.
// ulps 16
// absolute 2e-5

@group(0) @binding(0) var<storage, read> a: array<vec4f>;
@group(0) @binding(1) var<storage, read_write> out: array<array<f32, 16>>;

@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3u) {
    let p = a[id.x];
    let q = a[(id.x + 7u) % 64u];
    let m = mat4x4f(p, q, p.wzyx, vec4f(q.xy, 1.0, 2.0));
    let n = mat3x2f(p.xy, p.zw, q.yx);
    let product = m * q;
    let smaller = transpose(n) * q.zw;
    let crossed = cross(p.xyz, q.xyz);
    let reflected = reflect(p.xyz, normalize(q.xyz + vec3f(4.0)));
    let mixed = mix(p, q, vec4f(0.25, 0.5, 0.75, 1.0));
    var inserted = vec4f(p.zw, q.xy);
    inserted[id.x % 4u] = 9.0;
    let r = &out[id.x];
    (*r)[0] = dot(p, q);
    (*r)[1] = length(p) + distance(p, q);
    (*r)[2] = product.x;
    (*r)[3] = product.w;
    (*r)[4] = smaller.x + 3.0 * smaller.z;
    (*r)[5] = crossed.x - crossed.y;
    (*r)[6] = crossed.z;
    (*r)[7] = reflected.x + reflected.z;
    (*r)[8] = mixed.x + mixed.y;
    (*r)[9] = mixed.z + mixed.w;
    (*r)[10] = determinant(mat3x3f(p.xyz, q.xyz, vec3f(1.0, 0.0, 2.0)));
    (*r)[11] = inserted.x + 10.0 * inserted.y + 100.0 * inserted.z;
    (*r)[12] = faceForward(p, q, p).x;
    (*r)[13] = f32(any(p > q)) + 2.0 * f32(all(p.xy < q.xy));
    (*r)[14] = smoothstep(-1.0, 1.0, p.x);
    (*r)[15] = m[id.x % 4u][(id.x / 4u) % 4u] + (2.0 * m - m)[1].y;
}
