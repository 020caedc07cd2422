//! Branches between objects at distances around their reach, with addends; relocations of every
//! type with values around the limits of their fields.

use npu_link::{
    Contents, Input, Layout, LinkOptions, Linker, Memory, MemoryLayout, Program, Purpose, Reference, link_program,
};
use npu_mc::asm;
use npu_mc::reloc::{self, Reloc};
use npu_mc::{Inst, Opcode, Operand, SReg};
use std::collections::HashMap;

fn input(name: &str, text: &str) -> Input {
    let object = asm::assemble(text, &asm::Options::default()).unwrap_or_else(|faults| panic!("{faults:?}\n{text}"));
    Input {
        name: name.to_owned(),
        object,
    }
}

fn linked(texts: &[&str]) -> Program {
    let names = ["a", "b", "c"];
    let inputs = texts.iter().zip(names).map(|(text, name)| input(name, text)).collect();
    let options = LinkOptions {
        startup: false,
        layout: MemoryLayout {
            data: 0x0200_0000,
            ..MemoryLayout::DEFAULT
        },
        ..LinkOptions::default()
    };
    link_program(inputs, &mut [], &options).unwrap_or_else(|errors| panic!("{errors:?}"))
}

fn word(program: &Program, address: u32) -> Option<u32> {
    program.image().segments.iter().find_map(|segment| {
        let at = address.checked_sub(segment.address)? as usize;
        let bytes = segment.bytes.get(at..)?.first_chunk()?;
        Some(u32::from_le_bytes(*bytes))
    })
}

fn symbol(program: &Program, name: &str) -> u32 {
    program
        .symbols
        .iter()
        .find(|symbol| symbol.name == name)
        .unwrap()
        .address
}

/// Returns the final target of a branch, directly or through a veneer (`expected` is the right
/// one), and whether it uses a veneer.
fn arrives(read: impl Fn(u32) -> Option<u32>, at: u32, expected: u32) -> (u32, bool) {
    let inst = |address| npu_mc::decode(read(address)?).ok();
    let branch = inst(at).unwrap_or_else(|| panic!("no branch at {at:#x}"));
    let distance = branch.operands.as_ref().last().and_then(|operand| operand.imm());
    let first = at.wrapping_add_signed(distance.unwrap());
    if first == expected {
        return (first, false);
    }
    let code = [0, 4, 8].map(|offset| inst(first.wrapping_add(offset)));
    let [Some(high), Some(low), Some(jump)] = code else {
        return (first, false);
    };
    let half = |inst: &Inst| inst.operands.as_ref()[1].imm().unwrap().cast_unsigned() & 0xffff;
    let is_veneer = [high.opcode, low.opcode, jump.opcode] == [Opcode::MOVEIHSI, Opcode::MOVEILSI, Opcode::JUMPREG]
        && code
            .iter()
            .flatten()
            .all(|inst| inst.operands.as_ref()[0] == Operand::S(SReg::TR));
    match is_veneer {
        true => (half(&high) << 16 | half(&low), true),
        false => (first, false),
    }
}

/// The addends of the calls in a source, one call for each. Some occur twice.
const ADDENDS: [i64; 6] = [0, 8, -4, 8, 0, 12];

fn calls() -> String {
    let line = |addend: &i64| format!("        jmpsr far{addend:+}\n");
    ADDENDS.iter().map(line).collect()
}

#[test]
fn branches_between_objects_arrive() {
    let (least, most) = Reloc::Branch.range();
    let (mut by_veneer, mut direct) = (0, 0);
    // The number of bytes between the two objects.
    let around = |limit: i64| (-6..=6).map(move |near: i64| limit.abs() - 24 + 4 * near);
    for gap in around(most).chain(around(least)).chain([0, 64, 1 << 20]) {
        let filler = format!("        .zero {gap}\n");
        let callers = format!("        .globl main\nmain:\n{}        jret\n", calls());
        let callees =
            "        .globl far\n        nop\nfar:    nop\n        jret\n        jret\n        jret\n        jret\n";
        for texts in [
            [callers.as_str(), &filler, callees],
            [callees, &filler, callers.as_str()],
        ] {
            let program = linked(&texts);
            let (main, far) = (symbol(&program, "main"), symbol(&program, "far"));
            for (number, addend) in (0u32..).zip(ADDENDS) {
                let at = main + 4 * number;
                let expected = far.wrapping_add_signed(addend as i32);
                let (end, is_veneer) = arrives(|address| word(&program, address), at, expected);
                assert_eq!(
                    end, expected,
                    "gap {gap}, addend {addend}: from {at:#x}, far is {far:#x}"
                );
                let distance = i64::from(expected) - i64::from(at);
                // Calls with the same target share a veneer, even those that could reach it
                // directly.
                let reaches = (least..=most).contains(&distance);
                assert!(is_veneer || reaches, "gap {gap}, addend {addend}");
                by_veneer += usize::from(is_veneer);
                direct += usize::from(!is_veneer);
            }
            // Veneers do not overwrite other code: the instruction after the calls is intact.
            assert_eq!(
                npu_mc::decode(word(&program, main + 24).unwrap()).unwrap().opcode,
                Opcode::JRET
            );
            assert_eq!(
                npu_mc::decode(word(&program, far).unwrap()).unwrap().opcode,
                Opcode::NOP
            );
        }
    }
    assert!(by_veneer > 100 && direct > 100, "{by_veneer} {direct}");
}

/// Bytes by address.
#[derive(Default)]
struct Sparse(HashMap<u32, u8>);

impl Memory for Sparse {
    fn write(&mut self, _: Purpose, address: u32, bytes: &[u8]) -> Result<(), String> {
        self.0.extend((address..).zip(bytes.iter().copied()));
        Ok(())
    }

    fn clear(&mut self, _: Purpose, _: u32, _: u32) -> Result<(), String> {
        Ok(())
    }

    fn read_word(&self, _: Purpose, address: u32) -> Result<[u8; 4], String> {
        Ok([0, 1, 2, 3].map(|at| self.0.get(&(address + at)).copied().unwrap_or_default()))
    }
}

/// The same for objects that are added one after the other.
#[test]
fn branches_of_a_growing_program_arrive() {
    let (least, most) = Reloc::Branch.range();
    let call = npu_mc::encode(&Inst::new(Opcode::JMPSR_OFF, [Operand::Imm(0)])).unwrap();
    let targets = ["one", "other"];
    for size in [256usize, 130_000, 131_064, 131_072, 140_000] {
        let mut memory = Sparse::default();
        let mut linker = Linker::new(Layout::new((0x10_0000, 0x4000_0000), (0x4000_0000, 0x5000_0000), 0));
        let mut bytes = vec![0; size];
        let mut references = Vec::new();
        // References at the start and at the end of the object.
        for (number, addend) in ADDENDS.into_iter().enumerate() {
            for offset in [4 * number, size - 32 + 4 * number] {
                bytes[offset..offset + 4].copy_from_slice(&call.to_le_bytes());
                references.push(Reference {
                    offset: offset as u32,
                    kind: Reloc::Branch,
                    target: targets[number % 2],
                    addend,
                });
            }
        }
        let contents = Contents {
            name: "calls".to_owned(),
            purpose: Purpose::Code,
            align: None,
            bytes: &bytes,
            size: size as u64,
            references,
        };
        let index = linker.place(&mut memory, contents).unwrap();
        let next = linker
            .place(
                &mut memory,
                Contents {
                    name: "next".to_owned(),
                    purpose: Purpose::Code,
                    align: None,
                    bytes: &[0xff; 64],
                    size: 64,
                    references: Vec::new(),
                },
            )
            .unwrap();
        let start = linker.object(index).unwrap().address;
        let (first, end) = linker.object(index).unwrap().room();
        assert!(end <= linker.object(next).unwrap().address && first <= start);
        let waiting = linker.take_waiting();
        for distance in [
            least - 4,
            least,
            least + 4,
            most - 7,
            most - 3,
            most + 1,
            most + 5,
            0x0100_0000,
            0x2345_6780,
        ] {
            for &reference in &waiting {
                let found = linker.reference(reference).unwrap().clone();
                let place = start + found.offset;
                // The two targets differ.
                let away = if found.target == "one" { 0 } else { 0x40 };
                let symbol = (i64::from(place) + distance + away) as u32;
                linker.apply(&mut memory, reference, symbol).unwrap();
                let read = |address| Some(u32::from_le_bytes(memory.read_word(Purpose::Code, address).ok()?));
                let expected = symbol.wrapping_add_signed(found.addend as i32);
                let (end, _) = arrives(read, place, expected);
                assert_eq!(end, expected, "{size} bytes, offset {:#x}, {distance:#x}", found.offset);
            }
        }
        // The object after it is intact.
        let address = linker.object(next).unwrap().address;
        assert_eq!(memory.read_word(Purpose::Code, address).unwrap(), [0xff; 4]);
        assert_eq!(memory.read_word(Purpose::Code, address + 60).unwrap(), [0xff; 4]);
    }
}

/// Every type of relocation, with corner cases of symbol, addend and address: the field has the
/// value, or an error leaves the word unchanged. The bits around the field are always unchanged.
#[test]
fn relocations_change_their_field_alone() {
    let symbols = [
        0u32,
        4,
        0x7fff,
        0x8000,
        0xfffc,
        0x1_0000,
        0x1_8000,
        0x1234_5678,
        0x7fff_fffc,
        0x8000_0000,
        0xffff_fffc,
    ];
    let addends = [0, 4, -4, 0x8000, -0x8000, i32::MAX, i32::MIN];
    let near = [
        -131_076i32,
        -131_072,
        -260,
        -256,
        -4,
        0,
        4,
        252,
        255,
        256,
        131_068,
        131_071,
        131_072,
    ];
    for &kind in Reloc::ALL {
        let info = kind.info();
        let field = match info.width {
            0 => 0,
            32 => u32::MAX,
            width => ((1u32 << width) - 1) << info.lsb,
        };
        for before in [0u32, u32::MAX, 0x5a5a_1234] {
            for symbol in symbols {
                for addend in addends {
                    let sum = symbol.wrapping_add_signed(addend);
                    let places = near
                        .iter()
                        .map(|&distance| sum.wrapping_sub(distance as u32))
                        .chain([0, 0x1000]);
                    for place in places {
                        let mut bytes = before.to_le_bytes();
                        let result = reloc::apply(kind, &mut bytes, symbol, addend, place);
                        let after = u32::from_le_bytes(bytes);
                        let what = format!("{kind:?} of {symbol:#x}{addend:+} at {place:#x}");
                        assert_eq!(after & !field, before & !field, "{what}");
                        let value = match info.formula {
                            reloc::Formula::None => continue,
                            reloc::Formula::Abs => sum,
                            reloc::Formula::Pc => sum.wrapping_sub(place),
                            reloc::Formula::AbsHigh => sum >> 16,
                            reloc::Formula::AbsLow => sum & 0xffff,
                        };
                        let signed = i64::from(value as i32);
                        let half = 1i64 << (info.width - 1);
                        if info.signed && !(-half..half).contains(&signed) {
                            assert!(result.is_err(), "{what}");
                            assert_eq!(after, before, "{what}");
                        } else {
                            assert!(result.is_ok(), "{what}");
                            assert_eq!(after & field, value << info.lsb & field, "{what}");
                        }
                    }
                }
            }
        }
    }
}

/// An alias of an address near a symbol of another object.
#[test]
fn names_near_symbols_of_other_objects() {
    for addend in [-4i64, 0, 4, 8] {
        let here = format!(
            "        .globl main\nmain:   jret\n        .globl near\n        .set near, there{addend:+}\n        .data\n        .globl word\n\
             word:   .long near\n"
        );
        let other = "        .globl there\n        nop\nthere:  jret\n        nop\n        nop\n";
        let program = linked(&[&here, other]);
        let expected = symbol(&program, "there").wrapping_add_signed(addend as i32);
        assert_eq!(symbol(&program, "near"), expected, "{addend}");
        assert_eq!(word(&program, symbol(&program, "word")), Some(expected), "{addend}");
    }
}
