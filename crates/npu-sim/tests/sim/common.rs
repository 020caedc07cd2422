//! The location of the goldens, and the parser of golden-run files.

use npu_mc::machine::ControlRegister;
use npu_mc::{SReg, VReg};
use npu_sim::Machine;
use std::collections::BTreeMap;
use std::path::PathBuf;

/// Returns the folder of goldens: that of the project, or the value of `NAPLESPU_GOLDENS`.
pub fn goldens() -> PathBuf {
    match std::env::var_os("NAPLESPU_GOLDENS") {
        Some(folder) => PathBuf::from(folder),
        None => PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../tests/goldens"),
    }
}

/// The expected final state of one thread.
#[derive(Debug, Default)]
pub struct ExpectedThread {
    pub number: usize,
    pub status: u32,
    pub trap: u32,
    pub mask: u16,
    pub scalars: BTreeMap<u8, u32>,
    pub vectors: BTreeMap<u8, [u32; 16]>,
}

/// A golden-run file.
#[derive(Debug, Default)]
pub struct Golden {
    pub name: String,
    pub threads: u32,
    pub pc: u32,
    pub control: Vec<(u32, u32)>,
    pub input: Vec<u8>,
    pub image: Vec<(u32, u32)>,
    pub console: Vec<u8>,
    pub expected: Vec<ExpectedThread>,
    pub memory: Vec<(u32, u32)>,
    pub scratchpad: Vec<(u32, u32)>,
    /// Extra cycles of a memory transaction; only golden-timing files have this field and the
    /// following ones.
    pub memory_delay: u32,
    pub cycles: u64,
    pub instructions: u64,
}

fn hex(text: &str) -> u32 {
    let digits = text.strip_prefix("0x").unwrap_or(text);
    u32::from_str_radix(digits, 16).unwrap_or_else(|_| panic!("`{text}` is not hexadecimal"))
}

fn bytes(text: &str) -> Vec<u8> {
    text.split_whitespace().map(|b| hex(b) as u8).collect()
}

impl Golden {
    /// Loads the program into a machine and starts its threads, as the host does.
    pub fn start(&self, machine: &mut Machine) {
        for (address, word) in &self.image {
            machine.memory_mut().write_u32(*address, *word).unwrap();
        }
        for (register, value) in &self.control {
            let register = ControlRegister::from_number(*register as u8).expect("a control register");
            machine.set_control_register(register, *value);
        }
        machine.push_console_input(&self.input);
        for number in 0..npu_sim::THREADS {
            machine.boot(number, self.pc);
        }
        machine.enable(0, self.threads);
    }

    pub fn parse(text: &str) -> Golden {
        #[derive(PartialEq)]
        enum Part {
            Head,
            Image,
            Memory,
            Scratchpad,
        }
        let mut golden = Golden::default();
        let mut part = Part::Head;
        let mut at = 0;
        let mut lines = text.lines().filter(|l| !l.is_empty() && !l.starts_with('#'));
        assert_eq!(lines.next(), Some("npu-golden 1"));
        for line in lines {
            if line == "end" {
                return golden;
            }
            if let Some((key, value)) = line.split_once(':') {
                let value = value.trim();
                part = Part::Head;
                match key {
                    "name" => golden.name = value.to_owned(),
                    "topic" | "expect" => {}
                    "threads" => golden.threads = hex(value),
                    "pc" => golden.pc = hex(value),
                    "memdelay" => golden.memory_delay = value.parse().expect("cycles"),
                    "cycles" => golden.cycles = value.parse().expect("cycles"),
                    "instructions" => golden.instructions = value.parse().expect("instructions"),
                    "setcr" => {
                        let (id, word) = value.split_once(' ').expect("setcr: id value");
                        golden.control.push((id.parse().expect("id"), hex(word)));
                    }
                    "stdin" => golden.input = bytes(value),
                    "image" => part = Part::Image,
                    "console" => golden.console = bytes(value),
                    "mem" => part = Part::Memory,
                    "spm" => part = Part::Scratchpad,
                    "thread" => golden.expected.push(ExpectedThread {
                        number: value.parse().expect("thread number"),
                        ..ExpectedThread::default()
                    }),
                    _ => {
                        let thread = golden.expected.last_mut().expect("a thread block");
                        match key {
                            "status" => thread.status = hex(value),
                            "trap" => thread.trap = hex(value),
                            "rm" => thread.mask = hex(value) as u16,
                            _ => {
                                let number = key[1..].parse().expect("register number");
                                if key.starts_with('s') {
                                    thread.scalars.insert(number, hex(value));
                                } else {
                                    let lanes: Vec<u32> = value.split_whitespace().map(hex).collect();
                                    let lanes = lanes.try_into().expect("16 lanes");
                                    thread.vectors.insert(number, lanes);
                                }
                            }
                        }
                    }
                }
            } else if let Some(address) = line.strip_prefix('@') {
                at = hex(address);
            } else {
                let words = match part {
                    Part::Image => &mut golden.image,
                    Part::Memory => &mut golden.memory,
                    Part::Scratchpad => &mut golden.scratchpad,
                    Part::Head => panic!("`{line}` outside of a part"),
                };
                for word in line.split_whitespace() {
                    words.push((at, hex(word)));
                    at += 4;
                }
            }
        }
        panic!("no `end`");
    }

    /// Returns all golden-run files, sorted by name.
    pub fn all() -> Vec<Golden> {
        Golden::folder("golden-run")
    }

    /// Returns all files of a folder of goldens, sorted by name.
    pub fn folder(name: &str) -> Vec<Golden> {
        let folder = goldens().join(name);
        let mut paths: Vec<PathBuf> = std::fs::read_dir(&folder)
            .unwrap_or_else(|e| panic!("{}: {e}", folder.display()))
            .map(|entry| entry.expect("entry").path())
            .filter(|p| p.extension().is_some_and(|e| e == "txt"))
            .collect();
        paths.sort();
        paths
            .iter()
            .map(|p| Golden::parse(&std::fs::read_to_string(p).expect("golden file")))
            .collect()
    }
}

/// A small deterministic generator for random tests (SplitMix64).
pub struct Random(pub u64);

impl Random {
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    pub fn word(&mut self) -> u32 {
        (self.next() >> 32) as u32
    }

    pub fn below(&mut self, bound: u32) -> u32 {
        ((u64::from(self.word()) * u64::from(bound)) >> 32) as u32
    }
}

/// Returns the scalar register with this number, modulo 64.
pub fn sreg(number: impl TryInto<u8>) -> SReg {
    number
        .try_into()
        .ok()
        .and_then(|n| SReg::new(n & 63))
        .expect("a register number")
}

/// Returns the vector register with this number, modulo 64.
pub fn vreg(number: impl TryInto<u8>) -> VReg {
    number
        .try_into()
        .ok()
        .and_then(|n| VReg::new(n & 63))
        .expect("a register number")
}

/// Returns the differences between a machine and the expected state.
pub fn differences(golden: &Golden, machine: &Machine) -> Vec<String> {
    let mut found = Vec::new();
    let mut check = |what: String, got: u32, want: u32| {
        if got != want {
            found.push(format!("{what}: got {got:08x}, expected {want:08x}"));
        }
    };
    for expected in &golden.expected {
        let thread = machine.thread(expected.number);
        check("status".into(), thread.status().code(), expected.status);
        check("trap".into(), thread.trap_reason().value(), expected.trap);
        check("mask".into(), thread.mask().into(), expected.mask.into());
        for (&number, &value) in &expected.scalars {
            check(format!("s{number}"), thread.scalar(sreg(number)), value);
        }
        for (&number, lanes) in &expected.vectors {
            for (lane, &value) in lanes.iter().enumerate() {
                let got = thread.vector(vreg(number)).0[lane];
                check(format!("v{number}[{lane}]"), got, value);
            }
        }
    }
    for &(address, word) in &golden.memory {
        let got = machine.memory().read_u32(address);
        check(format!("memory {address:08x}"), got, word);
    }
    for &(address, word) in &golden.scratchpad {
        let at = address as usize;
        let got = u32::from_le_bytes(machine.scratchpad()[at..at + 4].try_into().unwrap());
        check(format!("scratchpad {address:08x}"), got, word);
    }
    if machine.console_output() != golden.console {
        found.push(format!("console: got {:?}", machine.console_output()));
    }
    found
}
