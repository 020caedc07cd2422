//===- NaplesPUVectorPatterns.td - selection of CLIF instructions on lanes ---===//
//
// i32x16 and f32x16 fill their lanes. i16x16 and i8x16 have one element per lane with undefined
// upper bits, like narrow scalars: an operation whose low result bits depend only on low operand
// bits is matched for all types, the others extend first. Results are operations on lanes
// (NaplesPULaneNodes.td), which take the form that their operands allow.
//
//===----------------------------------------------------------------------===//

//===----------------------------------------------------------------------===//
// Types, nodes and leaves
//===----------------------------------------------------------------------===//

def vec       : TypeSet<[v16i8, v16i16, v16i32, v16f32], "vec">;
def vecint    : TypeSet<[v16i8, v16i16, v16i32], "vec_int">;
def vecnarrow : TypeSet<[v16i8, v16i16], "vec_narrow">;
// The scalar types of a lane.
def element   : TypeSet<[i8, i16, i32, f32], "">;

// Bitwise operations on any type; `and`, `or`, `xor` and `not` have integers only.
def bitand : SDNode<"(band $ty $0 $1)", SDTBinOp, [SDNPCommutative]>;
def bitor  : SDNode<"(bor $ty $0 $1)", SDTBinOp, [SDNPCommutative]>;
def bitxor : SDNode<"(bxor $ty $0 $1)", SDTBinOp, [SDNPCommutative]>;
def bitnot : SDNode<"(bnot $ty $0)", SDTUnaryOp>;
def uaddsat : SDNode<"(uadd_sat $ty $0 $1)", SDTIntBinOp>;
def saddsat : SDNode<"(sadd_sat $ty $0 $1)", SDTIntBinOp>;
def usubsat : SDNode<"(usub_sat $ty $0 $1)", SDTIntBinOp>;
def ssubsat : SDNode<"(ssub_sat $ty $0 $1)", SDTIntBinOp>;
def avgceilu : SDNode<"(avg_round $ty $0 $1)", SDTIntBinOp>;

def SDTVecSetCC  : SDTypeProfile<1, 3, [SDTCisSameAs<0, 1>, SDTCisSameAs<1, 2>, SDTCisInt<0>]>;
def SDTVecSetFCC : SDTypeProfile<1, 3, [SDTCisVT<0, v16i32>, SDTCisVT<1, v16f32>, SDTCisVT<2, v16f32>]>;
def vsetcc  : SDNode<"(icmp $ty $2 $0 $1)", SDTVecSetCC>;
def vsetfcc : SDNode<"(fcmp (vec _) $2 $0 $1)", SDTVecSetFCC>;
def SDTReduce : SDTypeProfile<1, 1, [SDTCisVT<0, i8>]>;
def vany  : SDNode<"(vany_true $ty $0)", SDTReduce>;
def vall  : SDNode<"(vall_true $ty $0)", SDTReduce>;

def lane : ClifOperand<"Uimm8">;
def splat         : SDNode<"(splat $ty $0)", SDTypeProfile<1, 1, []>>;
def insertelt     : SDNode<"(insertlane $ty $0 $1 $2)", SDTypeProfile<1, 3, [SDTCisSameAs<0, 1>]>>;
def extractelt    : SDNode<"(extractlane $ty $0 $1)", SDTypeProfile<1, 2, []>>;
def scalar_to_vec : SDNode<"(scalar_to_vector $ty $0)", SDTypeProfile<1, 1, []>>;
def lane_numbers : ClifOperand<"Immediate">;
def shuffle       : SDNode<"(shuffle $ty $0 $1 $2)", SDTypeProfile<1, 3, [SDTCisSameAs<0, 1>, SDTCisSameAs<0, 2>]>>;
def swizzle       : SDNode<"(swizzle $ty $0 $1)", SDTBinOp>;
def pshufb        : SDNode<"(x86_pshufb $ty $0 $1)", SDTBinOp>;
def addpairs      : SDNode<"(iadd_pairwise $ty $0 $1)", SDTIntBinOp>;

def fminimum : SDNode<"(fmin $ty $0 $1)", SDTBinOp>;
def fmaximum : SDNode<"(fmax $ty $0 $1)", SDTBinOp>;
def fceil  : SDNode<"(ceil $ty $0)", SDTUnaryOp>;
def ffloor : SDNode<"(floor $ty $0)", SDTUnaryOp>;
def ftrunc : SDNode<"(trunc $ty $0)", SDTUnaryOp>;
def froundeven : SDNode<"(nearest $ty $0)", SDTUnaryOp>;

// The mask of a compare result, whose lanes are all ones or zeros: any; not a constant; single-use.
def mask      : ImmLeaf<lane_mask, "mask_of">;
def reg_mask  : ImmLeaf<lane_mask, "reg_mask_of">;
def sole_mask : ImmLeaf<lane_mask, "sole_mask_of">;

// In the scratchpad, words need only word alignment, and packed elements do not match, since its
// lanes are 4 bytes apart.
def words16  : Aligned<64>;
def halves16 : Aligned<32>;
def bytes16  : Aligned<16>;
// The machine loads packed elements correctly (erratum packed_vector_loads is corrected).
def PackedLoadsWork : Predicate<"packed_loads_work">;

// The mask of a compare; expanded to lanes only for uses that need lanes.
def MASK_RESULT : PseudoInst<(outs lanes), (ins lane_mask:$m), "mask_result">;
// Lanes of two vectors, selected by a constant. The number of instructions depends on all bytes of
// the constant.
def SHUFFLE : PseudoInst<(outs lanes), (ins anyvalue:$a, anyvalue:$b, lane_numbers:$mask), "vec_shuffle">;
// Index vectors of shuffles: the neighbour of each lane, and every second lane.
def NEIGHBOURS : PseudoInst<(outs lanes), (ins), "neighbour_lanes">;
def EVEN_LANES : PseudoInst<(outs lanes), (ins), "even_lanes">;

// The mask of one lane, and the lane as an immediate.
def LaneBit : SDNodeXForm<lane_mask, 1, "lane_bit">;
def LaneImm : SDNodeXForm<simm9, 1, "lane_imm">;

// Operations whose only use is the current instruction, so that they can be masked.
def SDTLanes : SDTypeProfile<1, 2, []>;
def sole_and : SDNode<"(sole (band _ $0 $1))", SDTLanes, [SDNPCommutative]>;
foreach op = ["iadd", "isub", "imul", "band", "bor", "bxor", "fadd", "fsub", "fmul", "fdiv"] in
  def sole_#op : SDNode<"(sole_operation ("#op#" _ $0 $1))", SDTLanes>;

// These rules have lower priorities than those of scalars: ISLE cannot know that no type is both
// scalar and vector.
let AddedComplexity = -20 in {

//===----------------------------------------------------------------------===//
// Arithmetic and logic
//===----------------------------------------------------------------------===//

def : Pat<(vecint (add VR512W:$a, VR512W:$b)), (lane_add $a, $b)>;
def : Pat<(vecint (sub VR512W:$a, VR512W:$b)), (lane_sub $a, $b)>;
def : Pat<(vecint (mul VR512W:$a, VR512W:$b)), (lane_mul $a, $b)>;
def : Pat<(vec (bitand VR512W:$a, VR512W:$b)), (lane_and $a, $b)>;
def : Pat<(vec (bitor VR512W:$a, VR512W:$b)), (lane_or $a, $b)>;
def : Pat<(vec (bitxor VR512W:$a, VR512W:$b)), (lane_xor $a, $b)>;
def : Pat<(vec (bitnot VR512W:$a)), (lane_xor $a, -1)>;
// No form subtracts a vector from an immediate.
def : Pat<(vecint (ineg VR512W:$a)), (lane_mul $a, -1)>;
def : Pat<(vecint:$ty (abs VR512W:$a)),
          (seq (lane_sext $ty, $a):$x, (lane_sra $x, 31):$sign, (lane_xor $x, $sign):$flipped, (lane_sub $flipped, $sign))>;

def : Pat<(v16i32 (mulhs VR512W:$a, VR512W:$b)), (lane_mulhs $a, $b)>;
def : Pat<(v16i32 (mulhu VR512W:$a, VR512W:$b)), (lane_mulhu $a, $b)>;
multiclass NarrowMulHigh<ValueType ty, int width> {
  def : Pat<(ty:$ty (mulhs VR512W:$a, VR512W:$b)), (lane_sra (lane_mul (lane_sext $ty, $a), (lane_sext $ty, $b)), width)>;
  def : Pat<(ty:$ty (mulhu VR512W:$a, VR512W:$b)), (lane_srl (lane_mul (lane_zext $ty, $a), (lane_zext $ty, $b)), width)>;
}
defm : NarrowMulHigh<v16i8, 8>;
defm : NarrowMulHigh<v16i16, 16>;

multiclass LaneMinMax<SDNode op, TargetNode extend, TargetNode better> {
  def : Pat<(vecint:$ty (op VR512W:$a, VR512W:$b)),
            (seq (extend $ty, $a):$x, (extend $ty, $b):$y, (lane_select (better $x, $y), $x, $y))>;
}
defm : LaneMinMax<smin, lane_sext, lane_setlt>;
defm : LaneMinMax<smax, lane_sext, lane_setgt>;
defm : LaneMinMax<umin, lane_zext, lane_setult>;
defm : LaneMinMax<umax, lane_zext, lane_setugt>;

def : Pat<(vecint:$ty (usubsat VR512W:$a, VR512W:$b)),
          (seq (lane_zext $ty, $a):$x, (lane_zext $ty, $b):$y, (lane_sub $x, $y):$difference,
               (lane_select (lane_setult $x, $y), 0, $difference))>;
def : Pat<(v16i32 (uaddsat VR512W:$a, VR512W:$b)), (seq (lane_add $a, $b):$sum, (lane_select (lane_setult $sum, $a), -1, $sum))>;
multiclass NarrowSaturating<ValueType ty, int most> {
  def : Pat<(ty:$ty (uaddsat VR512W:$a, VR512W:$b)),
            (seq (lane_add (lane_zext $ty, $a), (lane_zext $ty, $b)):$sum, (lane_select (lane_setgt $sum, most), most, $sum))>;
  def : Pat<(ty:$ty (saddsat VR512W:$a, VR512W:$b)), (lane_clamp_s $ty, (lane_add (lane_sext $ty, $a), (lane_sext $ty, $b)))>;
  def : Pat<(ty:$ty (ssubsat VR512W:$a, VR512W:$b)), (lane_clamp_s $ty, (lane_sub (lane_sext $ty, $a), (lane_sext $ty, $b)))>;
  def : Pat<(ty:$ty (avgceilu VR512W:$a, VR512W:$b)),
            (lane_srl (lane_add (lane_add (lane_zext $ty, $a), (lane_zext $ty, $b)), 1), 1)>;
}
defm : NarrowSaturating<v16i8, 255>;
defm : NarrowSaturating<v16i16, 65535>;
// The operation overflows if the sign of the result differs from that of $a and the sign of $b
// allows this. The limit has the sign of $a.
def : Pat<(v16i32 (saddsat VR512W:$a, VR512W:$b)),
          (seq (lane_add $a, $b):$sum, (lane_xor $a, $sum):$x, (lane_xor $b, $sum):$y, (lane_setlt (lane_and $x, $y), 0):$overflow,
               (lane_xor (lane_sra $a, 31), 0x7fffffff):$limit, (lane_select $overflow, $limit, $sum))>;
def : Pat<(v16i32 (ssubsat VR512W:$a, VR512W:$b)),
          (seq (lane_sub $a, $b):$difference, (lane_xor $a, $difference):$x, (lane_xor $b, $a):$y,
               (lane_setlt (lane_and $x, $y), 0):$overflow, (lane_xor (lane_sra $a, 31), 0x7fffffff):$limit,
               (lane_select $overflow, $limit, $difference))>;
// The common bits plus half of the differing bits, rounded up.
def : Pat<(v16i32 (avgceilu VR512W:$a, VR512W:$b)),
          (seq (lane_or $a, $b):$either, (lane_xor $a, $b):$differ, (lane_sub $either, (lane_srl $differ, 1)))>;

// Sums bits in fields of increasing width; the multiplication adds the four bytes.
def : Pat<(vecint:$ty (ctpop VR512W:$a)),
          (seq (lane_zext $ty, $a):$x, (lane_sub $x, (lane_and (lane_srl $x, 1), 0x55555555)):$pairs,
               (lane_and $pairs, 0x33333333):$low, (lane_and (lane_srl $pairs, 2), 0x33333333):$high,
               (lane_add $low, $high):$nibbles, (lane_and (lane_add $nibbles, (lane_srl $nibbles, 4)), 0x0f0f0f0f):$bytes,
               (lane_srl (lane_mul $bytes, 0x01010101), 24))>;

//===----------------------------------------------------------------------===//
// Shifts
//===----------------------------------------------------------------------===//

def : Pat<(vecint:$ty (shl VR512W:$a, anyint:$n)), (lane_shl $a, (lane_amount $ty, $n))>;
def : Pat<(vecint:$ty (srl VR512W:$a, anyint:$n)), (seq (lane_amount $ty, $n):$by, (lane_srl (lane_zext $ty, $a), $by))>;
def : Pat<(vecint:$ty (sra VR512W:$a, anyint:$n)), (seq (lane_amount $ty, $n):$by, (lane_sra (lane_sext $ty, $a), $by))>;
def : Pat<(vecint:$ty (rotl VR512W:$a, anyint:$n)), (lane_rotl $ty, $a, $n)>;
def : Pat<(vecint:$ty (rotr VR512W:$a, anyint:$n)), (lane_rotr $ty, $a, $n)>;

//===----------------------------------------------------------------------===//
// Compares
//===----------------------------------------------------------------------===//

multiclass LaneComparePat<string cc, TargetNode extend> {
  def : Pat<(vecint:$ty (vsetcc VR512W:$a, VR512W:$b, !cast<CondCode>("SET"#cc))),
            (MASK_RESULT (!cast<TargetNode>("lane_set"#!tolower(cc)) (extend $ty, $a), (extend $ty, $b)))>;
}
// Equality allows either extension; sign extension takes one instruction.
foreach cc = ["EQ", "NE", "GT", "GE", "LT", "LE"] in
  defm : LaneComparePat<cc, lane_sext>;
foreach cc = ["UGT", "UGE", "ULT", "ULE"] in
  defm : LaneComparePat<cc, lane_zext>;

class FloatComparePat<CondCode cc, dag result> : Pat<(v16i32 (vsetfcc VR512W:$a, VR512W:$b, cc)), result>;
def : FloatComparePat<SETUO, (MASK_RESULT (lane_setuno $a, $b))>;
def : FloatComparePat<SETO, (MASK_RESULT (mask_not (lane_setuno $a, $b)))>;
def : FloatComparePat<SETOEQ, (MASK_RESULT (lane_setoeq $a, $b))>;
def : FloatComparePat<SETUNE, (MASK_RESULT (mask_not (lane_setoeq $a, $b)))>;
def : FloatComparePat<SETUEQ, (MASK_RESULT (mask_or (lane_setuno $a, $b), (lane_setoeq $a, $b)))>;
def : FloatComparePat<SETONE, (MASK_RESULT (mask_not (mask_or (lane_setuno $a, $b), (lane_setoeq $a, $b))))>;
def : FloatComparePat<SETOLT, (MASK_RESULT (lane_setolt $a, $b))>;
def : FloatComparePat<SETOLE, (MASK_RESULT (lane_setole $a, $b))>;
def : FloatComparePat<SETOGT, (MASK_RESULT (lane_setolt $b, $a))>;
def : FloatComparePat<SETOGE, (MASK_RESULT (lane_setole $b, $a))>;
// The negation of the opposite ordered compare.
def : FloatComparePat<SETUOLT, (MASK_RESULT (mask_not (lane_setole $b, $a)))>;
def : FloatComparePat<SETUOLE, (MASK_RESULT (mask_not (lane_setolt $b, $a)))>;
def : FloatComparePat<SETUOGT, (MASK_RESULT (mask_not (lane_setole $a, $b)))>;
def : FloatComparePat<SETUOGE, (MASK_RESULT (mask_not (lane_setolt $a, $b)))>;

def : Pat<(vany mask:$m), (word_setne (mask_any $m), 0)> { let AddedComplexity = -19; }
def : Pat<(vany (vec:$ty VR512W:$a)), (word_setne (mask_any (lane_setne (lane_zext $ty, $a), 0)), 0)>;
def : Pat<(vall mask:$m), (word_seteq (mask_any (mask_not $m)), 0)> { let AddedComplexity = -19; }
def : Pat<(vall (vec:$ty VR512W:$a)), (word_seteq (mask_any (lane_seteq (lane_zext $ty, $a), 0)), 0)>;

//===----------------------------------------------------------------------===//
// Masks
//===----------------------------------------------------------------------===//

let AddedComplexity = -14 in {
  def : Pat<(vec (bitand mask:$m, mask:$n)), (MASK_RESULT (mask_and $m, $n))>;
  def : Pat<(vec (bitor mask:$m, mask:$n)), (MASK_RESULT (mask_or $m, $n))>;
  def : Pat<(vec (bitxor mask:$m, mask:$n)), (MASK_RESULT (mask_xor $m, $n))>;
  def : Pat<(vec (bitnot mask:$m)), (MASK_RESULT (mask_not $m))>;
}

// A bitwise and with a mask is a masked move.
def : Pat<(vec (bitand reg_mask:$m, VR512W:$a)), (lane_select $m, $a, 0)>;

// If an operand is zero in some lanes and zero changes nothing there, the operation is masked to
// the other lanes. A compare result is -1 where the compare holds.
multiclass OnSomeLanes<SDNode op, TypeSet types, TargetNode masked> {
  def : Pat<(types (op VR512W:$a, (sole_and mask:$m, vec:$b))), (masked $m, $a, $b, $a)>;
  let AddedComplexity = -16 in
  def : Pat<(types (op VR512W:$a, sole_mask:$m)), (masked $m, $a, -1, $a)>;
}
defm : OnSomeLanes<add, vecint, lane_add_m>;
defm : OnSomeLanes<sub, vecint, lane_sub_m>;
defm : OnSomeLanes<bitor, vec, lane_or_m>;
defm : OnSomeLanes<bitxor, vec, lane_xor_m>;

// Bits of the second operand where the first has ones, else bits of the third.
def : Pat<(vec (bitselect VR512W:$c, VR512W:$a, VR512W:$b)), (lane_xor (lane_and (lane_xor $a, $b), $c), $b)>;
def : Pat<(vec (bitselect mask:$m, VR512W:$a, VR512W:$b)), (lane_select $m, $a, $b)>;
def : Pat<(vec (blendv mask:$m, VR512W:$a, VR512W:$b)), (lane_select $m, $a, $b)>;
def : Pat<(vec:$ty (blendv VR512W:$c, VR512W:$a, VR512W:$b)), (lane_select (lane_setlt (lane_sext $ty, $c), 0), $a, $b)>;

// An operation whose only use is the select is masked to the selected lanes.
multiclass SoleOperation<string op, string node> {
  defvar sole = !cast<SDNode>("sole_"#op);
  defvar masked = !cast<TargetNode>(node#"_m");
  def : Pat<(vec (bitselect reg_mask:$m, (sole vec:$a, vec:$b), VR512W:$c)), (masked $m, $a, $b, $c)>;
  def : Pat<(vec (blendv reg_mask:$m, (sole vec:$a, vec:$b), VR512W:$c)), (masked $m, $a, $b, $c)>;
  def : Pat<(vec:$ty (blendv VR512W:$mask, (sole vec:$a, vec:$b), VR512W:$c)),
            (masked (lane_setlt (lane_sext $ty, $mask), 0), $a, $b, $c)>;
}
defm : SoleOperation<"iadd", "lane_add">;
defm : SoleOperation<"isub", "lane_sub">;
defm : SoleOperation<"imul", "lane_mul">;
defm : SoleOperation<"band", "lane_and">;
defm : SoleOperation<"bor", "lane_or">;
defm : SoleOperation<"bxor", "lane_xor">;
let Predicates = [HardwareFloat] in {
  defm : SoleOperation<"fadd", "lane_fadd">;
  defm : SoleOperation<"fsub", "lane_fsub">;
  defm : SoleOperation<"fmul", "lane_fmul">;
  defm : SoleOperation<"fdiv", "lane_fdiv">;
}

//===----------------------------------------------------------------------===//
// Lanes
//===----------------------------------------------------------------------===//

def : Pat<(vec (splat element:$s)), (SPLAT $s)>;
def : Pat<(vec (insertelt VR512W:$a, element:$s, lane:$n)), (lane_select (LaneBit $n), (SPLAT $s), $a)>;
def : Pat<(element (extractelt vec:$a, lane:$n)), (GET_LANEIimm $a, (LaneImm $n))>;
def : Pat<(vec (scalar_to_vec element:$s)), (lane_select 1, (SPLAT $s), 0)>;
def : Pat<(vec (shuffle VR512W:$a, VR512W:$b, lane_numbers:$mask)), (SHUFFLE $a, $b, $mask)>;
// A cast between types with equal numbers of lanes changes nothing. Other casts are in
// isle/vector.isle.
def : Pat<(vec (bitconvert vec:$a)), (COPY $a)>;
// The hardware requires zeros above the four bits of an index; CLIF requires a zero lane for an
// index above 15.
def : Pat<(vecint:$ty (swizzle VR512W:$a, VR512W:$b)),
          (seq (lane_zext $ty, $b):$index, (lane_setugt $index, 15):$beyond,
               (SHUFFLEI_32 $a, (lane_and $index, 15)):$picked, (lane_select $beyond, 0, $picked))>;
// In pshufb every index names a lane, except negative ones.
def : Pat<(vecint:$ty (pshufb VR512W:$a, VR512W:$b)),
          (seq (lane_setlt (lane_sext $ty, $b), 0):$beyond, (SHUFFLEI_32 $a, (lane_and $b, 15)):$picked,
               (lane_select $beyond, 0, $picked))>;
// Sums of neighbours: those of $a in the lower half, those of $b in the upper half.
def : Pat<(vecint (addpairs VR512W:$a, VR512W:$b)),
          (seq (SHUFFLEI_32 (lane_add $a, (SHUFFLEI_32 $a, (NEIGHBOURS))), (EVEN_LANES)):$low,
               (SHUFFLEI_32 (lane_add $b, (SHUFFLEI_32 $b, (NEIGHBOURS))), (EVEN_LANES)):$high,
               (lane_select 0xff00, $high, $low))>;

//===----------------------------------------------------------------------===//
// Floats
//===----------------------------------------------------------------------===//

let Predicates = [HardwareFloat] in {
  def : Pat<(v16f32 (fadd VR512W:$a, VR512W:$b)), (lane_fadd $a, $b)>;
  def : Pat<(v16f32 (fsub VR512W:$a, VR512W:$b)), (lane_fsub $a, $b)>;
  def : Pat<(v16f32 (fmul VR512W:$a, VR512W:$b)), (lane_fmul $a, $b)>;
  def : Pat<(v16f32 (fdiv VR512W:$a, VR512W:$b)), (lane_fdiv $a, $b)>;
}
def : Pat<(v16f32 (fneg VR512W:$a)), (lane_xor $a, 0x80000000)>;
def : Pat<(v16f32 (fabs VR512W:$a)), (lane_and $a, 0x7fffffff)>;
def : Pat<(v16f32 (fcopysign VR512W:$a, VR512W:$b)), (lane_xor $a, (lane_and (lane_xor $a, $b), 0x80000000))>;

// The float unit converts numbers of less than 32 bits exactly.
let Predicates = [HasFPU] in {
  def : Pat<(v16f32 (sint_to_fp (vecnarrow:$ty VR512W:$a))), (I32TOF32_VV_U (lane_sext $ty, $a))>;
  def : Pat<(v16f32 (uint_to_fp (vecnarrow:$ty VR512W:$a))), (I32TOF32_VV_U (lane_zext $ty, $a))>;
}

// The minimum or maximum; a NaN if an operand is a NaN.
defvar NaN = 0x7fc00000;
multiclass FloatMinMax<SDNode op, TargetNode better> {
  def : Pat<(v16f32 (op VR512W:$a, VR512W:$b)),
            (seq (lane_forder $a):$x, (lane_forder $b):$y, (lane_select (better $x, $y), $a, $b):$chosen,
                 (lane_select (lane_setuno $a, $b), NaN, $chosen))>;
}
defm : FloatMinMax<fminimum, lane_setlt>;
defm : FloatMinMax<fmaximum, lane_setgt>;

// Rounds to integral numbers by integer operations on the bits. A number with an exponent from 0 to
// 22 has 23 minus the exponent bits after the point. Only these bits change, with a carry into the
// exponent where needed. Below 1 all bits are after the point. `rounded` computes $rounded from $x,
// $magnitude, $small (below 1), $after (mask of the bits after the point), $fraction and $whole.
class Rounding<SDNode op, dag rounded>
    : Pat<(v16f32 (op VR512W:$x)),
          !con((seq (lane_and $x, 0x7fffffff):$magnitude, (lane_sub (lane_srl $magnitude, 23), 127):$exponent,
                    // A large shift amount gives 0, which is correct for large numbers. Small
                    // numbers have a negative amount.
                    (lane_srl 0x7fffff, $exponent):$bits, (lane_setlt $exponent, 0):$small,
                    (lane_select $small, 0x7fffffff, $bits):$after, (lane_and $x, $after):$fraction,
                    (lane_xor $x, $fraction):$whole),
               rounded,
               (seq (lane_setgt $magnitude, Infinity):$nans, (lane_select $nans, NaN, $rounded)))>;

def : Rounding<ftrunc, (seq (lane_xor $whole, 0):$rounded)>;
class RoundingTo<SDNode op, TargetNode side, int one>
    : Rounding<op, (seq (side $x, 0):$away_side, (lane_setne $fraction, 0):$inexact, (mask_and $away_side, $inexact):$away,
                        (lane_add $after, 1):$unit, (lane_add_m $away, $whole, $unit, $whole):$moved,
                        (mask_and $away, $small):$below_one, (lane_select $below_one, one, $moved):$rounded)>;
def : RoundingTo<ffloor, lane_setlt, 0xbf800000>;
def : RoundingTo<fceil, lane_setge, 0x3f800000>;
// Ties to even. Above 1 the fraction is compared with half a unit; below 1 the number itself is
// compared with 0.5.
def : Rounding<froundeven,
          (seq (lane_add $after, 1):$unit, (lane_shl $fraction, 1):$twice, (lane_setugt $twice, $unit):$more,
               (lane_seteq $twice, $unit):$tie, (lane_setne (lane_and $whole, $unit), 0):$odd,
               (mask_or $more, (mask_and $tie, $odd)):$away, (lane_add_m $away, $whole, $unit, $whole):$moved,
               (lane_setgt $magnitude, 0x3f000000):$above_half, (mask_and $above_half, $small):$to_one,
               (lane_or_m $to_one, $moved, 0x3f800000, $moved):$rounded)>;

//===----------------------------------------------------------------------===//
// Memory. isle/vector.isle has the accesses that take several instructions or that the hardware
// reads wrong.
//===----------------------------------------------------------------------===//

foreach ty = [v16i32, v16f32] in {
  def : Pat<(ty (load words16:$addr)), (LV32WMainmem_U $addr)>;
  def : Pat<(store ty:$x, words16:$addr), (SV32WMainmem_U $x, $addr)>;
}
let Predicates = [PackedLoadsWork] in {
  def : Pat<(v16i8 (load bytes16:$addr)), (LV32BUMainmem_U $addr)>;
  def : Pat<(v16i16 (load halves16:$addr)), (LV32SUMainmem_U $addr)>;
}

} // AddedComplexity
