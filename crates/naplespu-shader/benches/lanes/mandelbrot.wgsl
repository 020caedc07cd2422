@group(0) @binding(0) var<storage, read_write> iterations: array<u32>;
// For the hand-written kernel.
@group(0) @binding(1) var<storage, read> lane_numbers: array<u32>;

const WIDTH = 64u;
const LIMIT = 40u;

@compute @workgroup_size(16, 4)
fn mandelbrot(@builtin(global_invocation_id) id: vec3u) {
    let cx = f32(id.x) * 0.046875 - 2.0;
    let cy = f32(id.y) * 0.125 - 1.0;
    var x = 0.0;
    var y = 0.0;
    var count = 0u;
    for (var i = 0u; i < LIMIT; i++) {
        let xx = x * x;
        let yy = y * y;
        if xx + yy >= 4.0 {
            break;
        }
        y = 2.0 * x * y + cy;
        x = xx - yy + cx;
        count++;
    }
    _ = &lane_numbers;
    iterations[id.y * WIDTH + id.x] = count;
}
