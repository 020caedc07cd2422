//! Builds objects from sources, and runs programs on the simulator.

use cranelift_naplespu::Isa;
use naplespu_object::{NpuObjectModule, RuntimeLibrary};
use naplespu_reader::{ClifFile, Config};
use npu_link::elf::{executable, object, write_executable};
use npu_link::{Archive, Format, Image, Input, Library, LinkOptions, Program, ProgramError, link_program};
use npu_mc::asm;
use npu_sim::{Halt, Machine, Schedule, Status};
use std::sync::Arc;

/// A limit of instructions that no test reaches.
const STEPS: u64 = 100_000_000;

/// Returns the target with settings.
pub fn isa(settings: &[&str]) -> Arc<Isa> {
    let mut config = Config::new();
    for setting in settings {
        config.set(setting).unwrap();
    }
    config.isa().unwrap()
}

/// Returns an object file of the functions of a CLIF file.
pub fn compiled(name: &str, text: &str, isa: &Arc<Isa>, function_sections: bool) -> Vec<u8> {
    let file = ClifFile::parse(name, text.as_bytes());
    let mut module = NpuObjectModule::new(isa.clone()).unwrap();
    module.set_function_sections(function_sections);
    for case in &file.functions {
        module.define_clif(&case.func).unwrap();
    }
    assert!(!file.functions.is_empty(), "{name}");
    module.emit().unwrap()
}

/// Returns an object file of an assembly source.
pub fn assembled(text: &str) -> Vec<u8> {
    let object = asm::assemble(text, &asm::Options::default()).unwrap_or_else(|faults| panic!("{faults:?}\n{text}"));
    npu_link::elf::write_object(&object).unwrap()
}

/// Returns a file as an input of the linker.
pub fn input(name: &str, bytes: &[u8]) -> Input {
    Input {
        name: name.to_owned(),
        object: object(bytes).unwrap().object,
    }
}

/// Links files with archives and the runtime.
pub fn linked(
    files: &[Vec<u8>],
    archives: &mut [Archive],
    options: &LinkOptions,
) -> Result<Program, Vec<ProgramError>> {
    linked_for(&isa(&[]), files, archives, options)
}

/// Links files with archives and the runtime for a target.
pub fn linked_for(
    isa: &Isa,
    files: &[Vec<u8>],
    archives: &mut [Archive],
    options: &LinkOptions,
) -> Result<Program, Vec<ProgramError>> {
    let names = ["a.o", "b.o", "c.o", "d.o"];
    let inputs = files.iter().zip(names).map(|(file, name)| input(name, file)).collect();
    let mut runtime = RuntimeLibrary::new(isa);
    let mut libraries: Vec<&mut dyn Library> = archives.iter_mut().map(|archive| archive as &mut dyn Library).collect();
    libraries.push(&mut runtime);
    link_program(inputs, &mut libraries, options)
}

/// Returns the image of a program, passed through an ELF file and a file of words.
pub fn image(program: &Program) -> Image {
    let from_elf = executable(&write_executable(program).unwrap()).unwrap();
    let words = Image::parse(Format::HexWords, &from_elf.write(Format::HexWords).unwrap(), 0).unwrap();
    Image {
        entry: from_elf.entry,
        ..words
    }
}

/// Runs a program on threads of one core until all have ended.
pub fn run(program: &Program, threads: u32) -> Machine {
    let image = image(program);
    let mut machine = Machine::new(npu_sim::Config::default());
    machine.load(&image).unwrap();
    machine.enable(0, (1 << threads) - 1);
    for number in 0..threads as usize {
        machine.boot(number, image.entry.unwrap());
    }
    let halt = machine.run_threads(&mut Schedule::random(7, 5), STEPS);
    assert!(matches!(halt, Halt::Ended), "{halt}");
    for number in 0..threads as usize {
        assert_eq!(machine.thread(number).status(), Status::ENDED, "thread {number}");
    }
    machine.write_back_caches().unwrap();
    machine
}

/// Returns the address of a symbol.
pub fn address(program: &Program, name: &str) -> u32 {
    let found: Vec<u32> = program
        .symbols
        .iter()
        .filter(|symbol| symbol.name == name)
        .map(|symbol| symbol.address)
        .collect();
    assert_eq!(found.len(), 1, "{name}");
    found[0]
}

/// Returns words of memory from a symbol on.
pub fn words(machine: &Machine, program: &Program, name: &str, count: u32) -> Vec<u32> {
    let start = address(program, name);
    (0..count)
        .map(|number| machine.memory().read_u32(start + 4 * number))
        .collect()
}

/// Returns an archive of members in the format of `ar`.
pub fn archive(members: &[(&str, &[u8])]) -> Vec<u8> {
    let mut bytes = b"!<arch>\n".to_vec();
    for (name, contents) in members {
        let name = format!("{name}/");
        let size = contents.len();
        bytes.extend(format!("{name:<16}{:<12}{:<6}{:<6}{:<8}{size:<10}`\n", 0, 0, 0, 644).bytes());
        bytes.extend(*contents);
        if size % 2 == 1 {
            bytes.push(b'\n');
        }
    }
    bytes
}
