// Sorts 128 numbers (bitonic sort), each pair by one work-item.

const SIZE = 128u;

@group(0) @binding(0) var<storage, read_write> numbers: array<i32, SIZE>;

var<workgroup> keys: array<i32, SIZE>;

@compute @workgroup_size(SIZE)
fn sort(@builtin(local_invocation_index) item: u32) {
    keys[item] = numbers[item];
    workgroupBarrier();
    for (var run = 2u; run <= SIZE; run *= 2u) {
        for (var distance = run / 2u; distance > 0u; distance /= 2u) {
            let other = item ^ distance;
            if other > item {
                let low = keys[item];
                let high = keys[other];
                let ascends = (item & run) == 0u;
                if (low > high) == ascends {
                    keys[item] = high;
                    keys[other] = low;
                }
            }
            workgroupBarrier();
        }
    }
    numbers[item] = keys[item];
}
