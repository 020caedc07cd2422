// Control flow that diverges: loops with breaks and continues, switches, and early returns.
//
// dispatch 4 1 1
// buffer 0 storage u32 256 0 1000
// buffer 1 storage zero 256

@group(0) @binding(0) var<storage, read> numbers: array<u32>;
@group(0) @binding(1) var<storage, read_write> out: array<u32>;

fn digits(number: u32) -> u32 {
    var rest = number;
    var sum = 0u;
    loop {
        if rest == 0u { break; }
        let digit = rest % 10u;
        rest /= 10u;
        if digit == 7u { continue; }
        sum += digit;
        continuing {
            sum += 100u;
            break if sum > 350u;
        }
    }
    return sum;
}

fn kind_of(number: u32) -> u32 {
    switch number % 9u {
        case 0u, 3u: { return 1u; }
        case 1u: {
            if number > 500u { break; }
            return 2u;
        }
        case 2u: { return digits(number); }
        default: {
            if number % 2u == 0u { return 4u; }
        }
    }
    return 5u;
}

fn is_prime(number: u32) -> bool {
    if number < 2u { return false; }
    for (var i = 2u; i * i <= number; i++) {
        if number % i == 0u { return false; }
    }
    return true;
}

@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3u) {
    let number = numbers[id.x];
    if number == 13u { return; }
    var result = digits(number) * 1000u + kind_of(number) * 10u + u32(is_prime(number));
    for (var i = 0u; i < 4u; i++) {
        switch (number >> i) & 3u {
            case 0u: { continue; }
            case 1u: { result ^= 1u << (20u + i); }
            case 2u: { result += i; break; }
            default: { result = ~result; }
        }
        if result > 4000000000u { break; }
        var j = i;
        while j < number % 5u { result += j * j; j += 2u; }
    }
    out[id.x] = result;
}
