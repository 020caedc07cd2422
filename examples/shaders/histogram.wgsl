// Counts bytes: each work-group in workgroup memory, and all of them in the result.

@group(0) @binding(0) var<storage, read> words: array<u32>;
@group(0) @binding(1) var<storage, read_write> counts: array<atomic<u32>, 256>;

var<workgroup> local_counts: array<atomic<u32>, 256>;

@compute @workgroup_size(64)
fn histogram(@builtin(global_invocation_id) id: vec3u, @builtin(local_invocation_index) item: u32) {
    if id.x < arrayLength(&words) {
        let bytes = unpack4xU8(words[id.x]);
        for (var k = 0u; k < 4u; k++) {
            atomicAdd(&local_counts[bytes[k] & 255u], 1u);
        }
    }
    workgroupBarrier();
    for (var bin = item; bin < 256u; bin += 64u) {
        let count = atomicLoad(&local_counts[bin]);
        if count > 0u {
            atomicAdd(&counts[bin], count);
        }
    }
}
