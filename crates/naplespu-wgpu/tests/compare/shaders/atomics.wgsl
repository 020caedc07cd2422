// Atomic operations whose results do not depend on the order, and private arrays.
//
// dispatch 4 1 1
// buffer 0 storage i32 256 -50 50
// buffer 1 storage zero 16
// buffer 2 storage zero 256

struct Totals {
    sum: atomic<i32>,
    least: atomic<i32>,
    most: atomic<i32>,
    bits: atomic<u32>,
    unclaimed: atomic<u32>,
    parity: atomic<u32>,
    tickets: atomic<u32>,
    winners: atomic<u32>,
    classes: array<atomic<u32>, 8>,
}

@group(0) @binding(0) var<storage, read> numbers: array<i32>;
@group(0) @binding(1) var<storage, read_write> totals: Totals;
@group(0) @binding(2) var<storage, read_write> seen: array<u32>;

var<workgroup> claimed: atomic<u32>;

@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3u, @builtin(local_invocation_index) item: u32) {
    let number = numbers[id.x];
    atomicAdd(&totals.sum, number);
    atomicMin(&totals.least, number);
    atomicMax(&totals.most, number);
    atomicOr(&totals.bits, 1u << (bitcast<u32>(number) & 31u));
    atomicXor(&totals.parity, bitcast<u32>(number));
    if number > 20 { atomicAdd(&totals.classes[u32(number) % 8u], 1u); }
    // Each ticket is taken once.
    let ticket = atomicAdd(&totals.tickets, 1u);
    seen[ticket % 256u] += 1u;
    // One work-item of a work-group gets the exchange.
    let result = atomicCompareExchangeWeak(&claimed, 0u, item + 1u);
    if result.exchanged { atomicAdd(&totals.winners, 1u); }
    workgroupBarrier();
    var own: array<i32, 6>;
    for (var i = 0; i < 6; i++) { own[(i + number + 60) % 6] = i * number; }
    let picked = own[abs(number) % 6];
    atomicSub(&totals.sum, picked);
    if atomicLoad(&claimed) == 0u { atomicStore(&totals.unclaimed, 1u); }
}
