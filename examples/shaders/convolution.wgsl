// A blur of an image by 3 x 3 pixels; pixels outside repeat those at the edge.

const KERNEL = array(1.0, 2.0, 1.0, 2.0, 4.0, 2.0, 1.0, 2.0, 1.0);

@group(0) @binding(0) var<storage, read> image: array<f32>;
@group(0) @binding(1) var<storage, read_write> blurred: array<f32>;
@group(0) @binding(2) var<uniform> size: vec2i;

fn pixel(at: vec2i) -> f32 {
    let inside = clamp(at, vec2i(0), size - 1);
    return image[inside.y * size.x + inside.x];
}

@compute @workgroup_size(16, 4)
fn blur(@builtin(global_invocation_id) id: vec3u) {
    let at = vec2i(id.xy);
    if at.x >= size.x || at.y >= size.y {
        return;
    }
    var sum = 0.0;
    for (var y = 0; y < 3; y++) {
        for (var x = 0; x < 3; x++) {
            sum += KERNEL[y * 3 + x] * pixel(at + vec2i(x, y) - 1);
        }
    }
    blurred[at.y * size.x + at.x] = sum / 16.0;
}
