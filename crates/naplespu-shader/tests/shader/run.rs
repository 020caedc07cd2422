//! Runs an entry point on a device.

use cranelift_codegen::settings::{self, Configurable};
use cranelift_naplespu::isa;
use naplespu_jit::Device;
use naplespu_shader::{Bound, Dispatch, IMMEDIATE_GROUP, Module, Options, RunError, Runner};

/// A shader with its buffers of group 0, by number, as words.
pub struct Case<'a> {
    pub module: &'a Module,
    pub entry: Option<&'a str>,
    pub options: Options,
    pub groups: [u32; 3],
    pub threads: usize,
    pub buffers: Vec<Vec<u32>>,
    /// The words of immediate data.
    pub immediate: Vec<u32>,
    /// Value of the setting `strict_float`.
    pub strict_float: bool,
}

impl<'a> Case<'a> {
    /// Returns a case with 16 lanes, eight threads and one work-group.
    pub fn new(module: &'a Module, buffers: Vec<Vec<u32>>) -> Self {
        Self {
            module,
            entry: None,
            options: Options::default(),
            groups: [1, 1, 1],
            threads: 8,
            buffers,
            immediate: Vec::new(),
            strict_float: false,
        }
    }
}

/// Parses WGSL. An error is its rendered text.
pub fn wgsl(text: &str) -> Result<Module, String> {
    Module::from_wgsl(text).map_err(|error| error.render("test.wgsl", Some(text)))
}

/// Returns a device with one core.
fn device(strict_float: bool) -> Result<Device, String> {
    let mut flags = settings::builder();
    flags.set("opt_level", "speed").map_err(|error| error.to_string())?;
    let mut builder = isa::lookup_by_name("naplespu").map_err(|error| error.to_string())?;
    builder
        .set("strict_float", if strict_float { "true" } else { "false" })
        .map_err(|error| error.to_string())?;
    let isa = builder
        .finish(settings::Flags::new(flags))
        .map_err(|error| error.to_string())?;
    Device::new(isa).map_err(|error| error.to_string())
}

/// Runs an entry point. Returns the buffers after the run.
pub fn run(case: Case<'_>) -> Result<Vec<Vec<u32>>, String> {
    let kernel = case
        .module
        .compile(case.entry, &case.options)
        .map_err(|error| error.to_string())?;
    let text = kernel.function.display().to_string();
    let mut device = device(case.strict_float)?;
    let runner = Runner::new(&mut device, kernel).map_err(|error| format!("{error}\n{text}"))?;
    let mut bound = Vec::new();
    let places = (0..).map(|binding| (0, binding));
    let immediate = (!case.immediate.is_empty()).then_some(((IMMEDIATE_GROUP, 0), &case.immediate));
    for ((group, binding), words) in places.zip(&case.buffers).chain(immediate) {
        let buffer = device
            .allocate(4 * words.len() as u32)
            .map_err(|error| error.to_string())?;
        device
            .copy_words_in(buffer, 0, words)
            .map_err(|error| error.to_string())?;
        bound.push(Bound::whole(group, binding, buffer));
    }
    let dispatch = Dispatch::new(case.groups, case.threads);
    runner
        .dispatch(&mut device, &dispatch, &bound)
        .map_err(|error| format!("{error}\n{text}"))?;
    let mut results = Vec::new();
    for (bound, words) in bound.iter().zip(&case.buffers) {
        let words = device.copy_words_out(bound.buffer, 0, words.len());
        results.push(words.map_err(|error| error.to_string())?);
    }
    Ok(results)
}

/// Runs a case with each of these lanes and threads, but not one work-item at a time if the work-items
/// wait for each other. Returns the first buffer, which is the same for all.
pub fn agreed(text: &str, runs: &[(u32, usize)], case: impl Fn(&Module) -> Case<'_>) -> Result<Vec<u32>, String> {
    let module = wgsl(text)?;
    let waits = ["arrier()", "<workgroup>", "subgroup"]
        .iter()
        .any(|word| text.contains(word));
    let mut found: Option<Vec<u32>> = None;
    for &(lanes, threads) in runs.iter().filter(|(lanes, _)| *lanes > 1 || !waits) {
        let mut case = case(&module);
        (case.options.lanes, case.threads) = (lanes, threads);
        let results = run(case)
            .map_err(|error| format!("{lanes} lanes: {error}"))?
            .swap_remove(0);
        if let Some(before) = &found {
            assert_eq!(*before, results, "{lanes} lanes differ");
        }
        found = Some(results);
    }
    found.ok_or_else(|| "no run".to_owned())
}

/// Parts of a buffer are bound as if they were buffers. Their bytes may not overlap if one is
/// written.
#[test]
fn parts_of_buffers() -> Result<(), String> {
    let module = wgsl(
        "@group(0) @binding(0) var<storage, read> a: array<u32>;
         @group(0) @binding(1) var<storage, read_write> b: array<u32>;
         @compute @workgroup_size(32) fn main(@builtin(local_invocation_index) item: u32) {
             if item < arrayLength(&a) { b[item] = a[item] + arrayLength(&b); }
         }",
    )?;
    let mut device = device(false)?;
    let kernel = module
        .compile(None, &Options::default())
        .map_err(|error| error.to_string())?;
    let runner = Runner::new(&mut device, kernel).map_err(|error| error.to_string())?;
    let words: Vec<u32> = (100..164).collect();
    let buffer = device.allocate(256).map_err(|error| error.to_string())?;
    device
        .copy_words_in(buffer, 0, &words)
        .map_err(|error| error.to_string())?;
    let part = |binding, offset, size| Bound {
        group: 0,
        binding,
        buffer,
        offset,
        size,
    };
    let mut run = |a, b| {
        let finished = runner.dispatch(&mut device, &Dispatch::new([1, 1, 1], 2), &[a, b]);
        finished.map(|_| ())
    };
    let refused = run(part(0, 0, 68), part(1, 64, 64));
    assert!(matches!(refused, Err(RunError::Aliased { .. })), "{refused:?}");
    let refused = run(part(0, 4, 8), part(1, 64, 64));
    assert!(matches!(refused, Err(RunError::Unaligned { .. })), "{refused:?}");
    let refused = run(part(0, 0, 8), part(1, 192, 68));
    assert!(matches!(refused, Err(RunError::OutOfRange { .. })), "{refused:?}");
    run(part(0, 0, 8), part(1, 192, 64)).map_err(|error| error.to_string())?;
    let mut expected = words;
    (expected[48], expected[49]) = (116, 117);
    let found = device.copy_words_out(buffer, 0, 64);
    assert_eq!(found.map_err(|error| error.to_string())?, expected);
    runner.free(&mut device).map_err(|error| error.to_string())
}
