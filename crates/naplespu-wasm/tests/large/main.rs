//! Compiles and runs a module with a megabyte of code. The memory for that grows at most linearly
//! with the size of the module.

mod generate;

use cranelift_codegen::settings::{self, Configurable};
use cranelift_naplespu::isa::lookup_by_name;
use generate::Source;
use naplespu_jit::NpuModule;
use naplespu_wasm::{Config, Store, Value};
use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicUsize, Ordering};

/// The system's allocator with a counter of bytes.
struct Counting;

static BYTES: AtomicUsize = AtomicUsize::new(0);

// SAFETY: forwards every call to the system's allocator.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        BYTES.fetch_add(layout.size(), Ordering::Relaxed);
        // SAFETY: the caller's contract is the same.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: the caller's contract is the same.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static COUNTING: Counting = Counting;

/// Translates, compiles and runs a module with this number of functions. Returns the size of the
/// module and the number of allocated bytes. The code is not optimized; a test of the compiler
/// covers the growth of optimization time.
fn run(functions: u32) -> (usize, usize) {
    let source = Source::new(functions);
    let module = source.module();
    let before = BYTES.load(Ordering::Relaxed);
    let mut flags = settings::builder();
    flags.set("opt_level", "none").unwrap();
    flags.set("regalloc_algorithm", "single_pass").unwrap();
    let mut builder = lookup_by_name("naplespu").unwrap();
    builder.set("strict_float", "true").unwrap();
    let isa = builder.finish(settings::Flags::new(flags)).unwrap();
    let mut store = Store::new(NpuModule::new(isa).unwrap(), Config::default());
    let instance = store.load(&module).unwrap();
    store.start(&instance).unwrap();
    let results = store.invoke(&instance, "run", &[Value::I32(7)]).unwrap();
    assert_eq!(results, [Value::I32(source.run(7))]);
    (module.len(), BYTES.load(Ordering::Relaxed) - before)
}

/// The maximum number of allocated bytes for each additional byte of the module.
const PER_BYTE: usize = 1000;

#[test]
fn a_megabyte_of_code_runs_and_takes_memory_like_its_size() {
    let (small, first) = run(280);
    let (large, last) = run(1120);
    println!("{small} bytes: {first} allocated; {large} bytes: {last} allocated");
    assert!(large > 1 << 20, "{large} bytes");
    // The memory for the runtime is part of both numbers.
    let slope = (last - first) / (large - small);
    assert!(slope < PER_BYTE, "{slope} bytes for each byte of the module");
    assert!(
        last * small < first * large * 5 / 4,
        "{first} bytes for {small}, {last} for {large}"
    );
}
