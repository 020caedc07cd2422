//! Tests of the documents and of the repository as a whole. The parts of documents that are made
//! from the compiler have tests in its package.

#[path = "../../../../examples/embed.rs"]
mod embed;
mod once;
mod sessions;

use cranelift_naplespu::Isa;

#[test]
fn embedding() {
    embed::main().unwrap();
    fn can_be_shared<T: Send + Sync>() {}
    can_be_shared::<Isa>();
}
