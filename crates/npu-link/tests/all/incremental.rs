//! Incremental linking: waiting references, veneers, errors.

use npu_link::{Contents, Layout, LinkError, Linker, Memory, Purpose, Reference};
use npu_mc::reloc::Reloc;
use npu_mc::{Inst, Opcode, Operand};
use std::collections::HashMap;

/// Bytes by address.
#[derive(Default)]
struct Sparse(HashMap<u32, u8>);

impl Memory for Sparse {
    fn write(&mut self, _: Purpose, address: u32, bytes: &[u8]) -> Result<(), String> {
        self.0.extend((address..).zip(bytes.iter().copied()));
        Ok(())
    }

    fn clear(&mut self, _: Purpose, address: u32, size: u32) -> Result<(), String> {
        self.0.extend((address..address + size).map(|at| (at, 0)));
        Ok(())
    }

    fn read_word(&self, _: Purpose, address: u32) -> Result<[u8; 4], String> {
        Ok([0, 1, 2, 3].map(|i| self.0.get(&(address + i)).copied().unwrap_or_default()))
    }
}

fn inst(memory: &Sparse, address: u32) -> String {
    let word = u32::from_le_bytes(memory.read_word(Purpose::Code, address).unwrap());
    npu_mc::decode(word).unwrap().to_string()
}

/// Returns a function that calls `far` and returns.
fn caller(bytes: &[u8]) -> Contents<'_, &'static str> {
    Contents {
        name: "caller".to_owned(),
        purpose: Purpose::Code,
        align: None,
        bytes,
        size: bytes.len() as u64,
        references: vec![Reference {
            offset: 0,
            kind: Reloc::Branch,
            target: "far",
            addend: 0,
        }],
    }
}

fn code() -> Vec<u8> {
    let call = npu_mc::encode(&Inst::new(Opcode::JMPSR_OFF, [Operand::Imm(0)])).unwrap();
    let jret = npu_mc::encode(&Inst::new(Opcode::JRET, [])).unwrap();
    [call.to_le_bytes(), jret.to_le_bytes()].concat()
}

#[test]
fn references_wait_and_go_through_a_veneer_where_they_must() {
    let mut memory = Sparse::default();
    let mut linker = Linker::new(Layout::new((0x1000, 0x4000_0000), (0x4000_0000, 0x5000_0000), 0));
    let index = linker.place(&mut memory, caller(&code())).unwrap();
    assert_eq!(linker.object(index).unwrap().address, 0x1000);
    let waiting = linker.take_waiting();
    assert_eq!(waiting, [(index, 0)]);
    assert_eq!(linker.reference(waiting[0]).unwrap().target, "far");
    linker.apply(&mut memory, waiting[0], 0x1040).unwrap();
    assert_eq!(inst(&memory, 0x1000), "jmpsr 64");
    linker.apply(&mut memory, waiting[0], 0x2345_6780).unwrap();
    assert_eq!(inst(&memory, 0x1000), "jmpsr 8");
    let veneer = [0x1008, 0x100c, 0x1010].map(|address| inst(&memory, address));
    assert_eq!(veneer, ["moveih tr, 9029", "moveil tr, 26496", "jmp tr"]);
    assert_eq!(linker.code_at(0x1004).map(|(index, _)| index), Some(index));
    assert!(linker.code_at(0x1008).is_none());
}

#[test]
fn what_does_not_fit_is_reported() {
    let mut memory = Sparse::default();
    let mut linker = Linker::new(Layout::new((0x1000, 0x1010), (0, 0), 0));
    let code = code();
    let mut contents = caller(&code);
    contents.references[0].offset = 5;
    let error = linker.place(&mut memory, contents).unwrap_err();
    assert_eq!(
        error.to_string(),
        "%caller: the relocation at 0x5 does not lie within it"
    );
    let error = linker.place(&mut memory, caller(&code)).unwrap_err();
    assert!(matches!(error, LinkError::MemoryFull(_)), "{error}");
    let mut contents = caller(&code);
    contents.align = Some(48);
    let error = linker.place(&mut memory, contents).unwrap_err();
    assert!(matches!(error, LinkError::Alignment { align: 48, .. }), "{error}");
    assert!(linker.is_empty() && linker.waiting().is_empty());
}

#[test]
fn what_is_removed_makes_room() {
    let mut memory = Sparse::default();
    let mut linker = Linker::new(Layout::new((0x1000, 0x2000), (0x4000, 0x5000), 0));
    let bytes = code();
    let place = |linker: &mut Linker<_>, memory: &mut Sparse| linker.place(memory, caller(&bytes)).unwrap();
    let [first, second, third] = [(); 3].map(|()| place(&mut linker, &mut memory));
    let address = |linker: &Linker<_>, index| linker.object(index).map(|object| object.address);
    assert_eq!(address(&linker, second), Some(0x1040));
    assert_eq!(linker.object(second).unwrap().room(), (0x1040, 0x1040 + 8 + 12));
    assert_eq!(linker.remove(second).unwrap().name, "caller");
    assert!(linker.remove(second).is_none() && linker.object(second).is_none());
    // Its references are removed from the waiting ones, and the order of code is unchanged.
    assert_eq!(linker.waiting(), [(first, 0), (third, 0)]);
    assert!(linker.code_at(0x1044).is_none());
    assert_eq!(
        (linker.len(), linker.code_at(0x1084).map(|(index, _)| index)),
        (2, Some(third))
    );
    let again = place(&mut linker, &mut memory);
    assert_eq!((again, address(&linker, again)), (second, Some(0x1040)));
    let order: Vec<u32> = linker.code().map(|(_, object)| object.address).collect();
    assert_eq!(order, [0x1000, 0x1040, 0x1080]);
    assert_eq!(linker.code_at(0x1044).map(|(index, _)| index), Some(again));
}

#[test]
fn only_what_was_allocated_is_released() {
    let mut memory = Sparse::default();
    let mut linker: Linker<&str> = Linker::new(Layout::new((0x1000, 0x2000), (0x4000, 0x5000), 0));
    let zeros = Contents {
        name: "zeros".to_owned(),
        purpose: Purpose::Data,
        align: None,
        bytes: &[],
        size: 0x100,
        references: Vec::new(),
    };
    let object = linker.place(&mut memory, zeros).unwrap();
    let object = linker.object(object).unwrap().address;
    let block = linker.allocate("block", 0x100, 64).unwrap();
    assert!(!linker.release(object) && !linker.release(block + 1));
    assert!(linker.release(block) && !linker.release(block));
    assert_eq!(linker.allocate("block", 0x200, 64).unwrap(), block);
    assert!(linker.allocate("block", 0x1000, 64).is_err());
}

#[test]
fn each_far_target_has_a_veneer_of_its_own() {
    let call = npu_mc::encode(&Inst::new(Opcode::JMPSR_OFF, [Operand::Imm(0)])).unwrap();
    let calls = [("one", 0), ("two", 0), ("one", 8), ("one", 0), ("two", -4)];
    let bytes: Vec<u8> = calls.iter().flat_map(|_| call.to_le_bytes()).collect();
    let reference = |(number, &(target, addend)): (usize, &(&'static str, i64))| Reference {
        offset: 4 * number as u32,
        kind: Reloc::Branch,
        target,
        addend,
    };
    let mut memory = Sparse::default();
    let mut linker = Linker::new(Layout::new((0x1000, 0x4000_0000), (0x4000_0000, 0x5000_0000), 0));
    let contents = Contents {
        references: calls.iter().enumerate().map(reference).collect(),
        ..caller(&bytes)
    };
    let index = linker.place(&mut memory, contents).unwrap();
    let symbols = [("one", 0x2345_6780), ("two", 0x3000_0040)];
    let address_of = |name| symbols.iter().find(|symbol| symbol.0 == name).unwrap().1;
    for waiting in linker.take_waiting() {
        let target = linker.reference(waiting).unwrap().target;
        linker.apply(&mut memory, waiting, address_of(target)).unwrap();
    }
    let operand = |address, place: usize| {
        let word = u32::from_le_bytes(memory.read_word(Purpose::Code, address).unwrap());
        npu_mc::decode(word).unwrap().operands.as_ref()[place].imm().unwrap()
    };
    let start = linker.object(index).unwrap().address;
    for (number, (target, addend)) in (0u32..).zip(calls) {
        let at = start + 4 * number;
        let veneer = at.wrapping_add_signed(operand(at, 0));
        let half = |address| operand(address, 1).cast_unsigned() & 0xffff;
        let found = half(veneer) << 16 | half(veneer + 4);
        assert_eq!(
            found,
            address_of(target).wrapping_add_signed(addend as i32),
            "call {number}"
        );
        assert_eq!(inst(&memory, veneer + 8), "jmp tr", "call {number}");
    }
}
