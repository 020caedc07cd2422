// Inclusive prefix sums of each block of 128 numbers (Hillis and Steele).

const SIZE = 128u;

@group(0) @binding(0) var<storage, read_write> numbers: array<u32>;

var<workgroup> sums: array<u32, SIZE>;

@compute @workgroup_size(SIZE)
fn scan(@builtin(global_invocation_id) id: vec3u, @builtin(local_invocation_index) item: u32) {
    sums[item] = numbers[id.x];
    workgroupBarrier();
    for (var distance = 1u; distance < SIZE; distance *= 2u) {
        var before = 0u;
        if item >= distance {
            before = sums[item - distance];
        }
        workgroupBarrier();
        sums[item] += before;
        workgroupBarrier();
    }
    numbers[id.x] = sums[item];
}
