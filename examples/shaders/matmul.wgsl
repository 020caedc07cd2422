// The product of two square matrices, by tiles in workgroup memory. A work-group computes 8 rows of
// 16 elements.

const COLUMNS = 16u;
const ROWS = 8u;

@group(0) @binding(0) var<storage, read> a: array<f32>;
@group(0) @binding(1) var<storage, read> b: array<f32>;
@group(0) @binding(2) var<storage, read_write> c: array<f32>;

// The size of the matrices, a multiple of 16.
override size: u32 = 32u;

var<workgroup> tile_a: array<array<f32, COLUMNS>, ROWS>;
var<workgroup> tile_b: array<array<f32, COLUMNS>, COLUMNS>;

@compute @workgroup_size(COLUMNS, ROWS)
fn matmul(@builtin(global_invocation_id) id: vec3u, @builtin(local_invocation_id) item: vec3u) {
    var sum = 0.0;
    for (var first = 0u; first < size; first += COLUMNS) {
        tile_a[item.y][item.x] = a[id.y * size + first + item.x];
        tile_b[item.y][item.x] = b[(first + item.y) * size + id.x];
        tile_b[item.y + ROWS][item.x] = b[(first + item.y + ROWS) * size + id.x];
        workgroupBarrier();
        for (var k = 0u; k < COLUMNS; k++) {
            sum += tile_a[item.y][k] * tile_b[k][item.x];
        }
        workgroupBarrier();
    }
    c[id.y * size + id.x] = sum;
}
