// A generation of the game of life on a torus.

@group(0) @binding(0) var<storage, read> cells: array<u32>;
@group(0) @binding(1) var<storage, read_write> next: array<u32>;

override width: u32 = 32u;
override height: u32 = 32u;

fn cell(x: u32, y: u32) -> u32 {
    return cells[(y % height) * width + x % width];
}

@compute @workgroup_size(16, 4)
fn life(@builtin(global_invocation_id) id: vec3u) {
    let x = id.x;
    let y = id.y;
    if x >= width || y >= height {
        return;
    }
    var neighbors = 0u;
    for (var dy = 0u; dy < 3u; dy++) {
        for (var dx = 0u; dx < 3u; dx++) {
            if dx != 1u || dy != 1u {
                neighbors += cell(x + width + dx - 1u, y + height + dy - 1u);
            }
        }
    }
    switch neighbors {
        case 2u: { next[y * width + x] = cell(x, y); }
        case 3u: { next[y * width + x] = 1u; }
        default: { next[y * width + x] = 0u; }
    }
}
