// The sum of each block of 128 numbers, by halves in workgroup memory.

const SIZE = 128u;

@group(0) @binding(0) var<storage, read> numbers: array<u32>;
@group(0) @binding(1) var<storage, read_write> sums: array<u32>;

var<workgroup> partial: array<u32, SIZE>;

@compute @workgroup_size(SIZE)
fn reduce(
    @builtin(global_invocation_id) id: vec3u,
    @builtin(local_invocation_index) item: u32,
    @builtin(workgroup_id) group: vec3u,
) {
    // A load out of range gives zero or another element, so the test is needed.
    partial[item] = select(0u, numbers[id.x], id.x < arrayLength(&numbers));
    workgroupBarrier();
    for (var half = SIZE / 2u; half > 0u; half >>= 1u) {
        if item < half {
            partial[item] += partial[item + half];
        }
        workgroupBarrier();
    }
    if item == 0u {
        sums[group.x] = partial[0];
    }
}
