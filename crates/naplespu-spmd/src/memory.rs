//! Loads and stores.
//!
//! The form of the address selects the access: a scalar for a uniform address, vectors for
//! consecutive words, and otherwise one access for each lane. The hardware has gather and scatter
//! for the scratchpad only, and its vector stores to main memory ignore the mask.

use crate::divergence::Form;
use crate::emit::{ALL_LANES, Emitter, LANES, Parts};
use crate::error::Error;
use crate::remarks::{AccessOutcome, Reason};
use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{Inst, InstBuilder, InstructionData, MemFlagsData, Opcode, Type, Value, types};
use npu_mc::machine::{SCRATCHPAD_SPACE, SCRATCHPAD_SPACE_DOC};
use smallvec::smallvec;

/// Bytes of a cache line and of a vector of words.
const LINE: i32 = 64;

/// The memory of an access.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Space {
    Main,
    Scratchpad,
}

/// An access to a word.
struct Word {
    address: Value,
    offset: i32,
    flags: MemFlagsData,
    space: Space,
    /// The vector type of the value.
    ty: Type,
    /// The stored value.
    value: Option<Value>,
}

impl Emitter<'_> {
    /// Writes a load or store.
    pub fn access(&mut self, inst: Inst) -> Result<(), Error> {
        let old = self.old;
        let data = old.dfg.insts[inst];
        let (address, value, offset) = match data {
            InstructionData::Load { arg, offset, .. } => (arg, None, i32::from(offset)),
            InstructionData::Store { args, offset, .. } => (args[1], Some(args[0]), i32::from(offset)),
            _ => return Err(self.internal("a load or store")),
        };
        let accessed = value.unwrap_or_else(|| old.dfg.first_result(inst));
        let uniform_value = value.is_none_or(|value| self.form(value) == Form::Uniform);
        if self.form(address) == Form::Uniform && uniform_value {
            self.explain_access(inst, address, AccessOutcome::Scalar);
            let values = self.scalar_copy(inst)?;
            for (&result, value) in old.dfg.inst_results(inst).iter().zip(values) {
                self.define(result, smallvec![value])?;
            }
            return Ok(());
        }
        let plain = matches!(data.opcode(), Opcode::Load | Opcode::Store);
        let is_word = matches!(old.dfg.value_type(accessed), types::I32 | types::F32);
        let flags = data.memflags().map(|flags| old.dfg.mem_flags[flags]);
        let aligned = flags.is_some_and(|flags| flags.aligned()) || self.is_word_aligned(address, offset);
        let (Some(flags), true) = (
            flags,
            plain && is_word && aligned && self.form(address) != Form::Uniform,
        ) else {
            let reason = if self.form(address) == Form::Uniform {
                Reason::OneAddress
            } else if plain && is_word {
                Reason::NotAligned
            } else {
                Reason::NotWord
            };
            self.explain_access(inst, address, AccessOutcome::Lanes(reason));
            return self.lane_loop(inst);
        };
        let word = Word {
            address,
            offset,
            flags,
            space: self.space(flags),
            ty: self.lanes_of(accessed)?,
            value,
        };
        let consecutive = self.form(address) == Form::Linear(4);
        let aligned = self.line_aligned(&word);
        let outcome = match (word.value, word.space) {
            (None, Space::Scratchpad) if consecutive => AccessOutcome::Vector,
            (Some(_), Space::Scratchpad) if consecutive => self.vector_store(),
            (_, Space::Scratchpad) => AccessOutcome::Gather,
            (None, Space::Main) if consecutive && aligned => AccessOutcome::Vector,
            (None, Space::Main) if consecutive => AccessOutcome::TwoLines,
            (Some(_), Space::Main) if consecutive && aligned => self.vector_store(),
            (Some(_), Space::Main) if consecutive => AccessOutcome::Lanes(Reason::UnalignedStore),
            (_, Space::Main) => AccessOutcome::Lanes(Reason::NotConsecutive),
        };
        self.explain_access(inst, address, outcome);
        let vectors = match (word.value, word.space) {
            (None, Space::Scratchpad) => Some(self.load_scratchpad(&word, consecutive)?),
            (None, Space::Main) if consecutive => Some(self.load_consecutive(&word)?),
            (None, Space::Main) => Some(self.gather(&word)?),
            (Some(value), Space::Scratchpad) => self.store_scratchpad(&word, value, consecutive)?,
            (Some(value), Space::Main) if consecutive && aligned => self.store_consecutive(&word, value)?,
            (Some(value), Space::Main) => self.scatter(&word, value)?,
        };
        match vectors {
            Some(vectors) => self.define(old.dfg.first_result(inst), vectors),
            None => Ok(()),
        }
    }

    fn vector_store(&self) -> AccessOutcome {
        match self.mask {
            Some(_) => AccessOutcome::MaskedVector,
            None => AccessOutcome::Vector,
        }
    }

    /// Returns the memory of an access with these flags.
    pub fn space(&self, flags: MemFlagsData) -> Space {
        let id = flags
            .alias_region()
            .map(|region| self.old.dfg.alias_regions[region].user_id);
        if id == Some(SCRATCHPAD_SPACE) || id == Some(SCRATCHPAD_SPACE_DOC) {
            Space::Scratchpad
        } else {
            Space::Main
        }
    }

    /// Returns whether the addresses of all lanes, which are consecutive or strided, are known to be
    /// multiples of a word.
    fn is_word_aligned(&self, address: Value, offset: i32) -> bool {
        let of_lane_0 = self.alignment.get(&address).copied().unwrap_or(1);
        let steps = matches!(self.form(address), Form::Linear(stride) if stride % 4 == 0);
        of_lane_0 >= 4 && steps && offset % 4 == 0
    }

    /// Returns whether lane 0 is at the start of a cache line.
    fn line_aligned(&self, word: &Word) -> bool {
        let of_address = self.alignment.get(&word.address).copied().unwrap_or(1);
        of_address >= LINE as u32 && word.offset % LINE == 0
    }

    /// Returns the address of lane 0 of a part.
    fn base(&mut self, word: &Word, part: usize) -> Result<Value, Error> {
        let base = self.scalar(word.address)?;
        let offset = word.offset.wrapping_add(part as i32 * LINE);
        Ok(if offset == 0 {
            base
        } else {
            self.builder.ins().iadd_imm_s(base, i64::from(offset))
        })
    }

    fn load_consecutive(&mut self, word: &Word) -> Result<Parts, Error> {
        let aligned = self.line_aligned(word);
        let mut parts = Parts::new();
        for part in 0..self.parts {
            let base = self.base(word, part)?;
            parts.push(if aligned {
                self.builder.ins().load(word.ty, vector_flags(word.flags), base, 0)
            } else {
                self.load_two_lines(word, base)?
            });
        }
        Ok(parts)
    }

    /// Loads sixteen words at any word address from the lines of the first and the last word.
    fn load_two_lines(&mut self, word: &Word, base: Value) -> Result<Value, Error> {
        let flags = vector_flags(word.flags);
        let first_line = self.builder.ins().band_imm_s(base, i64::from(-LINE));
        let last_word = self.builder.ins().iadd_imm_s(base, i64::from(LINE - 4));
        let last_line = self.builder.ins().band_imm_s(last_word, i64::from(-LINE));
        let low = self.builder.ins().load(types::I32X16, flags, first_line, 0);
        let high = self.builder.ins().load(types::I32X16, flags, last_line, 0);
        let shift = self.builder.ins().iconst(types::I32, 2);
        let words = self.builder.ins().ushr(base, shift);
        let words = self.builder.ins().band_imm_s(words, i64::from(LANES - 1));
        let words = self.builder.ins().splat(types::I32X16, words);
        let numbers = self.words_constant(0..LANES as i32);
        let index = self.builder.ins().iadd(numbers, words);
        let sixteen = self.splat_constant(LANES.into());
        let in_first = self.builder.ins().icmp(IntCC::UnsignedLessThan, index, sixteen);
        let in_first = self.builder.ins().vhigh_bits(types::I32, in_first);
        let last = self.splat_constant(i64::from(LANES - 1));
        let index = self.builder.ins().band(index, last);
        let low = self.intrinsic("shufflei32", &[low, index])?;
        let high = self.intrinsic("shufflei32", &[high, index])?;
        self.set_mask(in_first)?;
        let lanes = self.intrinsic("vector_mixi32", &[low, high])?;
        Ok(self.cast(lanes, word.ty))
    }

    /// Stores consecutive words to whole lines: all at once if all lanes are active.
    fn store_consecutive(&mut self, word: &Word, value: Value) -> Result<Option<Parts>, Error> {
        let vectors = self.vectors(value)?;
        for part in 0..self.parts {
            let base = self.base(word, part)?;
            let lanes = vectors[part];
            let Some(mask) = self.mask.as_ref().map(|mask| mask[part]) else {
                self.builder.ins().store(vector_flags(word.flags), lanes, base, 0);
                continue;
            };
            let [whole, some, done] = std::array::from_fn(|_| self.builder.create_block());
            let all = self.builder.ins().iconst(types::I32, ALL_LANES);
            let full = self.builder.ins().icmp(IntCC::Equal, mask, all);
            self.builder.ins().brif(full, whole, &[], some, &[]);
            self.builder.switch_to_block(whole);
            self.builder.ins().store(vector_flags(word.flags), lanes, base, 0);
            self.builder.ins().jump(done, &[]);
            self.builder.switch_to_block(some);
            self.set_mask(mask)?;
            let words = self.cast(lanes, types::I32X16);
            self.effect("block_storev16i32_masked", &[base, words])?;
            self.builder.ins().jump(done, &[]);
            self.builder.switch_to_block(done);
        }
        Ok(None)
    }

    fn load_scratchpad(&mut self, word: &Word, consecutive: bool) -> Result<Parts, Error> {
        let mut parts = Parts::new();
        let addresses = if consecutive {
            Parts::new()
        } else {
            self.addresses(word)?
        };
        for part in 0..self.parts {
            let lanes = if consecutive {
                let base = self.base(word, part)?;
                self.builder.ins().load(word.ty, vector_flags(word.flags), base, 0)
            } else if let Some(mask) = self.mask.as_ref().map(|mask| mask[part]) {
                self.set_mask(mask)?;
                self.intrinsic("gather_loadi32_scratchpad_masked", &[addresses[part]])?
            } else {
                self.intrinsic("gather_loadi32_scratchpad", &[addresses[part]])?
            };
            parts.push(self.cast(lanes, word.ty));
        }
        Ok(parts)
    }

    fn store_scratchpad(&mut self, word: &Word, value: Value, consecutive: bool) -> Result<Option<Parts>, Error> {
        let vectors = self.vectors(value)?;
        let addresses = if consecutive {
            Parts::new()
        } else {
            self.addresses(word)?
        };
        for part in 0..self.parts {
            let lanes = self.cast(vectors[part], types::I32X16);
            let mask = self.mask.as_ref().map(|mask| mask[part]);
            if let Some(mask) = mask {
                self.set_mask(mask)?;
            }
            match (consecutive, mask.is_some()) {
                (true, false) => {
                    let base = self.base(word, part)?;
                    self.builder.ins().store(vector_flags(word.flags), lanes, base, 0);
                }
                (true, true) => {
                    let base = self.base(word, part)?;
                    self.effect("block_storev16i32_scratchpad_masked", &[base, lanes])?;
                }
                (false, false) => self.effect("scatter_storei32_scratchpad", &[addresses[part], lanes])?,
                (false, true) => self.effect("scatter_storei32_scratchpad_masked", &[addresses[part], lanes])?,
            }
        }
        Ok(None)
    }

    /// Returns the addresses of all lanes.
    fn addresses(&mut self, word: &Word) -> Result<Parts, Error> {
        let addresses = self.vectors(word.address)?;
        if word.offset == 0 {
            return Ok(addresses);
        }
        let offset = self.splat_constant(word.offset.into());
        Ok(addresses
            .iter()
            .map(|&lanes| self.builder.ins().iadd(lanes, offset))
            .collect())
    }

    /// Returns the addresses of all lanes, those of inactive lanes in a slot that nothing reads.
    fn safe_addresses(&mut self, word: &Word) -> Result<Parts, Error> {
        let addresses = self.addresses(word)?;
        let Some(mask) = self.mask.clone() else {
            return Ok(addresses);
        };
        let unused = self.lanes_slot(1, types::I32X16);
        let unused = self.builder.ins().stack_addr(types::I32, unused, 0);
        let unused = self.builder.ins().splat(types::I32X16, unused);
        self.mix(&mask, &addresses, &smallvec![unused; self.parts])
    }

    /// Returns the address and the offset of each lane, for accesses one by one.
    fn lane_addresses(&mut self, word: &Word) -> Result<Vec<(Value, i32)>, Error> {
        if let (Form::Linear(stride), None) = (self.form(word.address), &self.mask) {
            let base = self.scalar(word.address)?;
            let offset = |lane: u32| word.offset.wrapping_add(stride.wrapping_mul(lane as i32));
            return Ok((0..self.lanes).map(|lane| (base, offset(lane))).collect());
        }
        let addresses = self.safe_addresses(word)?;
        let lanes = (0..self.lanes).map(|lane| (self.extract(&addresses, lane), 0));
        Ok(lanes.collect())
    }

    /// Returns a lane of a value.
    fn extract(&mut self, vectors: &Parts, lane: u32) -> Value {
        let part = vectors[(lane / LANES) as usize];
        self.builder.ins().extractlane(part, (lane % LANES) as u8)
    }

    /// Loads the words of the lanes one by one.
    fn gather(&mut self, word: &Word) -> Result<Parts, Error> {
        let slot = self.lanes_slot(0, types::I32X16);
        for (lane, (address, offset)) in self.lane_addresses(word)?.into_iter().enumerate() {
            let loaded = self.builder.ins().load(types::I32, word.flags, address, offset);
            let to = self.builder.ins().stack_addr(types::I32, slot, 4 * lane as i32);
            self.builder.ins().store(MemFlagsData::trusted(), loaded, to, 0);
        }
        let vectors = self.load_lanes(slot, types::I32X16);
        Ok(vectors.iter().map(|&lanes| self.cast(lanes, word.ty)).collect())
    }

    /// Stores the words of the lanes one by one, from the lowest lane.
    fn scatter(&mut self, word: &Word, value: Value) -> Result<Option<Parts>, Error> {
        let vectors = self.vectors(value)?;
        let addresses = self.lane_addresses(word)?;
        for (lane, (address, offset)) in addresses.into_iter().enumerate() {
            let stored = self.extract(&vectors, lane as u32);
            self.builder.ins().store(word.flags, stored, address, offset);
        }
        Ok(None)
    }
}

/// Returns the flags of an access to a vector whose alignment is known.
fn vector_flags(flags: MemFlagsData) -> MemFlagsData {
    flags.with_aligned()
}
