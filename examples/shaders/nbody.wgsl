// A step of bodies that attract each other. The fourth component of a position is the mass.

const STEP = 0.01;
const SOFTENING = 0.05;
const TILE = 64u;

struct Body {
    position: vec4f,
    velocity: vec3f,
}

@group(0) @binding(0) var<storage, read> before: array<Body>;
@group(0) @binding(1) var<storage, read_write> after: array<Body>;

var<workgroup> tile: array<vec4f, TILE>;

fn acceleration(here: vec3f, other: vec4f) -> vec3f {
    let way = other.xyz - here;
    let inverse = inverseSqrt(dot(way, way) + SOFTENING);
    return way * (other.w * inverse * inverse * inverse);
}

@compute @workgroup_size(TILE)
fn step_bodies(@builtin(global_invocation_id) id: vec3u, @builtin(local_invocation_index) item: u32) {
    let count = arrayLength(&before);
    var body = before[id.x];
    var sum = vec3f();
    for (var first = 0u; first < count; first += TILE) {
        tile[item] = before[first + item].position;
        workgroupBarrier();
        for (var k = 0u; k < TILE; k++) {
            sum += acceleration(body.position.xyz, tile[k]);
        }
        workgroupBarrier();
    }
    body.velocity += sum * STEP;
    body.position += vec4f(body.velocity * STEP, 0.0);
    if id.x < count {
        after[id.x] = body;
    }
}
