@group(0) @binding(0) var<storage, read> a: array<f32>;
@group(0) @binding(1) var<storage, read> b: array<f32>;
@group(0) @binding(2) var<storage, read_write> c: array<f32>;

const SIZE = 32u;

@compute @workgroup_size(16, 4)
fn matmul(@builtin(global_invocation_id) id: vec3u) {
    var sum = 0.0;
    for (var k = 0u; k < SIZE; k++) {
        sum += a[id.y * SIZE + k] * b[k * SIZE + id.x];
    }
    c[id.y * SIZE + id.x] = sum;
}
