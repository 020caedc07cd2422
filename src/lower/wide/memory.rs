//! Loads and stores of several words, and of parts of them.

use crate::inst::{AMode, MInst};
use crate::lower::address;
use crate::lower::context::{Lower, Rules};
use crate::lower::words::{Word, Words, count};
use cranelift_codegen::ir::{Endianness, MemFlags, Type, Value};
use npu_mc::Opcode as Op;
use regalloc2::RegClass;
use smallvec::SmallVec;

/// Bytes of a word.
const WORD: u8 = npu_mc::machine::WORD_SLOT as u8;

fn is_big_endian(ctx: &Lower<'_>, flags: MemFlags) -> bool {
    ctx.func.dfg.mem_flags[flags].explicit_endianness() == Some(Endianness::Big)
}

/// The address of each word of a value, low word first. Bytes within the words are in the order of the flags as well.
fn places(big_endian: bool, addr: AMode, len: usize) -> SmallVec<[AMode; 4]> {
    (0..len)
        .map(|i| {
            let place = if big_endian { len - 1 - i } else { i };
            address::plus(addr, (place as i32) * i32::from(WORD))
        })
        .collect()
}

/// A value at `pointer` + `offset`.
pub fn load(ctx: &mut Lower<'_>, ty: Type, flags: MemFlags, pointer: Value, offset: i32) -> Words {
    if ty.bits() < 32 {
        return Words::one(load_part(ctx, ty, flags, pointer, offset));
    }
    let plain = ctx.is_plain_access(flags, pointer, offset, WORD);
    let addr = ctx.address(pointer, offset, ty.bytes());
    let mut words: SmallVec<[Word; 4]> = SmallVec::new();
    // The lowest word comes last, so that it can take the register of the address, as arguments and results do.
    for addr in places(is_big_endian(ctx, flags), addr, count(ty)).into_iter().rev() {
        words.push(Word::Reg(if plain {
            load_word(ctx, Op::L32W_Mainmem, addr)
        } else {
            ctx.load_bytes(flags, addr, WORD)
        }));
    }
    words.reverse();
    Words::new(words)
}

fn load_word(ctx: &mut Lower<'_>, op: Op, addr: AMode) -> crate::inst::reg::Reg {
    let dst = crate::inst::reg::Reg::Virtual(ctx.new_vreg(RegClass::Int));
    ctx.emit(MInst::Load { op, dst, addr });
    dst
}

/// A number of at most 32 bits, zero-extended.
pub fn load_part(ctx: &mut Lower<'_>, ty: Type, flags: MemFlags, pointer: Value, offset: i32) -> Word {
    let bytes = ty.bytes() as u8;
    let plain = ctx.is_plain_access(flags, pointer, offset, bytes);
    let addr = ctx.address(pointer, offset, WORD.into());
    let reg = match (plain, bytes) {
        (true, 1) => load_word(ctx, Op::L32BU_Mainmem, addr),
        (true, 2) => load_word(ctx, Op::L32SU_Mainmem, addr),
        (true, _) => load_word(ctx, Op::L32W_Mainmem, addr),
        (false, _) => ctx.load_bytes(flags, addr, bytes),
    };
    Word::Reg(reg)
}

/// Stores all words of a value.
pub fn store(ctx: &mut Lower<'_>, flags: MemFlags, words: Words, pointer: Value, offset: i32) {
    let plain = ctx.is_plain_access(flags, pointer, offset, WORD);
    let addr = ctx.address(pointer, offset, u32::from(WORD) * words.len() as u32);
    let places = places(is_big_endian(ctx, flags), addr, words.len());
    for (&word, addr) in words.as_slice().iter().zip(places) {
        let src = ctx.reg(word);
        if plain {
            let op = Op::S32W_Mainmem;
            ctx.emit(MInst::Store { op, src, addr });
        } else {
            ctx.store_bytes(flags, src, addr, WORD);
        }
    }
}

/// Stores the low bits of a value, as many as the type has.
pub fn store_part(ctx: &mut Lower<'_>, flags: MemFlags, words: Words, ty: Type, pointer: Value, offset: i32) {
    let bytes = ty.bytes() as u8;
    let plain = ctx.is_plain_access(flags, pointer, offset, bytes);
    let addr = ctx.address(pointer, offset, WORD.into());
    let src = ctx.reg(words.low());
    let op = match (plain, bytes) {
        (true, 1) => Op::S32B_Mainmem,
        (true, 2) => Op::S32S_Mainmem,
        (true, _) => Op::S32W_Mainmem,
        (false, _) => {
            ctx.store_bytes(flags, src, addr, bytes);
            return;
        }
    };
    ctx.emit(MInst::Store { op, src, addr });
}
