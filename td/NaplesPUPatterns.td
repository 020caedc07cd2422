//===- NaplesPUPatterns.td - CLIF instructions that are one or two of ours ----===//
//
// Integer operations up to 32 bits, and the float unit's. i8 and i16 live in 32-bit registers with undefined
// upper bits: an operation whose low bits depend on low bits alone is matched for all three
// types, the others for i32 only.
//
//===----------------------------------------------------------------------===//

//===----------------------------------------------------------------------===//
// Types, nodes and leaves
//===----------------------------------------------------------------------===//

def int32 : TypeSet<[i8, i16, i32], "int_fits_in_32">;
// A shift amount: its low bits are in the low register whatever its type.
def anyint : TypeSet<[i8, i16, i32, i64, i128], ""> { let LowWordOnly = true; }

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
def ctlz  : SDNode<"(clz $ty $0)", SDTIntUnaryOp>;
def cttz  : SDNode<"(ctz $ty $0)", SDTIntUnaryOp>;
def sext  : SDNode<"(sextend $ty $0)", SDTIntExtendOp>;
def setcc : SDNode<"(icmp $ty $2 $0 $1)", SDTSetCC>;

def fadd : SDNode<"(fadd $ty $0 $1)", SDTBinOp>;
def fsub : SDNode<"(fsub $ty $0 $1)", SDTBinOp>;
def fmul : SDNode<"(fmul $ty $0 $1)", SDTBinOp>;
def fdiv : SDNode<"(fdiv $ty $0 $1)", SDTBinOp>;

def load    : SDNode<"(load $ty flags p offset)", SDTLoad, [SDNPMemOperand]>;
def loadi8  : SDNode<"(sload8 $ty flags p offset)", SDTLoad, [SDNPMemOperand]>;
def loadu8  : SDNode<"(uload8 $ty flags p offset)", SDTLoad, [SDNPMemOperand]>;
def loadi16 : SDNode<"(sload16 $ty flags p offset)", SDTLoad, [SDNPMemOperand]>;
def loadu16 : SDNode<"(uload16 $ty flags p offset)", SDTLoad, [SDNPMemOperand]>;
def store   : SDNode<"(store flags $0 p offset)", SDTStore, [SDNPMemOperand]>;
def store8  : SDNode<"(istore8 flags $0 p offset)", SDTStore, [SDNPMemOperand]>;
def store16 : SDNode<"(istore16 flags $0 p offset)", SDTStore, [SDNPMemOperand]>;

// f32 arithmetic is the float unit's own (setting strict_float is off).
def HardwareFloat : Predicate<"hardware_float">;
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

foreach cc = ["EQ", "NE", "GT", "GE", "LT", "LE", "UGT", "UGE", "ULT", "ULE"] in
  def "set"#!tolower(cc) : PatFrag<(ops node:$a, node:$b),
                                   (setcc node:$a, node:$b, !cast<CondCode>("SET"#cc))>;

def imm9    : ImmLeaf<simm9, "simm9">;
// The negated constant fits.
def imm9neg : ImmLeaf<simm9, "simm9_neg">;
// A shift amount modulo 32.
def imm5    : ImmLeaf<simm9, "uimm5">;

// An aligned access. The rules name the instruction for main memory; in the scratchpad it is the one that getScratchpadOp
// has for it.
class Aligned<int align> : ComplexPattern<MEMri, 2, "aligned_address", align>;
def aligned1 : Aligned<1>;
def aligned2 : Aligned<2>;
def aligned4 : Aligned<4>;

//===----------------------------------------------------------------------===//
// Arithmetic and logic
//===----------------------------------------------------------------------===//

// Commuted forms of commutative nodes are made by the pattern compiler.

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

// 256 has no place in an immediate, -256 has.
let AddedComplexity = -1 in {
  def : Pat<(int32 (add GPR32:$a, imm9neg:$b)), (SUBSSI $a, $b)>;
  def : Pat<(int32 (sub GPR32:$a, imm9neg:$b)), (ADDSSI $a, $b)>;
}

def : Pat<(int32 (not GPR32:$a)), (XORSSI $a, -1)>;

multiclass WordPat<SDNode op, Instruction reg, Instruction imm> {
  def : Pat<(i32 (op GPR32:$a, GPR32:$b)), (reg $a, $b)>;
  def : Pat<(i32 (op GPR32:$a, imm9:$b)), (imm $a, $b)>;
}

defm : WordPat<mulhs, MULHSSS_32, MULHSSI>;
defm : WordPat<mulhu, MULHUSSS_32, MULHUSSI>;

def : Pat<(i32 (ctlz GPR32:$a)), (CLZSS_32 $a)>;
def : Pat<(i32 (cttz GPR32:$a)), (CTZSS_32 $a)>;

def : Pat<(int32 (sext i8:$a)), (SEXT8_32SS $a)>;
def : Pat<(i32 (sext i16:$a)), (SEXT16_32SS $a)>;

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

//===----------------------------------------------------------------------===//
// Floats
//===----------------------------------------------------------------------===//

let Predicates = [HardwareFloat] in {
  def : Pat<(f32 (fadd f32:$a, f32:$b)), (ADDFSSS_32 $a, $b)>;
  def : Pat<(f32 (fsub f32:$a, f32:$b)), (SUBFSSS_32 $a, $b)>;
  def : Pat<(f32 (fmul f32:$a, f32:$b)), (MULFSSS_32 $a, $b)>;
  def : Pat<(f32 (fdiv f32:$a, f32:$b)), (DIVFSSS_32 $a, $b)>;
}

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

//===----------------------------------------------------------------------===//
// Memory
//===----------------------------------------------------------------------===//

def : Pat<(i32 (load aligned4:$addr)), (L32W_Mainmem $addr)>;
def : Pat<(i32 (loadi8 aligned1:$addr)), (L32BS_Mainmem $addr)>;
def : Pat<(i32 (loadu8 aligned1:$addr)), (L32BU_Mainmem $addr)>;
def : Pat<(i32 (loadi16 aligned2:$addr)), (L32SS_Mainmem $addr)>;
def : Pat<(i32 (loadu16 aligned2:$addr)), (L32SU_Mainmem $addr)>;
def : Pat<(store i32:$value, aligned4:$addr), (S32W_Mainmem $value, $addr)>;
def : Pat<(store8 i32:$value, aligned1:$addr), (S32B_Mainmem $value, $addr)>;
def : Pat<(store16 i32:$value, aligned2:$addr), (S32S_Mainmem $value, $addr)>;
