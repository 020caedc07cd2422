// Workgroup memory: arrays of structs, atomics, a uniform load, and barriers in a loop.
//
// dispatch 3 1 1
// buffer 0 storage u32 192 0 64
// buffer 1 storage zero 192
// buffer 2 storage zero 48

struct Cell {
    value: u32,
    position: vec3u,
}

@group(0) @binding(0) var<storage, read> numbers: array<u32>;
@group(0) @binding(1) var<storage, read_write> out: array<u32>;
@group(0) @binding(2) var<storage, read_write> totals: array<atomic<u32>, 48>;

var<workgroup> cells: array<Cell, 64>;
var<workgroup> most: atomic<u32>;
var<workgroup> buckets: array<atomic<u32>, 16>;
var<workgroup> limit: u32;

@compute @workgroup_size(8, 4, 2)
fn main(
    @builtin(local_invocation_index) item: u32,
    @builtin(local_invocation_id) local: vec3u,
    @builtin(workgroup_id) group: vec3u,
) {
    let number = numbers[group.x * 64u + item];
    cells[item] = Cell(number, local);
    atomicMax(&most, number);
    atomicAdd(&buckets[number % 16u], 1u);
    if item == 63u { limit = number; }
    workgroupBarrier();
    let bound = workgroupUniformLoad(&limit);
    for (var distance = 1u; distance < 64u; distance *= 2u) {
        let other = cells[(item + distance) % 64u];
        workgroupBarrier();
        cells[item].value = cells[item].value * 3u + other.value + other.position.x + 2u * other.position.z;
        workgroupBarrier();
    }
    out[group.x * 64u + item] = cells[item].value ^ atomicLoad(&most) ^ bound;
    if item < 16u {
        atomicAdd(&totals[item], atomicLoad(&buckets[item]));
        atomicMin(&totals[item + 16u], 0u);
        atomicXor(&totals[item + 32u], atomicExchange(&buckets[item], 0u) << group.x);
    }
}
