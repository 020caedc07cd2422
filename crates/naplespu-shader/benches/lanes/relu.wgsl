@group(0) @binding(0) var<storage, read> x: array<f32>;
@group(0) @binding(1) var<storage, read_write> y: array<f32>;

@compute @workgroup_size(64)
fn relu(@builtin(global_invocation_id) id: vec3u) {
    if id.x >= arrayLength(&x) {
        return;
    }
    y[id.x] = max(x[id.x], 0.0);
}
