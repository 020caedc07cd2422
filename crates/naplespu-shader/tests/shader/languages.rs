//! GLSL and SPIR-V, refusals and overrides.

use crate::run::{Case, run, wgsl};
use naga::back::pipeline_constants::process_overrides;
use naga::back::{PipelineConstants, spv};
use naplespu_shader::{BindingKind, Error, Module, Options};

macro_rules! examples {
    ($($name:literal),* $(,)?) => {
        [$(($name, include_str!(concat!("../../../../examples/shaders/", $name, ".wgsl"))),)*]
    };
}

/// The names and texts of the examples.
const EXAMPLES: [(&str, &str); 12] = examples![
    "saxpy",
    "reduction",
    "scan",
    "histogram",
    "matmul",
    "convolution",
    "nbody",
    "mandelbrot",
    "fft",
    "transpose",
    "life",
    "bitonic",
];

const GLSL: &str = "#version 450
layout(local_size_x = 16) in;
layout(std430, set = 0, binding = 0) buffer Data { uint count; float numbers[]; } data;
layout(std140, set = 0, binding = 1) uniform Scale { vec4 factors; } scale;
shared float tile[16];

float twice(in float x) { return x + x; }

void swap(inout float a, inout float b) { float t = a; a = b; b = t; }

void main() {
    uint item = gl_LocalInvocationIndex;
    tile[item] = data.numbers[gl_GlobalInvocationID.x];
    barrier();
    mat2 factors = mat2(scale.factors.x, scale.factors.y, scale.factors.z, scale.factors.w);
    float sum = 0.0;
    for (int i = 0; i < 16; i++) {
        if (i == 3) continue;
        sum += tile[i];
    }
    vec2 pair = factors * vec2(sum, twice(tile[item]));
    swap(pair.x, pair.y);
    switch (int(item)) {
        case 0: pair.x += 1.0;
        case 1: pair.x += 1.0; break;
        default: break;
    }
    mat2 inverted = inverse(factors);
    data.numbers[gl_GlobalInvocationID.x] = pair.x - pair.y + inverted[1][0];
    if (item == 0u) data.count = 16u;
}
";

/// Returns the results of the GLSL shader for the numbers from 0 to 15.
fn glsl_expected() -> Vec<f32> {
    // By columns: (1, 2), (3, 4); the inverse is (-2, 1), (1.5, -0.5).
    let sum = (0..16).sum::<i32>() as f32 - 3.0;
    let element = |item: usize| {
        let (a, b) = (sum, 2.0 * item as f32);
        let (x, y) = (a + 3.0 * b, 2.0 * a + 4.0 * b);
        let extra = [2.0, 1.0].get(item).copied().unwrap_or(0.0);
        y + extra - x + 1.5
    };
    (0..16).map(element).collect()
}

fn check_glsl(module: &Module) -> Result<(), String> {
    let mut data = vec![0];
    data.extend((0..16).map(|number| (number as f32).to_bits()));
    let scale = [1.0f32, 2.0, 3.0, 4.0].map(f32::to_bits).to_vec();
    for lanes in [1, 16] {
        let mut case = Case::new(module, vec![data.clone(), scale.clone()]);
        case.options.lanes = lanes;
        case.threads = 16 / lanes as usize;
        if case.threads > 8 {
            continue;
        }
        let results = run(case)?;
        assert_eq!(results[0][0], 16);
        for (found, expected) in results[0][1..].iter().zip(glsl_expected()) {
            let found = f32::from_bits(*found);
            assert!((found - expected).abs() < 1e-3, "{found} instead of {expected}");
        }
    }
    Ok(())
}

#[test]
fn glsl_with_a_block_of_a_count_and_an_array() -> Result<(), String> {
    let module = Module::from_glsl(GLSL).map_err(|error| error.render("test.comp", Some(GLSL)))?;
    check_glsl(&module)
}

/// Translates a valid module to SPIR-V.
fn spirv(module: &naga::Module) -> Result<Vec<u8>, String> {
    use naga::valid::{Capabilities, ValidationFlags, Validator};
    let mut validator = Validator::new(ValidationFlags::all(), Capabilities::all());
    let info = validator.validate(module).map_err(|error| error.to_string())?;
    let (module, info) =
        process_overrides(module, &info, None, &PipelineConstants::default()).map_err(|error| error.to_string())?;
    let words = spv::write_vec(&module, &info, &spv::Options::default(), None).map_err(|error| error.to_string())?;
    Ok(words.into_iter().flat_map(u32::to_le_bytes).collect())
}

#[test]
fn spirv_has_the_results_of_its_source() -> Result<(), String> {
    // For `unpack4xU8`, naga writes vectors of bytes, which its parser does not read.
    for (name, text) in EXAMPLES.into_iter().filter(|(name, _)| *name != "histogram") {
        let parsed = naga::front::wgsl::parse_str(text).map_err(|error| error.to_string())?;
        let module = Module::from_spirv(&spirv(&parsed)?).map_err(|error| error.render(name, None))?;
        let kernel = module
            .compile(None, &Options::default())
            .map_err(|error| error.render(name, None))?;
        kernel
            .dispatch_functions()
            .map_err(|error| format!("{name}: {error}"))?;
    }
    let text = include_str!("../../../../examples/shaders/bitonic.wgsl");
    let parsed = naga::front::wgsl::parse_str(text).map_err(|error| error.to_string())?;
    let bytes = spirv(&parsed)?;
    let module = Module::from_spirv(&bytes).map_err(|error| error.render("test.spv", None))?;
    let numbers: Vec<u32> = (0..128u32).map(|number| number.wrapping_mul(77) % 128).collect();
    let results = run(Case::new(&module, vec![numbers]))?;
    assert_eq!(results[0], (0..128).collect::<Vec<_>>());
    Ok(())
}

#[test]
fn bindings_of_entry_points_are_listed() -> Result<(), String> {
    let module = wgsl(
        "struct Data { count: u32, numbers: array<vec3f> }
         @group(1) @binding(2) var<storage, read_write> data: Data;
         @group(0) @binding(3) var<uniform> factor: vec4f;
         @group(0) @binding(1) var<storage> unused: array<u32>;
         @compute @workgroup_size(4, 2) fn main() { data.count = u32(factor.x); }",
    )?;
    let entries = module.entry_points();
    let [entry] = &entries[..] else {
        return Err("one entry point".to_owned());
    };
    assert_eq!((entry.name.as_str(), entry.workgroup_size), ("main", [4, 2, 1]));
    let found: Vec<_> = entry
        .bindings
        .iter()
        .map(|one| (one.group, one.binding, one.kind, one.min_size))
        .collect();
    assert_eq!(
        found,
        [(0, 3, BindingKind::Uniform, 16), (1, 2, BindingKind::Storage, 32)]
    );
    Ok(())
}

#[test]
fn immediate_data_is_a_buffer_of_a_group_of_its_own() -> Result<(), String> {
    let module = wgsl(
        "struct Data { count: u32, factor: f32 }
         var<immediate> data: Data;
         @group(0) @binding(0) var<storage, read_write> out: array<f32>;
         @compute @workgroup_size(16) fn main(@builtin(local_invocation_index) id: u32) {
             if id < data.count { out[id] = f32(id) * data.factor; }
         }",
    )?;
    let bindings = &module.entry_points()[0].bindings;
    let found: Vec<_> = bindings
        .iter()
        .map(|one| (one.group, one.binding, one.min_size))
        .collect();
    assert_eq!(found, [(0, 0, 4), (naplespu_shader::IMMEDIATE_GROUP, 0, 8)]);
    let mut case = Case::new(&module, vec![vec![0; 16]]);
    case.immediate = vec![10, 0.5f32.to_bits()];
    let expected = (0..16).map(|id| if id < 10 { (id as f32 * 0.5).to_bits() } else { 0 });
    assert_eq!(run(case)?[0], expected.collect::<Vec<_>>());
    Ok(())
}

#[test]
fn overrides_have_values_and_defaults() -> Result<(), String> {
    let module = wgsl(
        "override size: u32 = 4u;
         @id(7) override factor: f32;
         override double: f32 = factor * 2.0;
         var<workgroup> tile: array<f32, size>;
         @group(0) @binding(0) var<storage, read_write> out: array<f32>;
         @compute @workgroup_size(size) fn main(@builtin(local_invocation_index) item: u32) {
             tile[item] = double;
             workgroupBarrier();
             out[item] = tile[size - 1u - item] + f32(size);
         }",
    )?;
    let mut case = Case::new(&module, vec![vec![0; 8]]);
    case.options.overrides = [("7".to_owned(), 1.5), ("size".to_owned(), 8.0)].into();
    let results = run(case)?;
    assert_eq!(results[0], [11f32.to_bits(); 8]);
    let missing = module.compile(None, &Options::default());
    assert!(matches!(missing, Err(Error::Override(_))), "{missing:?}");
    Ok(())
}

#[test]
fn errors_name_the_feature_and_its_place() {
    let refused = [
        (
            "@group(0) @binding(0) var picture: texture_2d<f32>;",
            "_ = textureDimensions(picture);",
            "a texture",
        ),
        (
            "var<private> wide: f64;",
            "wide = sin(1.0lf + wide);",
            "the function sin on f64",
        ),
        ("var<private> big: array<u32, 100000>;", "big[3] = 1u;", "too large"),
        (
            "var<workgroup> big: array<u32, 100000>;",
            "big[3] = 1u;",
            "workgroup memory",
        ),
        ("", "let x = 1 +;", "expected"),
        ("", "let x: u32 = 1.5;", "type"),
    ];
    for (globals, body, part) in refused {
        let text = format!("{globals}\n@compute @workgroup_size(1) fn main() {{ {body} }}\n");
        let error = match Module::from_wgsl(&text).and_then(|module| module.compile(None, &Options::default())) {
            Err(error) => error,
            Ok(kernel) => panic!("{text}\n{}", kernel.function.display()),
        };
        let rendered = error.render("test.wgsl", Some(&text));
        assert!(rendered.contains(part), "{text}\n{rendered}");
        assert!(rendered.contains("test.wgsl:"), "no place in {rendered}");
        assert!(!error.spans().is_empty(), "no span in {error:?}");
    }
}

#[test]
fn only_compute_entry_points_are_translated() -> Result<(), String> {
    let module = wgsl(
        "@fragment fn shade() -> @location(0) vec4f { return vec4f(dpdx(1.0)); }
         @compute @workgroup_size(1) fn a() {}
         @compute @workgroup_size(1) fn b() {}",
    )?;
    let compile = |name| module.compile(name, &Options::default());
    assert!(matches!(compile(None), Err(Error::AmbiguousEntryPoint { .. })));
    assert!(matches!(compile(Some("shade")), Err(Error::NoEntryPoint { .. })));
    assert!(compile(Some("b")).is_ok());
    Ok(())
}

/// Shaders with features that the examples have not.
const FEATURES: [&str; 3] = [
    "enable f16, subgroups;
     struct Half { a: f16, b: vec3<f16>, c: array<f16, 3>, d: mat2x3<f16> }
     @group(0) @binding(0) var<storage, read_write> all: array<Half>;
     var<workgroup> tile: array<vec2<f16>, 32>;
     @compute @workgroup_size(32) fn main(@builtin(local_invocation_index) id: u32) {
         tile[id] = all[id].b.xy * all[id].a + vec2(f16(id), 1.5h);
         workgroupBarrier();
         all[id].c[id % 3u] = sqrt(dot(tile[31u - id], all[id].d[1].xy));
         if subgroupElect() { all[id].b = select(all[id].b, floor(all[id].b), f32(all[id].a) > 2.0); }
     }",
    "struct Wide { a: u32, b: u64, c: f64, d: atomic<u64>, e: atomic<f32> }
     @group(0) @binding(0) var<storage, read_write> all: array<Wide>;
     @compute @workgroup_size(32) fn main(@builtin(local_invocation_index) id: u32) {
         let b = all[id].b / u64(id) + (all[id].b >> id) * 3lu;
         var c = array<f64, 3>(all[id].c, f64(id) * 0.5lf, f64(f32(b)));
         all[id].c = c[id % 3u] + sqrt(c[1]);
         all[id].b = u64(i64(b) % i64(all[id].a)) + countOneBits(b);
         atomicMax(&all[0].d, b);
         atomicAdd(&all[0].e, f32(b));
     }",
    "@group(0) @binding(0) var<storage, read_write> all: array<atomic<u32>>;
     var<workgroup> tile: array<vec2<u32>, 32>;
     fn add(p: ptr<storage, array<atomic<u32>>, read_write>, i: u32) -> u32 {
         return atomicAdd(&(*p)[i % arrayLength(p)], 1u);
     }
     fn put(p: ptr<workgroup, vec2<u32>>, by: u32) { (*p).x += by; p.y = add(&all, by); }
     @compute @workgroup_size(32) fn main(@builtin(local_invocation_index) id: u32) { put(&tile[id], id + 1u); }",
];

/// Compiles a module in which bytes are changed. Only the absence of panics counts.
fn mutated(bytes: &[u8], rounds: usize, compile: impl Fn(&[u8]) -> Option<Error>) {
    let mut random = fastrand::Rng::with_seed(7);
    for _ in 0..rounds {
        let mut changed = bytes.to_vec();
        for _ in 0..random.usize(1..4) {
            let at = random.usize(..changed.len());
            match random.u8(..3) {
                0 => changed[at] = random.u8(..),
                1 => changed[at] = bytes[random.usize(..bytes.len())],
                _ => {
                    let end = changed.len().min(at + random.usize(1..8));
                    changed.copy_within(at..end, at.saturating_sub(random.usize(1..16)));
                }
            }
        }
        if let Some(error) = compile(&changed) {
            // Rendering does not panic either.
            assert!(!error.render("changed", None).is_empty());
            assert!(!matches!(error, Error::Internal(_)), "{error}");
        }
    }
}

#[test]
fn mutated_modules_are_errors_or_valid() -> Result<(), String> {
    let rounds = std::env::var("SHADER_MUTATIONS")
        .ok()
        .and_then(|text| text.parse().ok());
    let texts = EXAMPLES.iter().map(|(_, text)| *text);
    for text in texts.chain(FEATURES) {
        let compile = |module: Result<Module, Error>| {
            let compiled = module.and_then(|module| module.compile(None, &Options::default()));
            compiled.err()
        };
        mutated(text.as_bytes(), rounds.unwrap_or(20), |bytes| {
            let text = String::from_utf8_lossy(bytes);
            compile(Module::from_wgsl(&text))
        });
        // SPIR-V has no pointers to buffers as arguments, and its writer no subgroups by directive.
        let Ok(parsed) = naga::front::wgsl::parse_str(text).map_err(|error| error.to_string()) else {
            continue;
        };
        let Ok(words) = spirv(&parsed) else { continue };
        mutated(&words, rounds.unwrap_or(20), |bytes| compile(Module::from_spirv(bytes)));
    }
    Ok(())
}

#[test]
fn malformed_modules_are_errors() {
    assert!(Module::from_spirv(&[3, 2, 35, 7, 0, 0]).is_err());
    assert!(Module::from_spirv(b"nonsense").is_err());
    assert!(Module::from_glsl("void main() { int x = texture(1); }").is_err());
    let text = include_str!("../../../../examples/shaders/saxpy.wgsl");
    for end in (0..text.len()).filter(|end| text.is_char_boundary(*end)) {
        // Some prefixes are valid; none panics.
        if let Ok(module) = Module::from_wgsl(&text[..end]) {
            let _ = module.compile(None, &Options::default());
        }
    }
}
