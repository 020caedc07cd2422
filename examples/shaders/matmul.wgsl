// The product of two square matrices, by tiles of 8 x 8 in workgroup memory.

const TILE = 8u;

@group(0) @binding(0) var<storage, read> a: array<f32>;
@group(0) @binding(1) var<storage, read> b: array<f32>;
@group(0) @binding(2) var<storage, read_write> c: array<f32>;

// The size of the matrices, a multiple of 8.
override size: u32 = 32u;

var<workgroup> tile_a: array<array<f32, TILE>, TILE>;
var<workgroup> tile_b: array<array<f32, TILE>, TILE>;

@compute @workgroup_size(TILE, TILE)
fn matmul(@builtin(global_invocation_id) id: vec3u, @builtin(local_invocation_id) item: vec3u) {
    var sum = 0.0;
    for (var tile = 0u; tile < size / TILE; tile++) {
        let first = tile * TILE;
        tile_a[item.y][item.x] = a[id.y * size + first + item.x];
        tile_b[item.y][item.x] = b[(first + item.y) * size + id.x];
        workgroupBarrier();
        for (var k = 0u; k < TILE; k++) {
            sum += tile_a[item.y][k] * tile_b[k][item.x];
        }
        workgroupBarrier();
    }
    c[id.y * size + id.x] = sum;
}
