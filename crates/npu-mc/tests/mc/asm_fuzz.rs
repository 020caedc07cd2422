//! The assembler on random and damaged texts.

use crate::common::Random;
use npu_link::fuzz::{exercise, soup};

const CASES: u64 = 20_000;

fn check(source: &str, what: &str) {
    if let Err(why) = exercise(source) {
        panic!("{what}: {why}\n{source}");
    }
}

#[test]
fn soups_of_tokens() {
    for seed in 0..CASES {
        let mut random = Random::new(seed);
        let data: Vec<u8> = (0..random.below(200)).map(|_| random.word() as u8).collect();
        check(&soup(&data), &format!("seed {seed}"));
    }
}

#[test]
fn arbitrary_bytes() {
    for seed in 0..CASES {
        let mut random = Random::new(seed);
        let ascii = seed % 2 == 0;
        let mask = if ascii { 0x7F } else { 0xFF };
        let data: Vec<u8> = (0..random.below(100)).map(|_| random.word() as u8 & mask).collect();
        check(&String::from_utf8_lossy(&data), &format!("seed {seed}"));
    }
}

/// A program that uses most of the language, with a piece removed, doubled or changed.
#[test]
fn damaged_programs() {
    let program = include_str!("../programs/everything.s");
    exercise(program).unwrap();
    for seed in 0..CASES / 4 {
        let mut random = Random::new(seed);
        let mut bytes = program.as_bytes().to_vec();
        for _ in 0..=random.below(3) {
            let at = random.below(bytes.len());
            let end = (at + random.below(12)).min(bytes.len());
            match random.below(3) {
                0 => drop(bytes.drain(at..end)),
                1 => {
                    let copy = bytes[at..end].to_vec();
                    bytes.splice(at..at, copy);
                }
                _ => bytes[at] = random.word() as u8,
            }
        }
        check(&String::from_utf8_lossy(&bytes), &format!("seed {seed}"));
    }
}

#[test]
fn long_and_deep_sources_end() {
    let many = 100_000;
    for source in [
        "(".repeat(many),
        ".long ".to_owned() + &"(".repeat(many),
        ".long ".to_owned() + &"-".repeat(many) + "1",
        ".long ".to_owned() + &"1+".repeat(many) + "1",
        ".long ".to_owned() + &"x+".repeat(many) + "1",
        "/*".repeat(many),
        "a:".repeat(many),
        "1:".repeat(many),
        "\"".repeat(many),
        ".zero 0xffffffff\n".repeat(100),
        ".zero 65535\n".repeat(many),
        ".org 0xffffffff\n.byte 0\n.byte 0\n.align 4\nnop\n".to_owned(),
        ".bss\n.zero 0xffffffff\n.zero 1\n.comm x, 0xffffffff, 1048576\n".to_owned(),
        ".fill 0xffffffff, 8, 1\n.fill 0xffffffff, 0\n".to_owned(),
        "nop\n".repeat(many),
        format!("{}\n", "nop;".repeat(many)),
        (0..many / 10)
            .map(|i| format!(".set a{i}, a{}+1\n", i + 1))
            .collect::<String>()
            + ".long a0\n",
        (0..many / 10)
            .map(|i| format!(".set a{}, a{i}+a{i}\n", i + 1))
            .collect::<String>()
            + ".long a9\n",
        (0..many / 10)
            .map(|i| format!("l{i}: jmp l{}\n", many / 10 - 1 - i))
            .collect::<String>(),
        (0..many / 10)
            .map(|i| format!("{i}: jmp {i}b\njmp {i}f\n{i}:\n"))
            .collect::<String>(),
        (0..many / 10)
            .map(|i| format!(".section s{i},\"a\"\n"))
            .collect::<String>(),
    ] {
        let head: String = source.chars().take(40).collect();
        check(&source, &head);
    }
}
