// Partial sums of a dot product; the host adds them.

@group(0) @binding(0) var<storage, read> x: array<f32>;
@group(0) @binding(1) var<storage, read> y: array<f32>;
@group(0) @binding(2) var<storage, read_write> sums: array<f32>;

@compute @workgroup_size(16)
fn dot_product(@builtin(global_invocation_id) id: vec3u) {
    var sum = 0.0;
    for (var i = id.x; i < arrayLength(&x); i += 16u) {
        sum += x[i] * y[i];
    }
    sums[id.x] = sum;
}
