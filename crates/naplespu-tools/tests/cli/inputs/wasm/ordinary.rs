//! The standard library of Rust: maps, strings, floats, arguments.
//!
//!     rustc --target wasm32-wasip1 -C opt-level=z -C lto -C panic=abort -C strip=symbols -o ordinary_rust.wasm ordinary.rs

use std::collections::{BTreeMap, HashMap};

fn main() {
    let mut words = BTreeMap::new();
    for word in "the quick brown fox jumps over the lazy dog the end".split(' ') {
        *words.entry(word).or_insert(0) += 1;
    }
    for (word, count) in &words {
        println!("{word}: {count}");
    }
    let roots: Vec<f64> = (0..6).rev().map(|number| f64::from(number).sqrt()).collect();
    println!("{roots:.4?}");
    let squares: HashMap<i32, i32> = (0..5).map(|number| (number, number * number)).collect();
    println!("{} {:?}", squares.values().sum::<i32>(), std::env::args().nth(1));
}
