//! The methods that the rules for vectors call. ISLE makes one trait of all rules, so they are part of its one implementation, in
//! `lower/isle.rs`.

/// The methods, in a block that implements the trait. Names are those of the place where this stands.
macro_rules! vector_methods {
    () => {
        delegate! {
            vec_binary(op: &VecOp, ty: Type, x: Value, y: Value) -> Lanes = lane_arithmetic::binary;
            vec_neg(x: Lanes) -> Lanes = lane_arithmetic::neg;
            vec_abs(ty: Type, x: Lanes) -> Lanes = lane_arithmetic::abs;
            vec_popcnt(ty: Type, x: Lanes) -> Lanes = lane_arithmetic::popcnt;
            vec_shift(op: &ShiftOp, ty: Type, x: Value, n: Value) -> Lanes = lane_arithmetic::shift;
            vec_splat(x: Value) -> Lanes = permute::splat;
            vec_insert(x: Value, scalar: Value, lane: u8) -> Lanes = permute::insert_lane;
            vec_extract(x: Value, lane: u8) -> Word = permute::extract_lane;
            scalar_lane(x: Value) -> Lanes = permute::scalar_to_vector;
            vec_swizzle(ty: Type, x: Value, index: Value) -> Lanes = permute::swizzle;
            vec_add_pairs(x: Value, y: Value) -> Lanes = permute::add_pairs;
            vec_fneg(x: Lanes) -> Lanes = lane_float::neg;
            vec_fabs(x: Lanes) -> Lanes = lane_float::abs;
            vec_copysign(x: Lanes, y: Lanes) -> Lanes = lane_float::copysign;
            vec_from_int(from: Type, signed: bool, x: Value) -> Lanes = lane_float::from_int;
            vec_to_int(to: Type, signed: bool, x: Value) -> Lanes = lane_float::to_int;
            vec_to_words(ty: Type, x: Value) -> Words = lane_memory::to_words;
            vec_from_words(ty: Type, words: Words) -> Lanes = lane_memory::from_words;
            vec_select(cond: Cond, x: Lanes, y: Lanes) -> Lanes = Lower::select_vector;
            lanes_truth(x: Value, all: bool) -> Word = Lower::lanes_truth;
            lanes_cond(x: Value, all: bool) -> Cond = Lower::lanes_cond;
            high_bits(x: Value) -> Word = Lower::high_bits;
            lower_mask(inst: Inst) -> Option<InstOutput> = Lower::lower_mask;
        }

        fn vec(&mut self, ty: Type) -> Option<Type> {
            vector::is_vector(ty).then_some(ty)
        }

        fn lanes(&mut self, value: Value) -> Lanes {
            Lower::lanes(self, value)
        }

        fn output_lanes(&mut self, lanes: Lanes) -> InstOutput {
            smallvec![self.lanes_regs(lanes)]
        }

        fn makes_mask(&mut self, inst: Inst) -> Option<Unit> {
            Lower::makes_mask(self, inst).then_some(())
        }

        fn vec_not(&mut self, x: Lanes) -> Lanes {
            self.vector_op(Op::XORVVV_U_32, x, Lanes::Const(u32::MAX))
        }

        fn vec_bitselect(&mut self, mask: Value, x: Value, y: Value) -> Lanes {
            if let Some(mask) = self.mask_of(mask) {
                return self.choose_lanes(mask, x, y);
            }
            let [mask, x, y] = [mask, x, y].map(|value| Lower::lanes(self, value));
            lane_arithmetic::bitselect(self, mask, x, y)
        }

        fn vec_blend(&mut self, mask: Value, x: Value, y: Value) -> Lanes {
            let mask = self.negative_lanes(mask);
            self.choose_lanes(mask, x, y)
        }

        fn vec_shuffle(&mut self, x: Value, y: Value, mask: Immediate) -> Lanes {
            let bytes = self
                .func
                .dfg
                .immediates
                .get(mask)
                .map_or(&[][..], |data| data.as_slice());
            permute::shuffle(self, x, y, bytes)
        }

        fn vec_float_1(&mut self, op: &FloatOp, x: Value) -> Lanes {
            lane_float::operate(self, op, &[x])
        }

        fn vec_float_2(&mut self, op: &FloatOp, x: Value, y: Value) -> Lanes {
            lane_float::operate(self, op, &[x, y])
        }

        fn vec_float_3(&mut self, op: &FloatOp, x: Value, y: Value, z: Value) -> Lanes {
            lane_float::operate(self, op, &[x, y, z])
        }

        fn vec_load(&mut self, ty: Type, flags: MemFlags, pointer: Value, offset: Offset32) -> Lanes {
            lane_memory::load(self, ty, flags, pointer, offset.into())
        }

        fn vec_store(&mut self, ty: Type, flags: MemFlags, value: Value, p: Value, offset: Offset32) -> Unit {
            lane_memory::store(self, ty, flags, value, p, offset.into());
        }
    };
}

pub(crate) use vector_methods;
