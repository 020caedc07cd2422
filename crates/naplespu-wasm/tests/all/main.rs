//! All tests of the crate, but for the one that counts what the process allocates.

use cranelift_codegen::settings::{self, Configurable};
use cranelift_naplespu::isa::lookup_by_name;
use naplespu_jit::NpuModule;
use naplespu_wasm::{Config, Instance, Store};

mod bounds;
mod differential;
mod dispatch;
mod exceptions;
mod limits;
mod simd;
mod spec;
mod threads;
mod translate;

/// Returns a store whose threads have a stack each, with IEEE 754 floats and atomic operations that
/// exclude the threads of all cores.
fn store_of_threads(flags: &[(&str, &str)], device: npu_sim::Config) -> Store {
    let mut builder = settings::builder();
    for (name, value) in flags {
        builder.set(name, value).unwrap();
    }
    let mut isa = lookup_by_name("naplespu").unwrap();
    isa.set("strict_float", "true").unwrap();
    isa.set("atomics", if device.cores > 1 { "machine" } else { "core" })
        .unwrap();
    let isa = isa.finish(settings::Flags::new(builder)).unwrap();
    let config = Config {
        thread_stacks: true,
        ..Config::default()
    };
    let mut store = Store::new(NpuModule::with_config(isa, device).unwrap(), config);
    store.module_mut().set_step_limit(200_000_000);
    store
}

/// Loads and starts a module.
fn load(store: &mut Store, text: &str) -> Instance {
    let bytes = wat::parse_str(text).unwrap_or_else(|error| panic!("{error}\n{text}"));
    let instance = store.load(&bytes).unwrap();
    store.start(&instance).unwrap();
    instance
}
