//===- NaplesPULaneNodes.td - operations on lanes and the forms they have -----===//
//
// An instruction on sixteen lanes takes two vectors, a vector and a scalar, or a vector and an
// immediate, and operates on all lanes or on those of a mask. The operands of an operation
// determine its form: a vector, a scalar in every lane, or a constant in every lane. So each
// operation is a node here, with a pattern for each form; the CLIF patterns
// (NaplesPUVectorPatterns.td) only choose the operation.
//
//===----------------------------------------------------------------------===//

//===----------------------------------------------------------------------===//
// Operands
//===----------------------------------------------------------------------===//

// A vector. A number in a pattern or a result stands for the number in every lane.
def lanes : RegOperand<VR512W, "Lanes"> {
  let IsleConst = "const_lanes";
  let IsleMatch = "splat_const";
  let HoldsValues = true;
}
// One bit per lane. Bits above the sixteenth are undefined.
def lane_mask : MaskOperand<GPR32, MR_REG, "Word"> {
  let IsleConst = "const_word";
  let IsleMatch = "mask_const";
}
defvar AllLanes = 0xffff;
// A CLIF type.
def vt : PseudoOperand<"Type">;

// The same scalar in every lane.
def splat_reg   : OperandLeaf<lanes, GPR32, "splat_reg"> { let Complexity = 3; }
// The same scalar in every lane, but not a constant.
def splat_scalar : OperandLeaf<lanes, GPR32, "splat_scalar"> { let Complexity = 3; }
def splat_simm9 : OperandLeaf<lanes, simm9, "splat_simm9">;
def splat_imm16 : OperandLeaf<lanes, imm16, "splat_imm16">;
def mask_simm9  : OperandLeaf<lane_mask, simm9, "word_simm9">;

// Copies the scalar to every lane.
def SPLAT : PseudoInst<(outs lanes), (ins word:$x), "word_lanes">;

//===----------------------------------------------------------------------===//
// Operations
//===----------------------------------------------------------------------===//

// `folded` computes the operation on two scalars.
class LaneNode<Instruction folded, list<SDNodeProperty> props = []>
    : TargetNode<(outs lanes), (ins lanes:$a, lanes:$b), props> {
  let FoldedBy = folded;
  let Fold = "fold_lanes";
}
// Operates on the lanes of the mask; the other lanes are those of the last operand.
class MaskedNode<list<SDNodeProperty> props = []>
    : TargetNode<(outs lanes), (ins lane_mask:$m, lanes:$a, lanes:$b, lanes:$old), props>;
multiclass MaskedLaneNode<Instruction folded, list<SDNodeProperty> props = []> {
  def "" : LaneNode<folded, props>;
  def _m : MaskedNode<props>;
}
// A node without folding, for floats.
multiclass FloatLaneNode<list<SDNodeProperty> props = []> {
  def "" : TargetNode<(outs lanes), (ins lanes:$a, lanes:$b), props>;
  def _m : MaskedNode<props>;
}

defm lane_add   : MaskedLaneNode<ADDSSS_32, [SDNPCommutative]>;
defm lane_sub   : MaskedLaneNode<SUBSSS_32>;
defm lane_mul   : MaskedLaneNode<MULLSSS_32, [SDNPCommutative]>;
def lane_mulhs : LaneNode<MULHSSS_32, [SDNPCommutative]>;
def lane_mulhu : LaneNode<MULHUSSS_32, [SDNPCommutative]>;
defm lane_and   : MaskedLaneNode<ANDSSS_32, [SDNPCommutative]>;
defm lane_or    : MaskedLaneNode<ORSSS_32, [SDNPCommutative]>;
defm lane_xor   : MaskedLaneNode<XORSSS_32, [SDNPCommutative]>;
def lane_shl   : LaneNode<SLLSSS_32>;
def lane_srl   : LaneNode<SRLSSS_32>;
def lane_sra   : LaneNode<SRASSS_32>;
defm lane_fadd  : FloatLaneNode<[SDNPCommutative]>;
defm lane_fsub  : FloatLaneNode;
defm lane_fmul  : FloatLaneNode<[SDNPCommutative]>;
defm lane_fdiv  : FloatLaneNode;

// A vector that an instruction overwrites in part. A scalar in every lane is materialized again,
// which saves a copy.
def lane_fresh : TargetNode<(outs lanes), (ins lanes:$x)>;
def : Pat<(lane_fresh splat_imm16:$x), (MOVEIVI_U $x)>;
def : Pat<(lane_fresh splat_scalar:$x), (MOVE_VS_32 $x)>;
def : Pat<(lane_fresh lanes:$x), (COPY $x)>;

multiclass VectorScalarForms<string node, string inst> {
  def : Pat<(!cast<TargetNode>(node) lanes:$a, lanes:$b), (!cast<Instruction>(inst#"VVV_U_32") $a, $b)>;
  def : Pat<(!cast<TargetNode>(node) lanes:$a, splat_reg:$b), (!cast<Instruction>(inst#"VVS_U_32") $a, $b)>;
}
multiclass MaskedVectorScalarForms<string node, string inst> : VectorScalarForms<node, inst> {
  def : Pat<(!cast<TargetNode>(node#"_m") lane_mask:$m, lanes:$a, lanes:$b, lanes:$old),
            (!cast<Instruction>(inst#"VVV_M_32") $m, $a, $b, (lane_fresh $old))>;
  def : Pat<(!cast<TargetNode>(node#"_m") lane_mask:$m, lanes:$a, splat_reg:$b, lanes:$old),
            (!cast<Instruction>(inst#"VVS_M_32") $m, $a, $b, (lane_fresh $old))>;
}
multiclass LaneForms<string node, string inst> : VectorScalarForms<node, inst> {
  def : Pat<(!cast<TargetNode>(node) lanes:$a, splat_simm9:$b), (!cast<Instruction>(inst#"VVI_U") $a, $b)>;
}
multiclass MaskedLaneForms<string node, string inst> : MaskedVectorScalarForms<node, inst> {
  def : Pat<(!cast<TargetNode>(node) lanes:$a, splat_simm9:$b), (!cast<Instruction>(inst#"VVI_U") $a, $b)>;
  def : Pat<(!cast<TargetNode>(node#"_m") lane_mask:$m, lanes:$a, splat_simm9:$b, lanes:$old),
            (!cast<Instruction>(inst#"VVI_M") $m, $a, $b, (lane_fresh $old))>;
}

defm : MaskedLaneForms<"lane_add", "ADD">;
defm : MaskedLaneForms<"lane_sub", "SUB">;
defm : MaskedLaneForms<"lane_mul", "MULL">;
defm : LaneForms<"lane_mulhs", "MULH">;
defm : LaneForms<"lane_mulhu", "MULHU">;
defm : MaskedLaneForms<"lane_and", "AND">;
defm : MaskedLaneForms<"lane_or", "OR">;
defm : MaskedLaneForms<"lane_xor", "XOR">;
defm : LaneForms<"lane_shl", "SLL">;
defm : LaneForms<"lane_srl", "SRL">;
defm : LaneForms<"lane_sra", "SRA">;
defm : MaskedVectorScalarForms<"lane_fadd", "ADDF">;
defm : MaskedVectorScalarForms<"lane_fsub", "SUBF">;
defm : MaskedVectorScalarForms<"lane_fmul", "MULF">;
defm : MaskedVectorScalarForms<"lane_fdiv", "DIVF">;

// Operations that need no instruction.
foreach op = ["add", "sub", "or", "xor", "shl", "srl", "sra"] in
  def : Pat<(!cast<TargetNode>("lane_"#op) lanes:$a, 0), (COPY $a)>;
def : Pat<(lane_and lanes:$a, -1), (COPY $a)>;
def : Pat<(lane_mul lanes:$a, 1), (COPY $a)>;
def : Pat<(lane_and lanes:$a, 0), (COPY 0)>;
def : Pat<(lane_mul lanes:$a, 0), (COPY 0)>;
def : Pat<(lane_or lanes:$a, -1), (COPY -1)>;
// No form subtracts a vector from an immediate.
def : Pat<(lane_sub 0, lanes:$a), (lane_mul $a, -1)> { let AddedComplexity = 1; }

//===----------------------------------------------------------------------===//
// Operations on one vector
//===----------------------------------------------------------------------===//

// Constants, sign-extended from eight or sixteen bits.
def splat_sext8  : OperandLeaf<lanes, lanes, "splat_sext8">;
def splat_sext16 : OperandLeaf<lanes, lanes, "splat_sext16">;

class LaneUnary : TargetNode<(outs lanes), (ins lanes:$a)>;
def lane_sext8  : LaneUnary;
def lane_sext16 : LaneUnary;
def : Pat<(lane_sext8 splat_sext8:$a), (COPY $a)>;
def : Pat<(lane_sext8 lanes:$a), (SEXT8_32VV_U $a)>;
def : Pat<(lane_sext16 splat_sext16:$a), (COPY $a)>;
def : Pat<(lane_sext16 lanes:$a), (SEXT16_32VV_U $a)>;

// Copies the scalar to every lane of a register.
def lane_splat : TargetNode<(outs VR512W), (ins GPR32:$x)>;
def : Pat<(lane_splat GPR32:$x), (MOVE_VS_32 $x)>;
// Selects lanes of the first vector by the numbers in the second.
def lane_shuffle : TargetNode<(outs lanes), (ins lanes:$a, lanes:$index)>;
def : Pat<(lane_shuffle lanes:$a, lanes:$index), (SHUFFLEI_32 $a, $index)>;
def lane_extract : TargetNode<(outs GPR32), (ins lanes:$a, simm9:$n)>;
def : Pat<(lane_extract lanes:$a, simm9:$n), (GET_LANEIimm $a, $n)>;

// Extends elements of this type to whole lanes.
def lane_sext : TargetNode<(outs lanes), (ins vt:$ty, lanes:$a)>;
def : Pat<(lane_sext v16i8, lanes:$a), (lane_sext8 $a)>;
def : Pat<(lane_sext v16i16, lanes:$a), (lane_sext16 $a)>;
def : Pat<(lane_sext vt:$ty, lanes:$a), (COPY $a)>;
def lane_zext : TargetNode<(outs lanes), (ins vt:$ty, lanes:$a)>;
def : Pat<(lane_zext v16i8, lanes:$a), (lane_and $a, 0xff)>;
def : Pat<(lane_zext v16i16, lanes:$a), (lane_and $a, 0xffff)>;
def : Pat<(lane_zext vt:$ty, lanes:$a), (COPY $a)>;

//===----------------------------------------------------------------------===//
// Compares: one bit per lane in a scalar register
//===----------------------------------------------------------------------===//

class LaneCompare<Instruction folded, list<SDNodeProperty> props = []>
    : TargetNode<(outs lane_mask), (ins lanes:$a, lanes:$b), props> {
  let FoldedBy = folded;
  let Fold = "fold_mask";
}
def lane_seteq  : LaneCompare<SEQSISSS_32, [SDNPCommutative]>;
def lane_setne  : LaneCompare<SNESISSS_32, [SDNPCommutative]>;
def lane_setgt  : LaneCompare<SGTSISSS_32>;
def lane_setge  : LaneCompare<SGESISSS_32>;
def lane_setlt  : LaneCompare<SLTSISSS_32>;
def lane_setle  : LaneCompare<SLESISSS_32>;
def lane_setugt : LaneCompare<SGTUISSS_32>;
def lane_setuge : LaneCompare<SGEUISSS_32>;
def lane_setult : LaneCompare<SLTUISSS_32>;
def lane_setule : LaneCompare<SLEUISSS_32>;

multiclass LaneCompareForms<TargetNode op, string inst> {
  def : Pat<(op lanes:$a, lanes:$b), (!cast<Instruction>(inst#"SVV_U_32") $a, $b)>;
  def : Pat<(op lanes:$a, splat_reg:$b), (!cast<Instruction>(inst#"SVS_U_32") $a, $b)>;
  def : Pat<(op lanes:$a, splat_simm9:$b), (!cast<Instruction>(inst#"SVI") $a, $b)>;
}
// Exchanges the operands if only the left one is the same in every lane.
multiclass OrderedLaneCompareForms<TargetNode op, string inst, string swapped> : LaneCompareForms<op, inst> {
  def : Pat<(op splat_reg:$a, lanes:$b), (!cast<Instruction>(swapped#"SVS_U_32") $b, $a)> { let AddedComplexity = -2; }
  def : Pat<(op splat_simm9:$a, lanes:$b), (!cast<Instruction>(swapped#"SVI") $b, $a)> { let AddedComplexity = -2; }
}
defm : LaneCompareForms<lane_seteq, "SEQSI">;
defm : LaneCompareForms<lane_setne, "SNESI">;
defm : OrderedLaneCompareForms<lane_setgt, "SGTSI", "SLTSI">;
defm : OrderedLaneCompareForms<lane_setge, "SGESI", "SLESI">;
defm : OrderedLaneCompareForms<lane_setlt, "SLTSI", "SGTSI">;
defm : OrderedLaneCompareForms<lane_setle, "SLESI", "SGESI">;
defm : OrderedLaneCompareForms<lane_setugt, "SGTUI", "SLTUI">;
defm : OrderedLaneCompareForms<lane_setuge, "SGEUI", "SLEUI">;
defm : OrderedLaneCompareForms<lane_setult, "SLTUI", "SGTUI">;
defm : OrderedLaneCompareForms<lane_setule, "SLEUI", "SGEUI">;

//===----------------------------------------------------------------------===//
// Masks
//===----------------------------------------------------------------------===//

// Bits 31:16 of the result of a vector compare are undefined (erratum vector_compare_upper_half).
def UpperHalfUndefined : Predicate<"upper_half_undefined">;

def mask_and : WordNode<lane_mask, ANDSSS_32, [SDNPCommutative]>;
def mask_or  : WordNode<lane_mask, ORSSS_32, [SDNPCommutative]>;
def mask_xor : WordNode<lane_mask, XORSSS_32, [SDNPCommutative]>;
def : Pat<(mask_and lane_mask:$a, lane_mask:$b), (ANDSSS_32 $a, $b)>;
def : Pat<(mask_or lane_mask:$a, lane_mask:$b), (ORSSS_32 $a, $b)>;
def : Pat<(mask_xor lane_mask:$a, lane_mask:$b), (XORSSS_32 $a, $b)>;
def : Pat<(mask_xor lane_mask:$a, mask_simm9:$b), (XORSSI $a, $b)>;
def : Pat<(mask_and lane_mask:$a, AllLanes), (COPY $a)>;
def : Pat<(mask_and lane_mask:$a, 0), (COPY 0)>;
def : Pat<(mask_or lane_mask:$a, 0), (COPY $a)>;
def : Pat<(mask_xor lane_mask:$a, 0), (COPY $a)>;

def mask_not : TargetNode<(outs lane_mask), (ins lane_mask:$m)>;
def : Pat<(mask_not lane_mask:$m), (mask_xor $m, -1)> {
  let AddedComplexity = 1;
  let Predicates = [UpperHalfUndefined];
}
// If the upper bits are zero, they stay zero.
def : Pat<(mask_not lane_mask:$m), (mask_xor $m, AllLanes)>;

// A word that is zero if and only if the mask is empty.
def mask_any : TargetNode<(outs word), (ins lane_mask:$m)>;
def : Pat<(mask_any lane_mask:$m), (word_shl $m, 16)> {
  let AddedComplexity = 1;
  let Predicates = [UpperHalfUndefined];
}
def : Pat<(mask_any lane_mask:$m), (COPY $m)>;

//===----------------------------------------------------------------------===//
// Moves under a mask
//===----------------------------------------------------------------------===//

// The lanes of the mask from the first vector, the others from the second.
def lane_select : TargetNode<(outs lanes), (ins lane_mask:$m, lanes:$x, lanes:$y)>;
def : Pat<(lane_select AllLanes, lanes:$x, lanes:$y), (COPY $x)> { let AddedComplexity = 3; }
def : Pat<(lane_select 0, lanes:$x, lanes:$y), (COPY $y)> { let AddedComplexity = 3; }
def : Pat<(lane_select lane_mask:$m, lanes:$x, lanes:$x), (COPY $x)> { let AddedComplexity = 6; }
def : Pat<(lane_select lane_mask:$m, -1, lanes:$y), (seq (lane_fresh $y):$old, (ORVVI_M $m, $old, -1, $old))>;
def : Pat<(lane_select lane_mask:$m, splat_imm16:$x, lanes:$y), (MOVEIVI_M $m, $x, (lane_fresh $y))>;
def : Pat<(lane_select lane_mask:$m, splat_reg:$x, lanes:$y), (MOVE_VS_M_32 $m, $x, (lane_fresh $y))>;
def : Pat<(lane_select lane_mask:$m, lanes:$x, lanes:$y), (MOVE_VV_M_32 $m, $x, (lane_fresh $y))>;

//===----------------------------------------------------------------------===//
// Masks from lanes
//===----------------------------------------------------------------------===//

// The highest bit of each element of this type. Bits above the sixteenth are zero.
def lane_signs : TargetNode<(outs lane_mask), (ins vt:$ty, lanes:$a)>;
def : Pat<(lane_signs v16i8, lanes:$a), (CREATEMASK_32 (lane_srl $a, 7))>;
def : Pat<(lane_signs v16i16, lanes:$a), (CREATEMASK_32 (lane_srl $a, 15))>;
def : Pat<(lane_signs vt:$ty, lanes:$a), (CREATEMASK_32 (lane_srl $a, 31))>;

// The mask with zeros above the sixteenth bit.
def mask_clean : TargetNode<(outs word), (ins lane_mask:$m)>;
def : Pat<(mask_clean lane_mask:$m), (word_and $m, AllLanes)> {
  let AddedComplexity = 1;
  let Predicates = [UpperHalfUndefined];
}
def : Pat<(mask_clean lane_mask:$m), (COPY $m)>;

//===----------------------------------------------------------------------===//
// Ranges
//===----------------------------------------------------------------------===//

// Clamps lanes to the range of the type. Types of 32 bits need no clamping.
def lane_clamp_s : TargetNode<(outs lanes), (ins vt:$ty, lanes:$a)>;
def lane_clamp_u : TargetNode<(outs lanes), (ins vt:$ty, lanes:$a)>;
multiclass Clamp<ValueType ty, int least, int most, int unsigned> {
  def : Pat<(lane_clamp_s ty, lanes:$a),
            (seq (lane_setgt $a, most):$above, (lane_select $above, most, $a):$b, (lane_setlt $b, least):$below,
                 (lane_select $below, least, $b))>;
  def : Pat<(lane_clamp_u ty, lanes:$a), (seq (lane_setugt $a, unsigned):$above, (lane_select $above, unsigned, $a))>;
}
defm : Clamp<v16i8, -128, 127, 255>;
defm : Clamp<v16i16, -32768, 32767, 65535>;
def : Pat<(lane_clamp_s vt:$ty, lanes:$a), (COPY $a)>;
def : Pat<(lane_clamp_u vt:$ty, lanes:$a), (COPY $a)>;

//===----------------------------------------------------------------------===//
// Shift amounts. They are taken modulo the element width; the hardware does not do this (erratum
// shift_amount_not_modulo).
//===----------------------------------------------------------------------===//

def ElementModuloBack : SDNodeXForm<lanes, 2, "element_modulo_back">;

def lane_amount : TargetNode<(outs lanes), (ins vt:$ty, word:$n)>;
def : Pat<(lane_amount v16i8, word:$n), (SPLAT (word_and $n, 7))>;
def : Pat<(lane_amount v16i16, word:$n), (SPLAT (word_and $n, 15))>;
def : Pat<(lane_amount vt:$ty, word:$n), (SPLAT (word_and $n, 31))>;
def : Pat<(lane_amount vt:$ty, word:$n), (SPLAT $n)> {
  let AddedComplexity = 1;
  let Predicates = [ShiftsAreModulo];
}
// The amount for the opposite direction of a rotation.
def lane_amount_back : TargetNode<(outs lanes), (ins vt:$ty, word:$n)>;
def : Pat<(lane_amount_back vt:$ty, any_const:$n), (ElementModuloBack $ty, $n)> { let AddedComplexity = 4; }
def : Pat<(lane_amount_back vt:$ty, word:$n), (lane_amount $ty, (SUBSSS_32 0, $n))>;

multiclass LaneRotate<TargetNode left, TargetNode right> {
  def "" : TargetNode<(outs lanes), (ins vt:$ty, lanes:$a, word:$n)>;
  def : Pat<(!cast<TargetNode>(NAME) vt:$ty, lanes:$a, word:$n),
            (seq (left $ty, $n):$by, (lane_zext $ty, $a):$x, (right $ty, $n):$back,
                 (lane_or (lane_shl $x, $by), (lane_srl $x, $back)))>;
}
defm lane_rotl : LaneRotate<lane_amount, lane_amount_back>;
defm lane_rotr : LaneRotate<lane_amount_back, lane_amount>;

//===----------------------------------------------------------------------===//
// Float compares, by integer compares of the bits. The float unit's compares order bit patterns
// (erratum float_compare_order).
//===----------------------------------------------------------------------===//

def splat_fzero : OperandLeaf<lanes, lanes, "splat_fzero"> { let Complexity = 5; }
def splat_fnan  : OperandLeaf<lanes, lanes, "splat_fnan">;
def splat_any_const : OperandLeaf<lanes, lanes, "splat_any_const"> { let Complexity = 3; }

defvar Infinity = 0x7f800000;

class FloatCompare<list<SDNodeProperty> props = []> : TargetNode<(outs lane_mask), (ins lanes:$a, lanes:$b), props>;

def lane_isnan : TargetNode<(outs lane_mask), (ins lanes:$a)>;
def : Pat<(lane_isnan lanes:$a), (lane_setugt (lane_shl $a, 1), 0xff000000)>;
// Tests whether one operand is a NaN.
def lane_setuno : FloatCompare;
def : Pat<(lane_setuno lanes:$a, lanes:$a), (lane_isnan $a)> { let AddedComplexity = 1; }
def : Pat<(lane_setuno lanes:$a, lanes:$b), (mask_or (lane_isnan $a), (lane_isnan $b))>;

// Tests for equal numbers: the same bits and no NaN, or two zeros.
def lane_setoeq : FloatCompare<[SDNPCommutative]>;
def : Pat<(lane_setoeq lanes:$a, splat_fzero:$b), (lane_seteq (lane_shl $a, 1), 0)>;
def : Pat<(lane_setoeq lanes:$a, splat_fnan:$b), (COPY 0)>;
def : Pat<(lane_setoeq lanes:$a, splat_any_const:$b), (lane_seteq $a, $b)>;
def : Pat<(lane_setoeq lanes:$a, lanes:$b),
          (seq (lane_seteq $a, $b):$same, (lane_setule (lane_shl $a, 1), 0xff000000):$number, (mask_and $same, $number):$equal,
               (lane_seteq (lane_shl (lane_or $a, $b), 1), 0):$zeros, (mask_or $equal, $zeros))>;

// An integer key in the order of the numbers, equal for both zeros. Keys of NaNs are beyond those
// of the infinities.
def lane_fkey : TargetNode<(outs lanes), (ins lanes:$a)>;
def : Pat<(lane_fkey lanes:$a),
          (seq (lane_sra $a, 31):$sign, (lane_srl $sign, 1):$flips, (lane_xor $a, $flips):$flipped, (lane_sub $flipped, $sign))>;

// Also tests that neither operand is a NaN. The key of a NaN is above infinity or below minus
// infinity. If the keys are in order, tests of $y against infinity and of $x against minus infinity
// are enough.
def lane_setolt : FloatCompare;
def lane_setole : FloatCompare;
foreach cc = ["lt", "le"] in
  def : Pat<(!cast<TargetNode>("lane_seto"#cc) lanes:$a, lanes:$b),
            (seq (lane_fkey $a):$x, (lane_fkey $b):$y,
                 (mask_and (mask_and (!cast<TargetNode>("lane_set"#cc) $x, $y), (lane_setle $y, Infinity)),
                           (lane_setge $x, 0x80800000)))>;

// An integer key in the order of the floats, with -0 below +0.
def lane_forder : TargetNode<(outs lanes), (ins lanes:$a)>;
def : Pat<(lane_forder lanes:$a), (seq (lane_sra $a, 31):$sign, (lane_srl $sign, 1):$flips, (lane_xor $a, $flips))>;

//===----------------------------------------------------------------------===//
// Memory. Bytes and half-words are packed; loads of them read the wrong elements (erratum
// packed_vector_loads).
//===----------------------------------------------------------------------===//

def lane_load : TargetNode<(outs lanes), (ins vt:$ty, MEMri:$addr)>;
def : Pat<(lane_load v16i8, MEMri:$addr), (LV32BUMainmem_U $addr)>;
def : Pat<(lane_load v16i16, MEMri:$addr), (LV32SUMainmem_U $addr)>;
def : Pat<(lane_load vt:$ty, MEMri:$addr), (LV32WMainmem_U $addr)>;
def lane_store : TargetNode<(outs), (ins vt:$ty, lanes:$x, MEMri:$addr)>;
def : Pat<(lane_store v16i8, lanes:$x, MEMri:$addr), (SV32BMainmem_U $x, $addr)>;
def : Pat<(lane_store v16i16, lanes:$x, MEMri:$addr), (SV32SMainmem_U $x, $addr)>;
def : Pat<(lane_store vt:$ty, lanes:$x, MEMri:$addr), (SV32WMainmem_U $x, $addr)>;

// Stores the lanes of a mask. The scratchpad has no packed elements, so a masked store there writes
// words.
def lane_store_m : TargetNode<(outs), (ins vt:$ty, lane_mask:$m, lanes:$x, MEMri:$addr)>;
def : Pat<(lane_store_m v16i8, lane_mask:$m, lanes:$x, MEMri:$addr), (SV32BMainmem_M $m, $x, $addr)>;
def : Pat<(lane_store_m v16i16, lane_mask:$m, lanes:$x, MEMri:$addr), (SV32SMainmem_M $m, $x, $addr)>;
def : Pat<(lane_store_m vt:$ty, lane_mask:$m, lanes:$x, MEMri:$addr), (SV32WMainmem_M $m, $x, $addr)>;
def lane_store_m_scratchpad : TargetNode<(outs), (ins lane_mask:$m, lanes:$x, MEMri:$addr)>;
def : Pat<(lane_store_m_scratchpad lane_mask:$m, lanes:$x, MEMri:$addr), (SV32WScratchpad_M $m, $x, $addr)>;
