// Nested loops that lanes leave in different ways: breaks, continues, returns, and uniform bounds.
//
// dispatch 4 1 1
// buffer 0 storage u32 256 0 5000
// buffer 1 storage zero 2048

@group(0) @binding(0) var<storage, read> numbers: array<u32>;
@group(0) @binding(1) var<storage, read_write> out: array<array<u32, 8>>;

const ROUNDS = 6u;

fn first_pair(number: u32) -> vec2u {
    for (var i = 1u; i < ROUNDS; i++) {
        for (var j = 1u; j < i + 2u; j++) {
            if (number + i * j) % 11u == 0u { return vec2u(i, j); }
            if (number >> j) % 5u == 1u { break; }
        }
    }
    return vec2u(100u, number);
}

fn nested_while(number: u32) -> u32 {
    var rest = number;
    var sum = 0u;
    while rest > 3u {
        var step = rest & 7u;
        loop {
            if step == 0u { break; }
            step--;
            if step == 3u { continue; }
            sum += step;
            if sum % 13u == 12u { return sum; }
            continuing { sum ^= 1u; }
        }
        rest >>= 1u + (sum & 1u);
    }
    return sum + 1000u;
}

fn labels(number: u32) -> u32 {
    var state = number % 4u;
    var trace = 0u;
    for (var steps = 0u; steps < 9u; steps++) {
        switch state {
            case 0u: { state = 2u; trace = trace * 5u + 1u; }
            case 1u: {
                if number % 3u == 0u { return trace; }
                state = 3u;
            }
            case 2u: {
                trace += number & steps;
                if trace > 40u { break; }
                state = 1u;
                continue;
            }
            default: { state = (number >> steps) % 4u; }
        }
        trace++;
        if trace > 60u { break; }
    }
    return trace * 10u + state;
}

@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3u) {
    let number = numbers[id.x];
    let r = &out[id.x];
    let pair = first_pair(number);
    (*r)[0] = pair.x * 10000u + pair.y;
    if number % 7u == 6u { return; }
    (*r)[1] = nested_while(number);
    (*r)[2] = labels(number);
    var kept = 0u;
    var left = 0u;
    for (var i = 0u; i < ROUNDS; i++) {
        left = i;
        if number % (i + 2u) == 1u {
            if kept > 2u { break; }
            kept += 1u;
            continue;
        }
        var inner = i;
        for (; inner < 20u; inner += 3u) {
            if number % (inner + 5u) == 0u { break; }
            kept += inner & 1u;
        }
        if inner >= 20u && number % 2u == 0u { break; }
    }
    (*r)[3] = kept;
    (*r)[4] = left;
    if number > 2500u {
        for (var i = 0u; i < 5u; i++) {
            if (number >> i) % 3u == 2u { (*r)[5] = i + 1u; break; }
            (*r)[6] += number % (i + 3u);
        }
        (*r)[7] = 1u;
    } else if number > 1000u {
        var low = 0u;
        var high = number;
        while low < high {
            let middle = (low + high) / 2u;
            if middle * middle < number { low = middle + 1u; } else { high = middle; }
        }
        (*r)[7] = low;
    }
}
