// Iterations until points of the plane escape, at most 100.

const LIMIT = 100u;

struct View {
    corner: vec2f,
    pixel: f32,
    width: u32,
}

@group(0) @binding(0) var<storage, read_write> iterations: array<u32>;
@group(0) @binding(1) var<uniform> view: View;

@compute @workgroup_size(64)
fn mandelbrot(@builtin(global_invocation_id) id: vec3u) {
    if id.x >= arrayLength(&iterations) {
        return;
    }
    let at = vec2u(id.x % view.width, id.x / view.width);
    let c = view.corner + vec2f(at) * view.pixel;
    var z = vec2f();
    var count = 0u;
    while count < LIMIT && dot(z, z) <= 4.0 {
        z = vec2f(z.x * z.x - z.y * z.y, 2.0 * z.x * z.y) + c;
        count++;
    }
    iterations[id.x] = count;
}
