//===- NaplesPUPatterns.td - selection of scalar CLIF instructions ------------===//
//
// Integer operations of up to 32 bits, and operations of the float unit. i8 and i16 are in 32-bit
// registers with undefined upper bits. An operation whose low result bits depend only on low
// operand bits is matched for all three types; the others extend narrow operands (zext32, sext32).
//
//===----------------------------------------------------------------------===//

//===----------------------------------------------------------------------===//
// Types, nodes and leaves
//===----------------------------------------------------------------------===//

def int32 : TypeSet<[i8, i16, i32], "int_fits_in_32">;
def narrow : TypeSet<[i8, i16], "int_narrow">;
// A shift amount. Its low bits are in the low register for every type.
def anyint : TypeSet<[i8, i16, i32, i64, i128], ""> { let LowWordOnly = true; }

def float32 : TypeSet<[f32], "">;

def add   : SDNode<"(iadd $ty $0 $1)", SDTIntBinOp, [SDNPCommutative]>;
def sub   : SDNode<"(isub $ty $0 $1)", SDTIntBinOp>;
def mul   : SDNode<"(imul $ty $0 $1)", SDTIntBinOp, [SDNPCommutative]>;
def mulhs : SDNode<"(smulhi $ty $0 $1)", SDTIntBinOp, [SDNPCommutative]>;
def mulhu : SDNode<"(umulhi $ty $0 $1)", SDTIntBinOp, [SDNPCommutative]>;
def and   : SDNode<"(band $ty $0 $1)", SDTIntBinOp, [SDNPCommutative]>;
def or    : SDNode<"(bor $ty $0 $1)", SDTIntBinOp, [SDNPCommutative]>;
def xor   : SDNode<"(bxor $ty $0 $1)", SDTIntBinOp, [SDNPCommutative]>;
def not   : SDNode<"(bnot $ty $0)", SDTIntUnaryOp>;
def shl   : SDNode<"(ishl $ty $0 $1)", SDTIntShiftOp>;
def srl   : SDNode<"(ushr $ty $0 $1)", SDTIntShiftOp>;
def sra   : SDNode<"(sshr $ty $0 $1)", SDTIntShiftOp>;
def rotl  : SDNode<"(rotl $ty $0 $1)", SDTIntShiftOp>;
def rotr  : SDNode<"(rotr $ty $0 $1)", SDTIntShiftOp>;
def ineg  : SDNode<"(ineg $ty $0)", SDTIntUnaryOp>;
def abs   : SDNode<"(iabs $ty $0)", SDTIntUnaryOp>;
def smin  : SDNode<"(smin $ty $0 $1)", SDTIntBinOp, [SDNPCommutative]>;
def smax  : SDNode<"(smax $ty $0 $1)", SDTIntBinOp, [SDNPCommutative]>;
def umin  : SDNode<"(umin $ty $0 $1)", SDTIntBinOp, [SDNPCommutative]>;
def umax  : SDNode<"(umax $ty $0 $1)", SDTIntBinOp, [SDNPCommutative]>;
def uaddo : SDNode<"(uadd_overflow $ty $0 $1)", SDTOverflowOp>;
def saddo : SDNode<"(sadd_overflow $ty $0 $1)", SDTOverflowOp>;
def usubo : SDNode<"(usub_overflow $ty $0 $1)", SDTOverflowOp>;
def ssubo : SDNode<"(ssub_overflow $ty $0 $1)", SDTOverflowOp>;
def umulo : SDNode<"(umul_overflow $ty $0 $1)", SDTOverflowOp>;
def smulo : SDNode<"(smul_overflow $ty $0 $1)", SDTOverflowOp>;
def uaddo_carry : SDNode<"(uadd_overflow_cin $ty $0 $1 $2)", SDTCarryOp>;
def saddo_carry : SDNode<"(sadd_overflow_cin $ty $0 $1 $2)", SDTCarryOp>;
def usubo_carry : SDNode<"(usub_overflow_bin $ty $0 $1 $2)", SDTCarryOp>;
def ssubo_carry : SDNode<"(ssub_overflow_bin $ty $0 $1 $2)", SDTCarryOp>;
def uaddo_trap  : SDNode<"(uadd_overflow_trap $ty $0 $1 $2)", SDTTrapOp>;
def cls   : SDNode<"(cls $ty $0)", SDTIntUnaryOp>;
def bswap : SDNode<"(bswap $ty $0)", SDTIntUnaryOp>;
def bitreverse : SDNode<"(bitrev $ty $0)", SDTIntUnaryOp>;
def ctpop : SDNode<"(popcnt $ty $0)", SDTIntUnaryOp>;
def bitselect : SDNode<"(bitselect $ty $0 $1 $2)", SDTTernaryOp>;
def blendv : SDNode<"(blendv $ty $0 $1 $2)", SDTTernaryOp>;
def split : SDNode<"(isplit $ty $0)", SDTSplitOp>;
def build_pair : SDNode<"(iconcat $ty $0 $1)", SDTPairOp>;
def zext  : SDNode<"(uextend $ty $0)", SDTIntExtendOp>;
def trunc : SDNode<"(ireduce $ty $0)", SDTIntExtendOp>;
def bitconvert : SDNode<"(bitcast $ty _ $0)", SDTBitcast>;
def bmask : SDNode<"(bmask $ty $0)", SDTIntExtendOp>;
def select : SDNode<"(select $ty $0 $1 $2)", SDTSelect>;
def ctlz  : SDNode<"(clz $ty $0)", SDTIntUnaryOp>;
def cttz  : SDNode<"(ctz $ty $0)", SDTIntUnaryOp>;
def sext  : SDNode<"(sextend $ty $0)", SDTIntExtendOp>;
def setcc : SDNode<"(icmp $ty $2 $0 $1)", SDTSetCC>;

def fadd : SDNode<"(fadd $ty $0 $1)", SDTBinOp>;
def fsub : SDNode<"(fsub $ty $0 $1)", SDTBinOp>;
def fmul : SDNode<"(fmul $ty $0 $1)", SDTBinOp>;
def fdiv : SDNode<"(fdiv $ty $0 $1)", SDTBinOp>;

def fsetcc : SDNode<"(fcmp $ty $2 $0 $1)", SDTFSetCC>;
def sint_to_fp : SDNode<"(fcvt_from_sint $ty $0)", SDTConvert>;
def uint_to_fp : SDNode<"(fcvt_from_uint $ty $0)", SDTConvert>;
def fneg : SDNode<"(fneg $ty $0)", SDTUnaryOp>;
def fabs : SDNode<"(fabs $ty $0)", SDTUnaryOp>;
def fcopysign : SDNode<"(fcopysign $ty $0 $1)", SDTBinOp>;

def load    : SDNode<"(load $ty flags p offset)", SDTLoad, [SDNPMemOperand]>;
def loadi8  : SDNode<"(sload8 $ty flags p offset)", SDTLoad, [SDNPMemOperand]>;
def loadu8  : SDNode<"(uload8 $ty flags p offset)", SDTLoad, [SDNPMemOperand]>;
def loadi16 : SDNode<"(sload16 $ty flags p offset)", SDTLoad, [SDNPMemOperand]>;
def loadu16 : SDNode<"(uload16 $ty flags p offset)", SDTLoad, [SDNPMemOperand]>;
def store   : SDNode<"(store flags $0 p offset)", SDTStore, [SDNPMemOperand]>;
def truncstore8  : SDNode<"(istore8 flags $0 p offset)", SDTStore, [SDNPMemOperand]>;
def truncstore16 : SDNode<"(istore16 flags $0 p offset)", SDTStore, [SDNPMemOperand]>;

// Control flow. The compiler handles blocks and their arguments.
def br      : SDNode<"(jump _)", SDTNone>;
def brcond  : SDNode<"(brif $0 _ _)", SDTUse>;
def brtable : SDNode<"(br_table $0 _)", SDTUse>;
def trap    : SDNode<"(trap $0)", SDTUse>;
def trapnz  : SDNode<"(trapnz $0 $1)", SDTUse2>;
def trapz   : SDNode<"(trapz $0 $1)", SDTUse2>;

def stack_addr   : SDNode<"(stack_addr $ty $0 $1)", SDTLeaf2>;
def func_addr    : SDNode<"(func_addr $ty $0)", SDTLeaf1>;
def symbol_value : SDNode<"(symbol_value $ty $0)", SDTLeaf1>;
def get_frame_pointer  : SDNode<"(get_frame_pointer $ty)", SDTLeaf>;
def get_stack_pointer  : SDNode<"(get_stack_pointer $ty)", SDTLeaf>;
def get_return_address : SDNode<"(get_return_address $ty)", SDTLeaf>;
def get_pinned : SDNode<"(get_pinned_reg $ty)", SDTLeaf>;
def set_pinned : SDNode<"(set_pinned_reg $0)", SDTUse>;

def fence : SDNode<"(fence)", SDTNone>;
def sequence_point : SDNode<"(sequence_point)", SDTNone>;
def debugtrap : SDNode<"(debugtrap)", SDTNone>;

// f32 arithmetic uses the float unit (setting strict_float is off).
def HardwareFloat : Predicate<"hardware_float">;
// The machine has a float unit, whether or not strict_float is set.
def HasFPU : Predicate<"has_fpu">;
// Both operands are the same value.
def SameOperands : OperandPredicate<"same_value", ["a", "b"]>;
// The machine takes shift amounts modulo 32 (erratum shift_amount_not_modulo is corrected).
def ShiftsAreModulo : Predicate<"shifts_are_modulo">;

def SETEQ  : CondCode<"(IntCC.Equal)">;
def SETNE  : CondCode<"(IntCC.NotEqual)">;
def SETGT  : CondCode<"(IntCC.SignedGreaterThan)">;
def SETGE  : CondCode<"(IntCC.SignedGreaterThanOrEqual)">;
def SETLT  : CondCode<"(IntCC.SignedLessThan)">;
def SETLE  : CondCode<"(IntCC.SignedLessThanOrEqual)">;
def SETUGT : CondCode<"(IntCC.UnsignedGreaterThan)">;
def SETUGE : CondCode<"(IntCC.UnsignedGreaterThanOrEqual)">;
def SETULT : CondCode<"(IntCC.UnsignedLessThan)">;
def SETULE : CondCode<"(IntCC.UnsignedLessThanOrEqual)">;

def SETOEQ : CondCode<"(FloatCC.Equal)">;
def SETOGT : CondCode<"(FloatCC.GreaterThan)">;
def SETOGE : CondCode<"(FloatCC.GreaterThanOrEqual)">;
def SETOLT : CondCode<"(FloatCC.LessThan)">;
def SETOLE : CondCode<"(FloatCC.LessThanOrEqual)">;
def SETONE : CondCode<"(FloatCC.OrderedNotEqual)">;
def SETO   : CondCode<"(FloatCC.Ordered)">;
def SETUO  : CondCode<"(FloatCC.Unordered)">;
def SETUEQ : CondCode<"(FloatCC.UnorderedOrEqual)">;
def SETUNE : CondCode<"(FloatCC.NotEqual)">;
def SETUOGT : CondCode<"(FloatCC.UnorderedOrGreaterThan)">;
def SETUOGE : CondCode<"(FloatCC.UnorderedOrGreaterThanOrEqual)">;
def SETUOLT : CondCode<"(FloatCC.UnorderedOrLessThan)">;
def SETUOLE : CondCode<"(FloatCC.UnorderedOrLessThanOrEqual)">;

foreach cc = ["EQ", "NE", "GT", "GE", "LT", "LE", "UGT", "UGE", "ULT", "ULE"] in
  def "set"#!tolower(cc) : PatFrag<(ops node:$a, node:$b),
                                   (setcc node:$a, node:$b, !cast<CondCode>("SET"#cc))>;

def imm9    : ImmLeaf<simm9, "simm9">;
// The negated constant fits.
def imm9neg : ImmLeaf<simm9, "simm9_neg">;
// The constant, zero-extended from its type, fits.
def uimm8   : ImmLeaf<simm9, "uimm8">;
// A constant shift amount, modulo 32.
def imm5    : ImmLeaf<simm9, "uimm5">;
// A constant, zero-extended or sign-extended from its type.
def const_u : ImmLeaf<imm32, "const_u32">;
def const_s : ImmLeaf<simm32, "const_i32">;
// A constant of any type.
def imm     : PatLeaf<anyint, "is_const">;
// The constant 0.
def zero    : PatLeaf<int32, "zero">;
// Float constants: 0.0 or -0.0, any with a clear sign bit, any with a set sign bit.
def fpimm0   : PatLeaf<float32, "float_zero">;
def fpimmpos : PatLeaf<float32, "float_positive">;
def fpimmneg : PatLeaf<float32, "float_negative">;
// A NaN.
def fpnan    : PatLeaf<float32, "float_nan">;
// Float constants that are not NaN: the value, its bits, and its key (FKEY) as an immediate and as
// any 32-bit number.
def fpimm    : PatLeaf<float32, "float_number">;
def fpbits   : ImmLeaf<imm32, "float_number_bits">;
def fpkey9   : ImmLeaf<simm9, "float_key_simm9">;
def fpkey    : ImmLeaf<simm32, "float_key">;

// A register whose 32 bits are known to be the zero-extended value.
def zero_extended : PatLeaf<int32, "known_zero_extended">;
// 0 or 1 in all 32 bits.
def boolean : PatLeaf<int32, "boolean">;
// A single-use narrow load, which can be a sign-extending one.
def lone_load : PatLeaf<narrow, "lone_narrow_load">;

// The value, extended to 32 bits.
def zext32  : ComplexPattern<int32, GPR32, "zext32">;
def sext32  : ComplexPattern<int32, GPR32, "sext32">;
// 1 if the value is not zero, else 0.
def truth   : ComplexPattern<int32, GPR32, "truth">;
// The condition that the value is not zero.
def cond    : ComplexPattern<anyint, condition, "cond">;

// Immediates from a type: its width in bits, the width minus 1, and others that are named after
// their use.
def width       : SDNodeXForm<simm9, 1, "width_imm">;
def amount_mask : SDNodeXForm<simm9, 1, "amount_mask">;
def clz_bias    : SDNodeXForm<simm9, 1, "neg_spare_imm">;
def cls_bias    : SDNodeXForm<simm9, 1, "cls_bias">;
def bit_above   : SDNodeXForm<imm32, 1, "bit_above">;
// A constant amount modulo the width of a type, and its negative.
def amount      : SDNodeXForm<simm9, 2, "const_amount">;
def amount_back : SDNodeXForm<simm9, 2, "const_amount_back">;

// An access of one hardware instruction: aligned to its size, in the machine's byte order. And any
// other access, in either order.
class Aligned<int bytes> : AddrPattern<MEMri, 2, "is_one_instruction", "access_address", bytes>;
def aligned1  : Aligned<1>;
def aligned2  : Aligned<2>;
def bigendian : AddrPattern<MEMri, 1, "is_big_endian", "access_address", 1>;
def anyaddr   : AddrPattern<MEMri, 0, "", "access_address", 1>;
// The address plus a number of bytes. A word after the address of an access is always within the
// range of the offset.
def addr_plus : SDNodeXForm<MEMri, 2, "address_plus">;

// The only use of a narrow load needs it sign-extended.
def WantsSign : InstPredicate<"wants_sign">;

//===----------------------------------------------------------------------===//
// Arithmetic and logic
//===----------------------------------------------------------------------===//

// The pattern compiler generates the commuted forms of commutative nodes.

multiclass LowBitsPat<SDNode op, Instruction reg, Instruction imm> {
  def : Pat<(int32 (op GPR32:$a, GPR32:$b)), (reg $a, $b)>;
  def : Pat<(int32 (op GPR32:$a, imm9:$b)), (imm $a, $b)>;
}

defm : LowBitsPat<add, ADDSSS_32, ADDSSI>;
defm : LowBitsPat<sub, SUBSSS_32, SUBSSI>;
defm : LowBitsPat<mul, MULLSSS_32, MULLSSI>;
defm : LowBitsPat<and, ANDSSS_32, ANDSSI>;
defm : LowBitsPat<or, ORSSS_32, ORSSI>;
defm : LowBitsPat<xor, XORSSS_32, XORSSI>;

// 256 does not fit the immediate, -256 does.
let AddedComplexity = -1 in {
  def : Pat<(int32 (add GPR32:$a, imm9neg:$b)), (SUBSSI $a, $b)>;
  def : Pat<(int32 (sub GPR32:$a, imm9neg:$b)), (ADDSSI $a, $b)>;
}

def : Pat<(int32 (ineg GPR32:$a)), (SUBSSS_32 0, $a)>;
def : Pat<(int32 (abs sext32:$a)),
          (seq (SRASSI $a, 31):$sign, (SUBSSS_32 (XORSSS_32 $a, $sign), $sign))>;

multiclass MinMaxPat<SDNode op, ComplexPattern extend, Instruction compare> {
  def : Pat<(int32 (op extend:$a, extend:$b)), (SELECT (NONZERO (compare $a, $b)), $a, $b)>;
}

defm : MinMaxPat<smin, sext32, SLTSISSS_32>;
defm : MinMaxPat<smax, sext32, SGTSISSS_32>;
defm : MinMaxPat<umin, zext32, SLTUISSS_32>;
defm : MinMaxPat<umax, zext32, SGTUISSS_32>;

def : Pat<(int32 (bitselect GPR32:$mask, GPR32:$a, GPR32:$b)),
          (XORSSS_32 (ANDSSS_32 (XORSSS_32 $a, $b), $mask), $b)>;
// blendv tests the top bit of its condition.
def : Pat<(int32 (blendv sext32:$c, GPR32:$a, GPR32:$b)), (SELECT (NONZERO (SLTSISSI $c, 0)), $a, $b)>;

multiclass WordPat<SDNode op, Instruction reg, Instruction imm> {
  def : Pat<(i32 (op GPR32:$a, GPR32:$b)), (reg $a, $b)>;
  def : Pat<(i32 (op GPR32:$a, imm9:$b)), (imm $a, $b)>;
}

defm : WordPat<mulhs, MULHSSS_32, MULHSSI>;
defm : WordPat<mulhu, MULHUSSS_32, MULHUSSI>;

let AddedComplexity = -1 in {
  def : Pat<(narrow:$ty (mulhu zext32:$a, zext32:$b)), (SRLSSI (MULLSSS_32 $a, $b), (width $ty))>;
  def : Pat<(narrow:$ty (mulhs sext32:$a, sext32:$b)), (SRASSI (MULLSSS_32 $a, $b), (width $ty))>;
}

//===----------------------------------------------------------------------===//
// Widths
//===----------------------------------------------------------------------===//

def : SelectPat<zext32, (int32 const_u:$c), (CONST $c)> { let AddedComplexity = 1; }
def : SelectPat<zext32, (int32 zero_extended:$a), (COPY $a)>;
def : SelectPat<zext32, (i32 GPR32:$a), (COPY $a)> { let AddedComplexity = 6; }
def : SelectPat<zext32, (i8 GPR32:$a), (ANDSSI $a, 255)>;
def : SelectPat<zext32, (i16 GPR32:$a), (ANDSSS_32 $a, 0xFFFF)>;

def : SelectPat<sext32, (int32 const_s:$c), (CONST_S $c)> { let AddedComplexity = 1; }
def : SelectPat<sext32, (narrow lone_load:$a), (SEXTLOAD $a)>;
def : SelectPat<sext32, (i32 GPR32:$a), (COPY $a)>;
def : SelectPat<sext32, (i8 GPR32:$a), (SEXT8_32SS $a)>;
def : SelectPat<sext32, (i16 GPR32:$a), (SEXT16_32SS $a)>;

def : Pat<(int32 (zext zext32:$a)), (COPY $a)>;
def : Pat<(int32 (sext sext32:$a)), (COPY $a)>;
def : Pat<(int32 (trunc int32:$a)), (COPY $a)>;

def : Pat<(narrow:$half (split int32:$a)), (results $a, (SRLSSI $a, (width $half)))>;
def : Pat<(int32 (build_pair (narrow:$half zext32:$lo), GPR32:$hi)),
          (ORSSS_32 $lo, (SLLSSI $hi, (width $half)))>;

//===----------------------------------------------------------------------===//
// Overflow: result and flag
//===----------------------------------------------------------------------===//

// 1 if a + b (= sum) or a - b (= difference) overflows as a signed 32-bit number.
def SADD_FLAG : OutPatFrag<(outs GPR32:$flag), (ins GPR32:$a, GPR32:$b, GPR32:$sum), "signed_add_overflow",
    (SRLSSI (ANDSSS_32 (XORSSS_32 $a, $sum), (XORSSS_32 $b, $sum)), 31)>;
def SSUB_FLAG : OutPatFrag<(outs GPR32:$flag), (ins GPR32:$a, GPR32:$b, GPR32:$difference), "signed_sub_overflow",
    (SRLSSI (ANDSSS_32 (XORSSS_32 $a, $b), (XORSSS_32 $a, $difference)), 31)>;

def : Pat<(i32 (uaddo GPR32:$a, GPR32:$b)), (seq (ADDSSS_32 $a, $b):$sum, (results $sum, (SLTUISSS_32 $sum, $a)))>;
def : Pat<(i32 (saddo GPR32:$a, GPR32:$b)), (seq (ADDSSS_32 $a, $b):$sum, (results $sum, (SADD_FLAG $a, $b, $sum)))>;
def : Pat<(i32 (usubo GPR32:$a, GPR32:$b)), (results (SUBSSS_32 $a, $b), (SLTUISSS_32 $a, $b))>;
def : Pat<(i32 (ssubo GPR32:$a, GPR32:$b)), (seq (SUBSSS_32 $a, $b):$diff, (results $diff, (SSUB_FLAG $a, $b, $diff)))>;
def : Pat<(i32 (umulo GPR32:$a, GPR32:$b)), (results (MULLSSS_32 $a, $b), (SNESISSI (MULHUSSS_32 $a, $b), 0))>;
def : Pat<(i32 (smulo GPR32:$a, GPR32:$b)),
          (seq (MULLSSS_32 $a, $b):$low, (results $low, (SNESISSS_32 (MULHSSS_32 $a, $b), (SRASSI $low, 31))))>;

def : Pat<(i32 (uaddo_carry GPR32:$a, GPR32:$b, truth:$carry)),
          (seq (ADDSSS_32 $a, $b):$first, (ADDSSS_32 $first, $carry):$sum,
               (results $sum, (ORSSS_32 (SLTUISSS_32 $first, $a), (SLTUISSS_32 $sum, $first))))>;
// The whole sum overflows if exactly one of the two additions does: both can overflow only if the
// carry reverts the overflow of the first.
def : Pat<(i32 (saddo_carry GPR32:$a, GPR32:$b, truth:$carry)),
          (seq (ADDSSS_32 $a, $b):$first, (ADDSSS_32 $first, $carry):$sum,
               (results $sum, (XORSSS_32 (SADD_FLAG $a, $b, $first), (SADD_FLAG $first, $carry, $sum))))>;
def : Pat<(i32 (usubo_carry GPR32:$a, GPR32:$b, truth:$borrow)),
          (seq (SUBSSS_32 $a, $b):$first,
               (results (SUBSSS_32 $first, $borrow),
                        (ORSSS_32 (SLTUISSS_32 $a, $b), (SLTUISSS_32 $first, $borrow))))>;
def : Pat<(i32 (ssubo_carry GPR32:$a, GPR32:$b, truth:$borrow)),
          (seq (SUBSSS_32 $a, $b):$first, (SUBSSS_32 $first, $borrow):$diff,
               (results $diff, (XORSSS_32 (SSUB_FLAG $a, $b, $first), (SSUB_FLAG $first, $borrow, $diff))))>;

def : Pat<(i32 (uaddo_trap GPR32:$a, GPR32:$b, trapcode:$code)),
          (seq (ADDSSS_32 $a, $b):$sum, (TRAP_IF (NONZERO (SLTUISSS_32 $sum, $a)), $code), (COPY $sum))>;

// Extended narrow numbers do not overflow a register, so the flag depends on the bits above them.
multiclass NarrowOverflowPat<ValueType ty, Instruction extend> {
  // The flag is the carry, the borrow, or whether the number differs from its sign extension.
  defvar size = ty.Size;
  def : Pat<(ty (uaddo zext32:$a, zext32:$b)),
            (seq (ADDSSS_32 $a, $b):$sum, (results $sum, (SRLSSI $sum, size)))>;
  def : Pat<(ty (saddo sext32:$a, sext32:$b)),
            (seq (ADDSSS_32 $a, $b):$sum, (results $sum, (SNESISSS_32 (extend $sum), $sum)))>;
  def : Pat<(ty (usubo zext32:$a, zext32:$b)),
            (seq (SUBSSS_32 $a, $b):$diff, (results $diff, (SRLSSI $diff, 31)))>;
  def : Pat<(ty (ssubo sext32:$a, sext32:$b)),
            (seq (SUBSSS_32 $a, $b):$diff, (results $diff, (SNESISSS_32 (extend $diff), $diff)))>;
  def : Pat<(ty (umulo zext32:$a, zext32:$b)),
            (seq (MULLSSS_32 $a, $b):$product, (results $product, (SNESISSI (SRLSSI $product, size), 0)))>;
  def : Pat<(ty (smulo sext32:$a, sext32:$b)),
            (seq (MULLSSS_32 $a, $b):$product, (results $product, (SNESISSS_32 (extend $product), $product)))>;

  def : Pat<(ty (uaddo_carry zext32:$a, zext32:$b, truth:$carry)),
            (seq (ADDSSS_32 (ADDSSS_32 $a, $b), $carry):$sum, (results $sum, (SRLSSI $sum, size)))>;
  def : Pat<(ty (saddo_carry sext32:$a, sext32:$b, truth:$carry)),
            (seq (ADDSSS_32 (ADDSSS_32 $a, $b), $carry):$sum, (results $sum, (SNESISSS_32 (extend $sum), $sum)))>;
  def : Pat<(ty (usubo_carry zext32:$a, zext32:$b, truth:$borrow)),
            (seq (SUBSSS_32 (SUBSSS_32 $a, $b), $borrow):$diff, (results $diff, (SRLSSI $diff, 31)))>;
  def : Pat<(ty (ssubo_carry sext32:$a, sext32:$b, truth:$borrow)),
            (seq (SUBSSS_32 (SUBSSS_32 $a, $b), $borrow):$diff, (results $diff, (SNESISSS_32 (extend $diff), $diff)))>;
}

defm : NarrowOverflowPat<i8, SEXT8_32SS>;
defm : NarrowOverflowPat<i16, SEXT16_32SS>;

//===----------------------------------------------------------------------===//
// Bits
//===----------------------------------------------------------------------===//

def : Pat<(i32 (ctlz GPR32:$a)), (CLZSS_32 $a)>;
def : Pat<(i32 (cttz GPR32:$a)), (CTZSS_32 $a)>;
let AddedComplexity = -1 in {
  def : Pat<(narrow:$ty (ctlz zext32:$a)), (ADDSSI (CLZSS_32 $a), (clz_bias $ty))>;
  // A 1 above the type limits the count to its width.
  def : Pat<(narrow:$ty (cttz GPR32:$a)), (CTZSS_32 (ORSSS_32 $a, (CONST (bit_above $ty))))>;
}
// Bits equal to the sign are zeros of a ^ (a >> 31). The count includes the sign itself, so it is
// one too high.
def : Pat<(int32:$ty (cls sext32:$a)), (ADDSSI (CLZSS_32 (XORSSS_32 $a, (SRASSI $a, 31))), (cls_bias $ty))>;

// Exchanges neighbouring bytes, then the halves.
def SWAP_BYTES : OutPatFrag<(outs GPR32:$dst), (ins GPR32:$a), "swap_bytes",
    (seq (CONST 0x00FF00FF):$mask,
         (ORSSS_32 (ANDSSS_32 (SRLSSI $a, 8), $mask), (SLLSSI (ANDSSS_32 $a, $mask), 8)):$pairs,
         (ORSSS_32 (SRLSSI $pairs, 16), (SLLSSI $pairs, 16)))>;

// Exchanges the bits that the mask selects with the bits `distance` above them.
def SWAP_BITS : OutPatFrag<(outs GPR32:$dst), (ins GPR32:$a, GPR32:$mask, simm9:$distance), "swap_bits",
    (ORSSS_32 (ANDSSS_32 (SRLSSI $a, $distance), $mask), (SLLSSI (ANDSSS_32 $a, $mask), $distance))>;
def REVERSE_IN_BYTES : OutPatFrag<(outs GPR32:$dst), (ins GPR32:$a), "reverse_in_bytes",
    (SWAP_BITS (SWAP_BITS (SWAP_BITS $a, 0x55555555, 1), 0x33333333, 2), 0x0F0F0F0F, 4)>;

// Sums bits in fields of increasing width; the multiplication adds the four bytes.
def ONES : OutPatFrag<(outs GPR32:$dst), (ins GPR32:$a), "ones",
    (seq (SUBSSS_32 $a, (ANDSSS_32 (SRLSSI $a, 1), 0x55555555)):$pairs,
         (ADDSSS_32 (ANDSSS_32 $pairs, 0x33333333), (ANDSSS_32 (SRLSSI $pairs, 2), 0x33333333)):$nibbles,
         (ANDSSS_32 (ADDSSS_32 $nibbles, (SRLSSI $nibbles, 4)), 0x0F0F0F0F):$bytes,
         (SRLSSI (MULLSSS_32 $bytes, 0x01010101), 24))>;

def : Pat<(i32 (bswap GPR32:$a)), (SWAP_BYTES $a)>;
def : Pat<(i16 (bswap GPR32:$a)), (ORSSS_32 (SLLSSI $a, 8), (SRLSSI (zext32 $a), 8))>;
def : Pat<(i32 (bitreverse GPR32:$a)), (SWAP_BYTES (REVERSE_IN_BYTES $a))>;
def : Pat<(i16 (bitreverse zext32:$a)),
          (seq (REVERSE_IN_BYTES $a):$bytes, (ORSSS_32 (SLLSSI $bytes, 8), (SRLSSI $bytes, 8)))>;
def : Pat<(i8 (bitreverse zext32:$a)), (REVERSE_IN_BYTES $a)>;
def : Pat<(int32 (ctpop zext32:$a)), (ONES $a)>;

//===----------------------------------------------------------------------===//
// Shifts. CLIF takes the amount modulo 32, the hardware does not (erratum
// shift_amount_not_modulo).
//===----------------------------------------------------------------------===//

multiclass ShiftPat<SDNode op, Instruction reg, Instruction imm> {
  def : Pat<(i32 (op GPR32:$a, anyint:$b)), (reg $a, (ANDSSI $b, 31))>;
  // The program masks the amount itself.
  def : Pat<(i32 (op GPR32:$a, (int32 (and GPR32:$b, 31)))), (reg $a, (ANDSSI $b, 31))>;
  def : Pat<(i32 (op GPR32:$a, imm5:$b)), (imm $a, $b)>;
  let Predicates = [ShiftsAreModulo], AddedComplexity = 1 in {
    def : Pat<(i32 (op GPR32:$a, anyint:$b)), (reg $a, $b)>;
    def : Pat<(i32 (op GPR32:$a, (int32 (and GPR32:$b, 31)))), (reg $a, $b)>;
  }
}

defm : ShiftPat<shl, SLLSSS_32, SLLSSI>;
defm : ShiftPat<srl, SRLSSS_32, SRLSSI>;
defm : ShiftPat<sra, SRASSS_32, SRASSI>;

// Narrow numbers are extended as the shift requires.
multiclass NarrowShiftPat<SDNode op, ComplexPattern extend, Instruction reg, Instruction regI> {
  let AddedComplexity = -1 in {
    def : Pat<(narrow:$ty (op extend:$a, imm:$n)), (regI $a, (amount $ty, $n))>;
    def : Pat<(narrow:$ty (op extend:$a, anyint:$n)), (reg $a, (ANDSSI $n, (amount_mask $ty)))>;
  }
}

defm : NarrowShiftPat<srl, zext32, SRLSSS_32, SRLSSI>;
defm : NarrowShiftPat<sra, sext32, SRASSS_32, SRASSI>;
let AddedComplexity = -1 in {
  def : Pat<(narrow:$ty (shl GPR32:$a, imm:$n)), (SLLSSI $a, (amount $ty, $n))>;
  def : Pat<(narrow:$ty (shl GPR32:$a, anyint:$n)), (SLLSSS_32 $a, (ANDSSI $n, (amount_mask $ty)))>;
}

multiclass RotatePat<SDNode op, Instruction reg, Instruction regI, Instruction back, Instruction backI> {
  def : Pat<(int32:$ty (op zext32:$a, imm:$n)),
            (ORSSS_32 (regI $a, (amount $ty, $n)), (backI $a, (amount_back $ty, $n)))>;
  def : Pat<(int32:$ty (op zext32:$a, anyint:$n)),
            (ORSSS_32 (reg $a, (ANDSSI $n, (amount_mask $ty))),
                      (back $a, (ANDSSI (SUBSSS_32 0, $n), (amount_mask $ty))))>;
}

defm : RotatePat<rotl, SLLSSS_32, SLLSSI, SRLSSS_32, SRLSSI>;
defm : RotatePat<rotr, SRLSSS_32, SRLSSI, SLLSSS_32, SLLSSI>;

//===----------------------------------------------------------------------===//
// Floats
//===----------------------------------------------------------------------===//

let Predicates = [HardwareFloat] in {
  def : Pat<(f32 (fadd f32:$a, f32:$b)), (ADDFSSS_32 $a, $b)>;
  def : Pat<(f32 (fsub f32:$a, f32:$b)), (SUBFSSS_32 $a, $b)>;
  def : Pat<(f32 (fmul f32:$a, f32:$b)), (MULFSSS_32 $a, $b)>;
  def : Pat<(f32 (fdiv f32:$a, f32:$b)), (DIVFSSS_32 $a, $b)>;
}

// Sign operations work on the bits.
def : Pat<(f32 (fcopysign f32:$a, fpimmpos:$b)), (ANDSSS_32 $a, 0x7FFFFFFF)>;
let AddedComplexity = -2 in
def : Pat<(f32 (fcopysign f32:$a, fpimmneg:$b)), (ORSSS_32 $a, 0x80000000)>;
let AddedComplexity = -1 in
def : Pat<(f32 (fcopysign fpimm0:$a, f32:$b)), (ANDSSS_32 $b, 0x80000000)>;
def : Pat<(f32 (fcopysign f32:$a, f32:$b)), (XORSSS_32 $a, (ANDSSS_32 (XORSSS_32 $a, $b), 0x80000000))>;

//===----------------------------------------------------------------------===//
// Compares
//===----------------------------------------------------------------------===//

// `swapped` is the compare with the operands exchanged, for a constant on the left.
multiclass ComparePat<PatFrag cond, Instruction reg, Instruction imm, Instruction swapped> {
  def : Pat<(cond i32:$a, i32:$b), (reg $a, $b)>;
  def : Pat<(cond i32:$a, imm9:$b), (imm $a, $b)>;
  let AddedComplexity = -1 in
  def : Pat<(cond imm9:$a, i32:$b), (swapped $b, $a)>;
}

defm : ComparePat<seteq, SEQSISSS_32, SEQSISSI, SEQSISSI>;
defm : ComparePat<setne, SNESISSS_32, SNESISSI, SNESISSI>;
defm : ComparePat<setgt, SGTSISSS_32, SGTSISSI, SLTSISSI>;
defm : ComparePat<setge, SGESISSS_32, SGESISSI, SLESISSI>;
defm : ComparePat<setlt, SLTSISSS_32, SLTSISSI, SGTSISSI>;
defm : ComparePat<setle, SLESISSS_32, SLESISSI, SGESISSI>;
defm : ComparePat<setugt, SGTUISSS_32, SGTUISSI, SLTUISSI>;
defm : ComparePat<setuge, SGEUISSS_32, SGEUISSI, SLEUISSI>;
defm : ComparePat<setult, SLTUISSS_32, SLTUISSI, SGTUISSI>;
defm : ComparePat<setule, SLEUISSS_32, SLEUISSI, SGEUISSI>;

// Narrow operands are extended. Equality allows either extension; sign extension takes one
// instruction for constants and 16-bit values.
multiclass NarrowComparePat<PatFrag cond, ComplexPattern extend, ImmLeaf constant, Instruction reg, Instruction regI> {
  let AddedComplexity = -2 in {
    def : Pat<(cond (narrow extend:$a), extend:$b), (reg $a, $b)>;
    def : Pat<(cond (narrow extend:$a), constant:$b), (regI $a, $b)>;
  }
}

defm : NarrowComparePat<seteq, sext32, imm9, SEQSISSS_32, SEQSISSI>;
defm : NarrowComparePat<setne, sext32, imm9, SNESISSS_32, SNESISSI>;
defm : NarrowComparePat<setgt, sext32, imm9, SGTSISSS_32, SGTSISSI>;
defm : NarrowComparePat<setge, sext32, imm9, SGESISSS_32, SGESISSI>;
defm : NarrowComparePat<setlt, sext32, imm9, SLTSISSS_32, SLTSISSI>;
defm : NarrowComparePat<setle, sext32, imm9, SLESISSS_32, SLESISSI>;
defm : NarrowComparePat<setugt, zext32, uimm8, SGTUISSS_32, SGTUISSI>;
defm : NarrowComparePat<setuge, zext32, uimm8, SGEUISSS_32, SGEUISSI>;
defm : NarrowComparePat<setult, zext32, uimm8, SLTUISSS_32, SLTUISSI>;
defm : NarrowComparePat<setule, zext32, uimm8, SLEUISSS_32, SLEUISSI>;
// Zero extension of a byte takes one instruction too, and often the upper bits are known to be
// zero.
def : Pat<(seteq (i8 zext32:$a), uimm8:$b), (SEQSISSI $a, $b)>;
def : Pat<(setne (i8 zext32:$a), uimm8:$b), (SNESISSI $a, $b)>;

//===----------------------------------------------------------------------===//
// Conditions
//===----------------------------------------------------------------------===//

// A compare of a full register with zero already is a condition.
def : SelectPat<cond, (setne int32:$a, zero:$b), (NONZERO (zext32 $a))>;
def : SelectPat<cond, (seteq int32:$a, zero:$b), (ISZERO (zext32 $a))>;
def : SelectPat<cond, (int32 zext32:$a), (NONZERO $a)>;

def : SelectPat<truth, (int32 boolean:$a), (COPY $a)>;
def : SelectPat<truth, (int32 zext32:$a), (SNESISSI $a, 0)>;

def : Pat<(int32 (select cond:$c, GPR32:$a, GPR32:$b)), (SELECT $c, $a, $b)>;
def : Pat<(int32 (bmask truth:$a)), (SUBSSS_32 0, $a)>;

//===----------------------------------------------------------------------===//
// Float compares: integer compares that are correct for every bit pattern (erratum
// float_compare_order)
//===----------------------------------------------------------------------===//

// An integer key in the order of the numbers, equal for both zeros. Keys of NaNs are beyond those
// of the infinities.
def FKEY : OutPatFrag<(outs GPR32:$key), (ins GPR32:$a), "float_order_key",
    (seq (SRASSI $a, 31):$sign, (SUBSSS_32 (XORSSS_32 $a, (SRLSSI $sign, 1)), $sign))>;

// 1 if `a` is below `b` (or equal, depending on the instruction) and neither is a NaN. The key of a
// NaN is above that of infinity or below that of minus infinity. If the keys are in order, tests of
// `b` against infinity and of `a` against minus infinity are enough.
multiclass FloatOrder<string isle, Instruction compare, Instruction compareI> {
  def _RR : OutPatFrag<(outs GPR32:$flag), (ins GPR32:$a, GPR32:$b), isle,
      (seq (FKEY $a):$ka, (FKEY $b):$kb,
           (ANDSSS_32 (ANDSSS_32 (compare $ka, $kb), (SLESISSS_32 $kb, 0x7F800000)), (SGESISSS_32 $ka, 0x80800000)))>;
  // One operand is a constant, given by its key.
  def _RI : OutPatFrag<(outs GPR32:$flag), (ins GPR32:$a, simm9:$kb), isle#"_imm",
      (seq (FKEY $a):$ka, (ANDSSS_32 (compareI $ka, $kb), (SGESISSS_32 $ka, 0x80800000)))>;
  def _RC : OutPatFrag<(outs GPR32:$flag), (ins GPR32:$a, simm32:$kb), isle#"_const",
      (seq (FKEY $a):$ka, (ANDSSS_32 (compare $ka, (CONST_S $kb)), (SGESISSS_32 $ka, 0x80800000)))>;
  def _CR : OutPatFrag<(outs GPR32:$flag), (ins simm32:$ka, GPR32:$b), "const_"#isle,
      (seq (FKEY $b):$kb, (ANDSSS_32 (compare (CONST_S $ka), $kb), (SLESISSS_32 $kb, 0x7F800000)))>;
}
defm FLT : FloatOrder<"float_less", SLTSISSS_32, SLTSISSI>;
defm FLE : FloatOrder<"float_not_above", SLESISSS_32, SLESISSI>;

// 1 if `a` is a NaN; 1 if `a` or `b` is a NaN.
def FNAN : OutPatFrag<(outs GPR32:$flag), (ins GPR32:$a), "float_is_nan",
    (SGTUISSS_32 (SLLSSI $a, 1), 0xFF000000)>;
def FUO : OutPatFrag<(outs GPR32:$flag), (ins GPR32:$a, GPR32:$b), "float_unordered", (ORSSS_32 (FNAN $a), (FNAN $b))>;

// 1 if both are equal numbers: the same bits and no NaN, or two zeros.
def FEQ : OutPatFrag<(outs GPR32:$flag), (ins GPR32:$a, GPR32:$b), "float_equal",
    (ORSSS_32 (ANDSSS_32 (SEQSISSS_32 $a, $b), (SLEUISSS_32 (SLLSSI $a, 1), 0xFF000000)),
              (SEQSISSI (SLLSSI (ORSSS_32 $a, $b), 1), 0))>;
def FEQ0 : OutPatFrag<(outs GPR32:$flag), (ins GPR32:$a), "float_equal_zero", (SEQSISSI (SLLSSI $a, 1), 0)>;

// `result` is 1 if the condition holds and 0 if the opposite condition holds.
multiclass FloatComparePat<CondCode cc, CondCode opposite, dag operands, dag result, int complexity = 0,
                           list<Predicate> predicates = []> {
  let AddedComplexity = complexity, Predicates = predicates in {
    def : Pat<!con(operands, (fsetcc cc)), result>;
    def : Pat<!con(operands, (fsetcc opposite)), (XORSSI result, 1)>;
    def : SelectPat<cond, !con(operands, (fsetcc cc)), (NONZERO result)>;
    def : SelectPat<cond, !con(operands, (fsetcc opposite)), (ISZERO result)>;
  }
}

multiclass FloatOrderPat<CondCode cc, CondCode opposite, string frag> {
  defm : FloatComparePat<cc, opposite, (fsetcc f32:$a, f32:$b), (!cast<OutPatFrag>(frag#"_RR") $a, $b)>;
  defm : FloatComparePat<cc, opposite, (fsetcc f32:$a, fpkey9:$b), (!cast<OutPatFrag>(frag#"_RI") $a, $b)>;
  defm : FloatComparePat<cc, opposite, (fsetcc f32:$a, fpkey:$b), (!cast<OutPatFrag>(frag#"_RC") $a, $b), -1>;
  defm : FloatComparePat<cc, opposite, (fsetcc fpkey:$a, f32:$b), (!cast<OutPatFrag>(frag#"_CR") $a, $b), -2>;
}
// The same with the operands exchanged.
multiclass FloatSwappedPat<CondCode cc, CondCode opposite, string frag> {
  defm : FloatComparePat<cc, opposite, (fsetcc f32:$a, f32:$b), (!cast<OutPatFrag>(frag#"_RR") $b, $a)>;
  defm : FloatComparePat<cc, opposite, (fsetcc fpkey9:$a, f32:$b), (!cast<OutPatFrag>(frag#"_RI") $b, $a)>;
  defm : FloatComparePat<cc, opposite, (fsetcc fpkey:$a, f32:$b), (!cast<OutPatFrag>(frag#"_RC") $b, $a), -1>;
  defm : FloatComparePat<cc, opposite, (fsetcc f32:$a, fpkey:$b), (!cast<OutPatFrag>(frag#"_CR") $b, $a), -2>;
}
defm : FloatOrderPat<SETOLT, SETUOGE, "FLT">;
defm : FloatOrderPat<SETOLE, SETUOGT, "FLE">;
defm : FloatSwappedPat<SETOGT, SETUOLE, "FLT">;
defm : FloatSwappedPat<SETOGE, SETUOLT, "FLE">;

defm : FloatComparePat<SETUO, SETO, (fsetcc f32:$a, f32:$b), (FUO $a, $b)>;
defm : FloatComparePat<SETUO, SETO, (fsetcc f32:$a, f32:$b), (FNAN $a), 1, [SameOperands]>;
defm : FloatComparePat<SETUO, SETO, (fsetcc f32:$a, fpimm:$b), (FNAN $a)>;
defm : FloatComparePat<SETUO, SETO, (fsetcc fpimm:$a, f32:$b), (FNAN $b), -1>;

defm : FloatComparePat<SETOEQ, SETUNE, (fsetcc f32:$a, f32:$b), (FEQ $a, $b)>;
defm : FloatComparePat<SETOEQ, SETUNE, (fsetcc f32:$a, fpimm0:$b), (FEQ0 $a), 1>;
defm : FloatComparePat<SETOEQ, SETUNE, (fsetcc fpimm0:$a, f32:$b), (FEQ0 $b)>;
defm : FloatComparePat<SETOEQ, SETUNE, (fsetcc f32:$a, fpbits:$b), (SEQSISSS_32 $a, (CONST $b)), -1>;
defm : FloatComparePat<SETOEQ, SETUNE, (fsetcc fpbits:$a, f32:$b), (SEQSISSS_32 $b, (CONST $a)), -2>;

defm : FloatComparePat<SETUEQ, SETONE, (fsetcc f32:$a, f32:$b), (ORSSS_32 (FUO $a, $b), (FEQ $a, $b))>;
defm : FloatComparePat<SETUEQ, SETONE, (fsetcc f32:$a, fpimm0:$b), (ORSSS_32 (FNAN $a), (FEQ0 $a)), 1>;
defm : FloatComparePat<SETUEQ, SETONE, (fsetcc fpimm0:$a, f32:$b), (ORSSS_32 (FNAN $b), (FEQ0 $b))>;
defm : FloatComparePat<SETUEQ, SETONE, (fsetcc f32:$a, fpbits:$b),
                       (ORSSS_32 (FNAN $a), (SEQSISSS_32 $a, (CONST $b))), -1>;
defm : FloatComparePat<SETUEQ, SETONE, (fsetcc fpbits:$a, f32:$b),
                       (ORSSS_32 (FNAN $b), (SEQSISSS_32 $b, (CONST $a))), -2>;

// A NaN constant alone decides the result.
multiclass FloatNaNPat<dag operands, CondCode fails, CondCode holds> {
  def : Pat<!con(operands, (fsetcc fails)), (CONST 0)>;
  def : Pat<!con(operands, (fsetcc holds)), (CONST 1)>;
  def : SelectPat<cond, !con(operands, (fsetcc fails)), (NONZERO (CONST 0))>;
  def : SelectPat<cond, !con(operands, (fsetcc holds)), (NONZERO (CONST 1))>;
}
multiclass FloatNaNOperandPat<CondCode fails, CondCode holds> {
  let AddedComplexity = 3 in
  defm : FloatNaNPat<(fsetcc f32:$a, fpnan:$b), fails, holds>;
  let AddedComplexity = 2 in
  defm : FloatNaNPat<(fsetcc fpnan:$a, f32:$b), fails, holds>;
}
defm : FloatNaNOperandPat<SETOEQ, SETUNE>;
defm : FloatNaNOperandPat<SETONE, SETUEQ>;
defm : FloatNaNOperandPat<SETO, SETUO>;
defm : FloatNaNOperandPat<SETOLT, SETUOGE>;
defm : FloatNaNOperandPat<SETOLE, SETUOGT>;
defm : FloatNaNOperandPat<SETOGT, SETUOLE>;
defm : FloatNaNOperandPat<SETOGE, SETUOLT>;

//===----------------------------------------------------------------------===//
// Control flow
//===----------------------------------------------------------------------===//

def : Pat<(br), (JUMP)>;
def : Pat<(brcond cond:$c), (BRIF $c)>;
def : Pat<(brtable zext32:$index), (BR_TABLE $index)>;
def : Pat<(trap trapcode:$code), (TRAP $code)>;
def : Pat<(trapnz cond:$c, trapcode:$code), (TRAP_IF $c, $code)>;
def : Pat<(trapz cond:$c, trapcode:$code), (TRAP_IF (INVERT $c), $code)>;

//===----------------------------------------------------------------------===//
// Addresses and registers with a role
//===----------------------------------------------------------------------===//

def : Pat<(i32 (stack_addr stackslot:$slot, offset32:$distance)), (SLOT_ADDR $slot, $distance)>;
def : Pat<(i32 (func_addr funcref:$callee)), (FUNC_ADDR $callee)>;
def : Pat<(i32 (symbol_value globalvalue:$global)), (SYMBOL_ADDR $global)>;
def : Pat<(i32 (get_frame_pointer)), (FRAME_POINTER)>;
def : Pat<(i32 (get_stack_pointer)), (STACK_POINTER)>;
def : Pat<(i32 (get_return_address)), (RETURN_ADDRESS)>;
def : Pat<(i32 (get_pinned)), (GET_PINNED)>;
def : Pat<(set_pinned i32:$a), (SET_PINNED $a)>;

//===----------------------------------------------------------------------===//
// Without machine instructions
//===----------------------------------------------------------------------===//

def : Pat<(fence), (FENCE)>;
def : Pat<(sequence_point), (SEQUENCE_POINT)>;
def : Pat<(debugtrap), (DEBUGTRAP)>;

//===----------------------------------------------------------------------===//
// Memory. A misaligned access traps imprecisely, so an access that may be misaligned is done byte
// by byte. In an access to the scratchpad, a main-memory instruction is replaced by its counterpart
// (getScratchpadOp).
//===----------------------------------------------------------------------===//

multiclass LoadPat<SDNode op, AddrPattern addr, list<ValueType> types, Instruction inst> {
  foreach ty = types in {
    def : Pat<(ty (op addr:$addr)), (inst $addr)>;
  }
}
multiclass StorePat<SDNode op, AddrPattern addr, list<ValueType> types, Instruction inst> {
  foreach ty = types in {
    def : Pat<(op ty:$value, addr:$addr), (inst $value, $addr)>;
  }
}

defm : LoadPat<load, aligned2, [i16], L32SU_Mainmem>;
defm : LoadPat<load, aligned1, [i8], L32BU_Mainmem>;
defm : LoadPat<loadu8, aligned1, [i16, i32], L32BU_Mainmem>;
defm : LoadPat<loadi8, aligned1, [i16, i32], L32BS_Mainmem>;
defm : LoadPat<loadu16, aligned2, [i32], L32SU_Mainmem>;
defm : LoadPat<loadi16, aligned2, [i32], L32SS_Mainmem>;

let Predicates = [WantsSign], AddedComplexity = 1 in {
  def : Pat<(i16 (load aligned2:$addr)), (L32SS_Mainmem $addr)>;
  def : Pat<(i8 (load aligned1:$addr)), (L32BS_Mainmem $addr)>;
}

defm : StorePat<store, aligned2, [i16], S32S_Mainmem>;
defm : StorePat<store, aligned1, [i8], S32B_Mainmem>;
defm : StorePat<truncstore8, aligned1, [i16, i32], S32B_Mainmem>;
defm : StorePat<truncstore16, aligned2, [i32], S32S_Mainmem>;

// The unsigned number in 2 or 4 bytes at an address, the lowest or the highest byte first.
class LoadBytes<string isle, dag result> : OutPatFrag<(outs GPR32:$dst), (ins MEMri:$addr), isle, result>;
def LOAD_LE16 : LoadBytes<"load_le16",
    (ORSSS_32 (L32BU_Mainmem $addr), (SLLSSI (L32BU_Mainmem (addr_plus $addr, 1)), 8))>;
def LOAD_BE16 : LoadBytes<"load_be16",
    (ORSSS_32 (L32BU_Mainmem (addr_plus $addr, 1)), (SLLSSI (L32BU_Mainmem $addr), 8))>;
def LOAD_LE32 : LoadBytes<"load_le32",
    (ORSSS_32 (LOAD_LE16 $addr), (SLLSSI (LOAD_LE16 (addr_plus $addr, 2)), 16))>;
def LOAD_BE32 : LoadBytes<"load_be32",
    (ORSSS_32 (LOAD_BE16 (addr_plus $addr, 2)), (SLLSSI (LOAD_BE16 $addr), 16))>;

class StoreBytes<string isle, dag result> : OutPatFrag<(outs), (ins GPR32:$value, MEMri:$addr), isle, result>;
def STORE_LE16 : StoreBytes<"store_le16",
    (seq (S32B_Mainmem $value, $addr), (S32B_Mainmem (SRLSSI $value, 8), (addr_plus $addr, 1)))>;
def STORE_BE16 : StoreBytes<"store_be16",
    (seq (S32B_Mainmem $value, (addr_plus $addr, 1)), (S32B_Mainmem (SRLSSI $value, 8), $addr))>;
def STORE_LE32 : StoreBytes<"store_le32",
    (seq (STORE_LE16 $value, $addr), (STORE_LE16 (SRLSSI $value, 16), (addr_plus $addr, 2)))>;
def STORE_BE32 : StoreBytes<"store_be32",
    (seq (STORE_BE16 $value, (addr_plus $addr, 2)), (STORE_BE16 (SRLSSI $value, 16), $addr))>;

multiclass BytewisePat<AddrPattern addr, string order> {
  defvar load16 = !cast<OutPatFrag>("LOAD_"#order#"16");
  defvar store16 = !cast<OutPatFrag>("STORE_"#order#"16");
  def : Pat<(i16 (load addr:$addr)), (load16 $addr)>;
  let Predicates = [WantsSign], AddedComplexity = 1 in
  def : Pat<(i16 (load addr:$addr)), (SEXT16_32SS (load16 $addr))>;
  def : Pat<(i32 (loadu16 addr:$addr)), (load16 $addr)>;
  def : Pat<(i32 (loadi16 addr:$addr)), (SEXT16_32SS (load16 $addr))>;
  def : Pat<(store i16:$value, addr:$addr), (store16 $value, $addr)>;
  def : Pat<(truncstore16 i32:$value, addr:$addr), (store16 $value, $addr)>;
}

defm : BytewisePat<bigendian, "BE">;
defm : BytewisePat<anyaddr, "LE">;
