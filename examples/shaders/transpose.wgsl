// Transposes a matrix through tiles in workgroup memory, so that both sides are accessed by rows.

const TILE = 16u;

struct Size {
    columns: u32,
    rows: u32,
}

@group(0) @binding(0) var<storage, read> matrix: array<f32>;
@group(0) @binding(1) var<storage, read_write> transposed: array<f32>;
@group(0) @binding(2) var<uniform> size: Size;

var<workgroup> tile: array<array<f32, TILE>, TILE>;

@compute @workgroup_size(TILE, 4)
fn transpose_tile(@builtin(local_invocation_id) item: vec3u, @builtin(workgroup_id) group: vec3u) {
    let column = group.x * TILE;
    let row = group.y * TILE;
    for (var y = item.y; y < TILE; y += 4u) {
        if column + item.x < size.columns && row + y < size.rows {
            tile[y][item.x] = matrix[(row + y) * size.columns + column + item.x];
        }
    }
    workgroupBarrier();
    for (var y = item.y; y < TILE; y += 4u) {
        if row + item.x < size.rows && column + y < size.columns {
            transposed[(column + y) * size.rows + row + item.x] = tile[item.x][y];
        }
    }
}
