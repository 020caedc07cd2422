// The Fourier transform of 64 complex numbers, in workgroup memory (Cooley and Tukey).

const SIZE = 64u;
const BITS = 6u;
const TURN = 6.2831853;

@group(0) @binding(0) var<storage, read_write> signal: array<vec2f, SIZE>;

var<workgroup> values: array<vec2f, SIZE>;

fn product(a: vec2f, b: vec2f) -> vec2f {
    return vec2f(a.x * b.x - a.y * b.y, a.x * b.y + a.y * b.x);
}

@compute @workgroup_size(SIZE)
fn fft(@builtin(local_invocation_index) item: u32) {
    values[item] = signal[reverseBits(item) >> (32u - BITS)];
    workgroupBarrier();
    for (var half = 1u; half < SIZE; half *= 2u) {
        let k = item & (half - 1u);
        let angle = -TURN * f32(k) / f32(2u * half);
        let twiddle = vec2f(cos(angle), sin(angle));
        let first = item & ~half;
        let even = values[first];
        let odd = product(values[first + half], twiddle);
        workgroupBarrier();
        values[item] = select(even + odd, even - odd, (item & half) != 0u);
        workgroupBarrier();
    }
    signal[item] = values[item];
}
