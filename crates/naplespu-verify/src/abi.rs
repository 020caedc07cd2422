//! The calling convention: locations of arguments, results and callee-saved registers.

use crate::clif::Lanes;
use crate::memory::{Memory, Region};
use crate::term::{Pool, Term, WORD};
use cranelift_codegen::ir::{AbiParam, ArgumentExtension, ExternalName, Function, Signature, StackSlots, Type};
use cranelift_naplespu::abi::sig::{Place, Places, SigInfo};
use cranelift_naplespu::code::FrameLayout;
use cranelift_naplespu::settings::TargetSettings;
use cranelift_naplespu::shape::vector_registers;
use npu_mc::machine::LANES;
use npu_mc::{Reg, SReg};

/// The assumed address of the code. Code depends on its address only through relocations.
pub const BASE: u32 = 0x1000_0000;

/// The operations that compiled code leaves to the float unit.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FloatUnit {
    /// None: the machine has no float unit.
    None,
    /// Conversions from small integers, which are exact.
    Conversions,
    /// Arithmetic of `f32`, too.
    All,
}

impl FloatUnit {
    /// Returns the use of the float unit under these settings.
    pub fn of(settings: &TargetSettings) -> Self {
        match (settings.has_fpu, settings.strict_float) {
            (false, _) => Self::None,
            (true, true) => Self::Conversions,
            (true, false) => Self::All,
        }
    }
}

/// The stack layout and signature of a function.
pub struct Layout {
    /// The stack pointer at entry.
    pub sp: Term,
    /// The function's own signature.
    pub sig: SigInfo,
    /// The layout of the frame.
    pub frame: FrameLayout,
    /// The use of the float unit.
    pub float_unit: FloatUnit,
    /// The size and alignment of the function's stack slots, in bytes.
    slots: Vec<(u32, u32)>,
    /// The function's name, whose symbol is at [`BASE`].
    function: String,
}

/// Returns the unknown for the value of a register at entry.
pub fn initial_register(pool: &mut Pool, reg: Reg, lane: u32) -> Term {
    match reg {
        Reg::S(reg) => pool.var(&reg.to_string(), WORD),
        Reg::V(reg) => pool.var(&format!("{reg}_{lane}"), WORD),
    }
}

/// The name of the unknown upper bits of the stack pointer at entry.
const STACK_POINTER: &str = "sp";
/// The prefix of the names of unknown symbol addresses.
const ADDRESS: &str = "address_of_";

/// Returns whether the unknown with this name is part of an address.
pub fn is_place(name: &str) -> bool {
    name == STACK_POINTER || name.starts_with(ADDRESS)
}

/// Returns the stack pointer at entry, which is aligned.
fn stack_pointer(pool: &mut Pool) -> Term {
    let low = npu_mc::machine::STACK_ALIGN.trailing_zeros();
    let high = pool.var(STACK_POINTER, WORD - low);
    let zero = pool.int(low, 0);
    pool.concat(&[high, zero])
}

/// Returns the name of a symbol, with `%` as in CLIF.
pub fn symbol_name(func: &Function, name: &ExternalName) -> String {
    name.display(Some(&func.params)).to_string()
}

impl Layout {
    /// Returns the layout of a function with this frame.
    pub fn new(pool: &mut Pool, func: &Function, sig: SigInfo, frame: FrameLayout, float_unit: FloatUnit) -> Self {
        let slots: &StackSlots = &func.sized_stack_slots;
        Self {
            sp: stack_pointer(pool),
            sig,
            slots: slots
                .values()
                .map(|slot| (slot.size, 1 << slot.align_shift))
                .take(frame.stack_slots.len())
                .collect(),
            frame,
            float_unit,
            function: func.name.to_string(),
        }
    }

    /// Returns the address of a symbol.
    pub fn symbol(&self, pool: &mut Pool, func: &Function, name: &ExternalName) -> Term {
        self.symbol_named(pool, &symbol_name(func, name))
    }

    /// Returns the address of the symbol with this name.
    pub fn symbol_named(&self, pool: &mut Pool, name: &str) -> Term {
        if name == self.function {
            return pool.int(WORD, u64::from(BASE));
        }
        pool.var(&format!("{ADDRESS}{name}"), WORD)
    }

    /// Returns the address of a stack slot.
    pub fn slot(&self, pool: &mut Pool, number: u32) -> Option<Term> {
        let offset = *self.frame.stack_slots.get(number as usize)?;
        let (_, align) = *self.slots.get(number as usize)?;
        // The frame has padding for slots with more alignment than the stack pointer.
        let more = align.max(npu_mc::machine::STACK_ALIGN) - npu_mc::machine::STACK_ALIGN;
        let below = offset.wrapping_sub(self.frame.size).wrapping_add(more);
        let below = pool.int(WORD, u64::from(below));
        let address = pool.add(self.sp, below);
        if more == 0 {
            return Some(address);
        }
        let mask = pool.int(WORD, u64::from(align.wrapping_neg()));
        Some(pool.and(address, mask))
    }

    /// Returns the contents of a location at entry: a register, or a stack argument.
    fn at_entry(&self, pool: &mut Pool, place: Place, lane: u32) -> Term {
        match place {
            Place::Reg(reg) => initial_register(pool, reg, lane),
            Place::Memory(offset) => {
                let offset = pool.int(WORD, u64::from(offset + 4 * lane));
                let address = pool.add(self.sp, offset);
                Memory::default().load(pool, Region::Frame, address, WORD / 8)
            }
        }
    }

    /// Returns the arguments of the function.
    pub fn arguments(&self, pool: &mut Pool, signature: &Signature) -> Vec<Vec<Term>> {
        let params = signature.params.iter().zip(&self.sig.args);
        params
            .map(|(param, places)| {
                pieces(pool, param.value_type, places, |pool, place, lane| {
                    self.at_entry(pool, place, lane)
                })
            })
            .collect()
    }

    /// Applies the effect of a call to memory. The call may write everywhere outside the frame, and
    /// to the stack slots if their address escapes.
    pub fn after_call(&self, pool: &mut Pool, memory: &mut Memory, number: usize, frame_escapes: bool) {
        for region in [Region::Main, Region::Scratchpad] {
            memory.clobber(pool, region, number);
        }
        if !frame_escapes {
            return;
        }
        for slot in 0..self.slots.len() {
            let Some(start) = self.slot(pool, slot as u32) else {
                continue;
            };
            for at in 0..self.slots[slot].0 {
                let offset = pool.int(WORD, u64::from(at));
                let address = pool.add(start, offset);
                let value = pool.app(&format!("frame_after_call{number}"), 8, &[address]);
                memory.store(pool, Region::Frame, address, value);
            }
        }
    }

    /// Returns the addresses of all bytes of stack slots.
    pub fn slot_bytes(&self, pool: &mut Pool) -> Vec<Term> {
        let mut out = Vec::new();
        for slot in 0..self.slots.len() {
            let Some(start) = self.slot(pool, slot as u32) else {
                continue;
            };
            for at in 0..self.slots[slot].0 {
                let offset = pool.int(WORD, u64::from(at));
                out.push(pool.add(start, offset));
            }
        }
        out
    }
}

/// Returns the words of a value, low word first, or its lanes. `read` returns the word, or the lane
/// of a vector register, in a location.
pub fn pieces(
    pool: &mut Pool,
    ty: Type,
    places: &Places,
    mut read: impl FnMut(&mut Pool, Place, u32) -> Term,
) -> Vec<Term> {
    let bits = ty.lane_bits();
    let lanes = ty.lane_count();
    if vector_registers(ty).is_some() {
        return (0..lanes)
            .map_while(|lane| {
                let (place, lane) = place_of_word(ty, places, lane)?;
                let word = read(pool, place, lane);
                Some(pool.extract(bits - 1, 0, word))
            })
            .collect();
    }
    let words = bits.div_ceil(WORD);
    let mut out = Vec::new();
    for lane in 0..lanes {
        let mut parts = Vec::new();
        for word in 0..words {
            let Some(&place) = places.get((lane * words + word) as usize) else {
                break;
            };
            parts.push(read(pool, place, 0));
        }
        let whole = pool.of_words(&parts);
        let width = pool.width(whole);
        out.push(match width > bits {
            true => pool.extract(bits - 1, 0, whole),
            false => whole,
        });
    }
    out
}

/// Returns the location of a word of a value of the type, and its lane there. The words of a vector in
/// registers are its lanes.
pub fn place_of_word(ty: Type, places: &Places, at: u32) -> Option<(Place, u32)> {
    match vector_registers(ty) {
        Some(_) => Some((*places.get((at / LANES) as usize)?, at % LANES)),
        None => Some((*places.get(at as usize)?, 0)),
    }
}

/// Returns the words of a value in its locations, with only the defined bits. The upper bits of a
/// narrow integer without extension are undefined.
pub fn words_of(pool: &mut Pool, param: &AbiParam, lanes: &Lanes) -> Vec<Term> {
    let mut out = Vec::new();
    for &lane in lanes {
        let width = pool.width(lane);
        if width >= WORD {
            out.extend(pool.words(lane));
            continue;
        }
        out.push(match param.extension {
            ArgumentExtension::None => lane,
            ArgumentExtension::Uext => pool.zext(lane, WORD),
            ArgumentExtension::Sext => pool.sext(lane, WORD),
        });
    }
    out
}

/// Returns whether a call may change a register, including `tr`.
pub fn is_clobbered(sig: &SigInfo, reg: Reg) -> bool {
    use cranelift_naplespu::abi::registers::clobbered;
    use regalloc2::{PReg, RegClass};
    let preg = match reg {
        Reg::S(reg) => PReg::new(usize::from(reg.number()), RegClass::Int),
        Reg::V(reg) => PReg::new(usize::from(reg.number()), RegClass::Vector),
    };
    reg == Reg::S(SReg::TR) || clobbered(sig.registers).contains(preg)
}
