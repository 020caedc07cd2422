//! Single operations on vectors against the evaluator. The seed is the number of the operation.

use naplespu_fuzz::operations::{operations, vectors};
use naplespu_fuzz::{self as fuzz, Strategy};

#[test]
fn operations_on_vectors_do_what_the_evaluator_says() {
    let configs = Strategy::Vectors.configs().unwrap();
    let all = operations(&configs[0].1, vectors(), true);
    let calls: usize = all.iter().map(|(_, case)| case.calls.len()).sum();
    println!("{} operations, {calls} calls", all.len());
    assert!(calls > 27_000, "{} operations, {calls} calls", all.len());
    super::check(all.len() as u64, |number| {
        let (_, case) = all.get(number as usize)?;
        Some(fuzz::run(case.clone(), &configs, number))
    });
}
