// Structs in buffers with the layout of uniform and storage memory, private arrays, pointers.
//
// dispatch 2 1 1
// buffer 0 uniform words 3 0 0 0 1.5 -2.0 0.25 0 4 5 6 7 10 20 30 40
// buffer 1 storage u32 512 0 100
// buffer 2 storage zero 1024

struct Inner {
    a: vec3f,
    b: i32,
}

struct Settings {
    count: u32,
    inner: Inner,
    table: array<vec4u, 2>,
}

struct Record {
    key: u32,
    pair: vec2u,
    last: u32,
}

@group(0) @binding(0) var<uniform> settings: Settings;
@group(0) @binding(1) var<storage, read> words: array<vec4u>;
@group(0) @binding(2) var<storage, read_write> records: array<Record>;

var<private> counts: array<u32, 7>;

fn count(slot: ptr<function, array<u32, 5>>, index: u32) -> u32 {
    (*slot)[index % 5u] += index;
    return (*slot)[(index + 1u) % 5u];
}

@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3u) {
    let four = words[id.x];
    var own = array<u32, 5>(1, 2, 3, 4, 5);
    var sum = 0u;
    for (var i = 0u; i < 4u; i++) {
        counts[four[i] % 7u] += i + 1u;
        sum += count(&own, four[i]);
    }
    for (var i = 0u; i < settings.count; i++) {
        sum += counts[i] << (3u * i);
    }
    let records_of = &records[id.x];
    (*records_of).key = sum;
    (*records_of).pair = settings.table[id.x & 1u].zy + four.xw;
    (*records_of).pair.y *= u32(settings.inner.a.x * 2.0);
    if settings.inner.b == 0 {
        records[id.x].last = own[four.x % 5u] + arrayLength(&records);
    }
}
