// Matrices, vectors of three components and nested arrays in storage and uniform memory.
//
// dispatch 1 1 1
// buffer 0 uniform f32 32 -2 2
// buffer 1 storage f32 960 -2 2
// buffer 2 storage zero-f32 2048
//
// Products may be fused with sums.
// ulps 4
// absolute 1e-5

struct Uniforms {
    turn: mat3x3f,
    flat_: mat2x2f,
    shift: vec3f,
    scale: f32,
    ends: array<vec4f, 2>,
}

struct Item {
    point: vec3f,
    weight: f32,
    small: mat3x2f,
    list: array<f32, 3>,
    tail: vec2f,
}

struct Result {
    point: vec3f,
    sum: f32,
    moved: mat2x3f,
    pairs: array<vec2f, 3>,
    end: vec4f,
}

@group(0) @binding(0) var<uniform> uniforms: Uniforms;
@group(0) @binding(1) var<storage, read> items: array<Item>;
@group(0) @binding(2) var<storage, read_write> results: array<Result>;

@compute @workgroup_size(32)
fn main(@builtin(local_invocation_index) index: u32) {
    let item = items[index % arrayLength(&items)];
    let column = index % 3u;
    var result: Result;
    result.point = uniforms.turn * item.point + uniforms.shift * uniforms.scale;
    result.sum = item.list[column] + item.small[column].y + uniforms.turn[column].z;
    result.moved = mat2x3f(item.point, uniforms.turn[1]) * uniforms.flat_;
    for (var i = 0u; i < 3u; i++) {
        result.pairs[i] = item.small[i] * item.list[(i + column) % 3u];
    }
    result.end = mix(uniforms.ends[0], uniforms.ends[1], item.weight * 0.25).wzyx;
    result.end.y = dot(item.tail, result.pairs[column]);
    results[index] = result;
}
