//===- NaplesPUInstrInfo.td - the instructions -------------------------------===//
//
// All 282 encodable instructions (docs/machine/formats.md). Letters in the names: S scalar and V
// vector register, destination first; I immediate; _M the assembler's `.m` form (masked), _U the
// form without mask.
//
//===----------------------------------------------------------------------===//

//===----------------------------------------------------------------------===//
// Classes that the relations of NaplesPUInstrMappings.td select on
//===----------------------------------------------------------------------===//

// The register form and the immediate form of an operation. The immediate replaces a scalar
// register.
class RegImmRel<string row, string form> {
  string RegImmRow = row;
  string OperandForm = form; // "reg", "imm"
}

// A masked instruction and its form without mask.
class MaskRel<string row, string form> {
  string MaskRow = row;
  string MaskForm = form; // "masked", "unmasked"
}

// The same access in main memory and in the scratchpad.
class SpaceRel<string row, string space> {
  string SpaceRow = row;
  string Space = space; // "mainmem", "scratchpad"
}

// Compares. Two compares with opposite results for all operands have equal InverseRow and differ in
// InverseSide.
class InverseRel<string row, string side> {
  string InverseRow = row;
  string InverseSide = side;
}

// Two compares that return the same result with exchanged operands have equal SwapRow. A compare
// that is its own partner has the side "self".
class SwapRel<string row, string side> {
  string SwapRow = row;
  string SwapSide = side;
}

//===----------------------------------------------------------------------===//
// Reasons for a missing pattern that several instructions share
//===----------------------------------------------------------------------===//

defvar FloatOrder = "orders bit patterns, not numbers (erratum float_compare_order)";

//===----------------------------------------------------------------------===//
// R format
//===----------------------------------------------------------------------===//

// Operations on two sources. The masked forms keep the old value in disabled lanes.
multiclass RRArith<HwOp op, string asm, bit commutable = false> {
  def SSS_32 : InstRR2<op, 0, 0, 0, 0, (outs GPR32:$dst), (ins GPR32:$src0, GPR32:$src1),
                       asm#" $dst, $src0, $src1">,
               RegImmRel<op.Name#"_SS", "reg"> { let isCommutable = commutable; }
  def VVV_U_32 : InstRR2<op, 1, 1, 1, 0, (outs VR512W:$dst), (ins VR512W:$src0, VR512W:$src1),
                         asm#" $dst, $src0, $src1">,
                 MaskRel<op.Name#"_VVV", "unmasked"> { let isCommutable = commutable; }
  def VVS_U_32 : InstRR2<op, 1, 1, 0, 0, (outs VR512W:$dst), (ins VR512W:$src0, GPR32:$src1),
                         asm#" $dst, $src0, $src1">,
                 MaskRel<op.Name#"_VVS", "unmasked">, RegImmRel<op.Name#"_VV_U", "reg">;
  let Uses = [MR_REG], Constraints = "$dst = $oldvalue" in {
    def VVV_M_32 : InstRR2<op, 1, 1, 1, 1, (outs VR512W:$dst),
                           (ins VR512W:$src0, VR512W:$src1, VR512W:$oldvalue),
                           asm#".m $dst, $src0, $src1">,
                   MaskRel<op.Name#"_VVV", "masked"> { let isCommutable = commutable; }
    def VVS_M_32 : InstRR2<op, 1, 1, 0, 1, (outs VR512W:$dst),
                           (ins VR512W:$src0, GPR32:$src1, VR512W:$oldvalue),
                           asm#".m $dst, $src0, $src1">,
                   MaskRel<op.Name#"_VVS", "masked">, RegImmRel<op.Name#"_VV_M", "reg">;
  }
}

// Operations on one source. The names differ in the position of the underscore, so the caller
// passes them.
multiclass RRUnary<HwOp op, string asm, string scalar, string vector, string suffixU,
                   string suffixM> {
  def scalar : InstRR1<op, 0, 0, 0, (outs GPR32:$dst), (ins GPR32:$src0), asm#" $dst, $src0">;
  let NoPattern = "only an intrinsic uses it" in
  def vector#suffixU : InstRR1<op, 1, 1, 0, (outs VR512W:$dst), (ins VR512W:$src0),
                               asm#" $dst, $src0">,
                       MaskRel<op.Name#"_VV", "unmasked">;
  let Uses = [MR_REG], Constraints = "$dst = $oldvalue" in
  def vector#suffixM : InstRR1<op, 1, 1, 1, (outs VR512W:$dst),
                               (ins VR512W:$src0, VR512W:$oldvalue), asm#".m $dst, $src0">,
                       MaskRel<op.Name#"_VV", "masked">;
}

// A scalar compare returns 0 or 1 (floats: 0 or 0xFFFF). With a vector operand, bit i of the result
// belongs to lane i, and bits 31:16 of an integer result are undefined.
multiclass RRCompare<HwOp op, string asm, string inverse, string inverseSide, string swap,
                     string swapSide> {
  let isCompare = true, isCommutable = !eq(swapSide, "self") in {
    def SSS_32 : InstRR2<op, 0, 0, 0, 0, (outs GPR32:$dst), (ins GPR32:$src0, GPR32:$src1),
                         asm#" $dst, $src0, $src1">,
                 RegImmRel<op.Name#"_SS", "reg">, InverseRel<inverse#"_SS", inverseSide>,
                 SwapRel<swap#"_SS", swapSide>;
    def SVV_U_32 : InstRR2<op, 0, 1, 1, 0, (outs GPR32:$dst), (ins VR512W:$src0, VR512W:$src1),
                           asm#" $dst, $src0, $src1">,
                   InverseRel<inverse#"_VV", inverseSide>, SwapRel<swap#"_VV", swapSide>;
  }
  let isCompare = true in
  def SVS_U_32 : InstRR2<op, 0, 1, 0, 0, (outs GPR32:$dst), (ins VR512W:$src0, GPR32:$src1),
                         asm#" $dst, $src0, $src1">,
                 RegImmRel<op.Name#"_SV", "reg">, InverseRel<inverse#"_VS", inverseSide>;
}

defm OR    : RRArith<RR_OR, "or_i32", true>;
defm AND   : RRArith<RR_AND, "and_i32", true>;
defm XOR   : RRArith<RR_XOR, "xor_i32", true>;
defm ADD   : RRArith<RR_ADD, "add_i32", true>;
defm SUB   : RRArith<RR_SUB, "sub_i32">;
defm MULL  : RRArith<RR_MULL, "mull_i32", true>;
defm MULH  : RRArith<RR_MULHS, "mulhs_i32", true>;
defm MULHU : RRArith<RR_MULHU, "mulhu_i32", true>;
defm SRA   : RRArith<RR_ASHR, "ashr_i32">;
defm SRL   : RRArith<RR_SHR, "shr_i32">;
defm SLL   : RRArith<RR_SHL, "shl_i32">;
defm CLZ   : RRUnary<RR_CLZ, "clz_i32", "SS_32", "VV", "_U_32", "_M_32">;
defm CTZ   : RRUnary<RR_CTZ, "ctz_i32", "SS_32", "VV", "_U_32", "_M_32">;

defm SEQSI : RRCompare<RR_CMPEQ, "cmpeq_i32", "eq_ne", "a", "eq", "self">;
defm SNESI : RRCompare<RR_CMPNE, "cmpne_i32", "eq_ne", "b", "ne", "self">;
defm SGTSI : RRCompare<RR_CMPGT, "cmpgt_i32", "gt_le", "a", "gt_lt", "a">;
defm SGESI : RRCompare<RR_CMPGE, "cmpge_i32", "ge_lt", "a", "ge_le", "a">;
defm SLTSI : RRCompare<RR_CMPLT, "cmplt_i32", "ge_lt", "b", "gt_lt", "b">;
defm SLESI : RRCompare<RR_CMPLE, "cmple_i32", "gt_le", "b", "ge_le", "b">;
defm SGTUI : RRCompare<RR_CMPUGT, "cmpugt_i32", "ugt_ule", "a", "ugt_ult", "a">;
defm SGEUI : RRCompare<RR_CMPUGE, "cmpuge_i32", "uge_ult", "a", "uge_ule", "a">;
defm SLTUI : RRCompare<RR_CMPULT, "cmpult_i32", "uge_ult", "b", "ugt_ult", "b">;
defm SLEUI : RRCompare<RR_CMPULE, "cmpule_i32", "ugt_ule", "b", "uge_ule", "b">;

def SHUFFLEI_32 : InstRR2<RR_SHUFFLE, 1, 1, 1, 0, (outs VR512W:$dst),
                          (ins VR512W:$src0, VR512W:$src1), "shuffle_i32 $dst, $src0, $src1">;
let NoPattern = "lane numbers are constants in CLIF" in
def GET_LANEI_32 : InstRR2<RR_GETLANE, 0, 1, 0, 0, (outs GPR32:$dst),
                           (ins VR512W:$src0, GPR32:$src1), "getlane_i32 $dst, $src0, $src1">,
                   RegImmRel<"getlane_SV", "reg">;

let isMoveReg = true, NoPattern = "the register allocator inserts copies" in {
  def MOVE_SS_32 : InstRR1<RR_MOVE, 0, 0, 0, (outs GPR32:$dst), (ins GPR32:$src0),
                           "move_i32 $dst, $src0">;
  def MOVE_VV_32 : InstRR1<RR_MOVE, 1, 1, 0, (outs VR512W:$dst), (ins VR512W:$src0),
                           "move_i32 $dst, $src0">,
                   MaskRel<"move_VV", "unmasked">;
}
// Copies the scalar to every lane.
def MOVE_VS_32 : InstRR1<RR_MOVE, 1, 0, 0, (outs VR512W:$dst), (ins GPR32:$src0),
                         "move_i32 $dst, $src0">,
                 MaskRel<"move_VS", "unmasked">;

// Moves that keep the lanes disabled in rm. They have the same bits as the plain moves: the m bit
// is not set, and the hardware would ignore it.
let Uses = [MR_REG], Constraints = "$dst = $oldvalue", isCodeGenOnly = true, isAsmParserOnly = true in {
  def MOVE_VV_M_32 : InstRR1<RR_MOVE, 1, 1, 0, (outs VR512W:$dst),
                             (ins VR512W:$src0, VR512W:$oldvalue), "move_i32 $dst, $src0">,
                     MaskRel<"move_VV", "masked"> { let isMasked = true; }
  def MOVE_VS_M_32 : InstRR1<RR_MOVE, 1, 0, 0, (outs VR512W:$dst),
                             (ins GPR32:$src0, VR512W:$oldvalue), "move_i32 $dst, $src0">,
                     MaskRel<"move_VS", "masked"> { let isMasked = true; }
}

// Moves from and to rm, which the disassembler prints as move_i32.
let isAsmParserOnly = true, hasSideEffects = true,
    NoPattern = "emission sets the lane mask around masked instructions" in {
  let Uses = [MR_REG] in
  def READMR : InstRR<RR_MOVE, 0, 0, 0, 0, (outs GPR32:$dst), (ins), "read_mr $dst"> {
    bits<6> dst;
    let Inst{23-18} = dst;
    let Inst{17-12} = MR_REG.HWEncoding;
    let Inst{11-6} = 0;
    let Inputs = (inputs (bv_register MR_REG):$a);
  }
  let Defs = [MR_REG] in
  def WRITEMR : InstRR<RR_MOVE, 0, 0, 0, 0, (outs), (ins GPR32:$src), "write_mr $src"> {
    bits<6> src;
    let Inst{23-18} = MR_REG.HWEncoding;
    let Inst{17-12} = src;
    let Inst{11-6} = 0;
    let Inputs = (inputs (bv_reg $src):$a);
    let Output = (bv_register MR_REG);
  }
}

defm ADDF : RRArith<RR_FADD, "fadd_f32", true>;
defm SUBF : RRArith<RR_FSUB, "fsub_f32">;
defm MULF : RRArith<RR_FMUL, "fmul_f32", true>;
defm DIVF : RRArith<RR_FDIV, "fdiv_f32">;

// Compares in the order of the hardware: by bit pattern; equal only if all bits are.
let NoPattern = FloatOrder in {
defm SEQFO : RRCompare<RR_CMPFEQ, "cmpfeq_f32", "feq_fne", "a", "feq", "self">;
defm SNEFO : RRCompare<RR_CMPFNE, "cmpfne_f32", "feq_fne", "b", "fne", "self">;
defm SGTFO : RRCompare<RR_CMPFGT, "cmpfgt_f32", "fgt_fle", "a", "fgt_flt", "a">;
defm SGEFO : RRCompare<RR_CMPFGE, "cmpfge_f32", "fge_flt", "a", "fge_fle", "a">;
defm SLTFO : RRCompare<RR_CMPFLT, "cmpflt_f32", "fge_flt", "b", "fgt_flt", "b">;
defm SLEFO : RRCompare<RR_CMPFLE, "cmpfle_f32", "fgt_fle", "b", "fge_fle", "b">;
}

defm SEXT8_32   : RRUnary<RR_SEXT8, "sext8_i32", "SS", "VV", "_U", "_M">;
defm SEXT16_32  : RRUnary<RR_SEXT16, "sext16_i32", "SS", "VV", "_U", "_M">;
defm I32TOF32_  : RRUnary<RR_ITOF, "itof_i32", "SS", "VV", "_U", "_M">;
let NoPattern = "returns 0 for 128 to 255 (erratum ftoi_128_to_255)" in
defm F32TOI32_  : RRUnary<RR_FTOI, "ftoi_i32", "SS", "VV", "_U", "_M">;

// Bit i of the result is bit 0 of lane i.
let NoPattern = "masks are results of compares" in
def CREATEMASK_32 : InstRR1<RR_CRTMASK, 0, 1, 0, (outs GPR32:$dst), (ins VR512W:$src0),
                            "crt_mask_i32 $dst, $src0">;
// Never completes (erratum cross_product_missing).
def CROSSPROD_32 : InstRR2<RR_CRP, 1, 1, 1, 0, (outs VR512W:$dst),
                           (ins VR512W:$src0, VR512W:$src1), "crp $dst, $src0, $src1"> {
  let hasSideEffects = true;
  let NoPattern = "never completes (erratum cross_product_missing)";
}

//===----------------------------------------------------------------------===//
// I format
//===----------------------------------------------------------------------===//

multiclass RIArith<HwOp op, string asm> {
  def SSI : InstRI<op, 0, 0, 0, (outs GPR32:$dst), (ins GPR32:$src, simm9:$imm),
                   asm#" $dst, $src, $imm">,
            RegImmRel<op.Name#"_SS", "imm">;
  def VVI_U : InstRI<op, 1, 1, 0, (outs VR512W:$dst), (ins VR512W:$src, simm9:$imm),
                     asm#" $dst, $src, $imm">,
              MaskRel<op.Name#"_VVI", "unmasked">, RegImmRel<op.Name#"_VV_U", "imm">;
  let Uses = [MR_REG], Constraints = "$dst = $oldvalue" in
  def VVI_M : InstRI<op, 1, 1, 1, (outs VR512W:$dst),
                     (ins VR512W:$src, simm9:$imm, VR512W:$oldvalue),
                     asm#".m $dst, $src, $imm">,
              MaskRel<op.Name#"_VVI", "masked">, RegImmRel<op.Name#"_VV_M", "imm">;
}

multiclass RICompare<HwOp op, string asm, string inverse, string inverseSide> {
  let isCompare = true in {
    def SSI : InstRI<op, 0, 0, 0, (outs GPR32:$dst), (ins GPR32:$src, simm9:$imm),
                     asm#" $dst, $src, $imm">,
              RegImmRel<op.Name#"_SS", "imm">, InverseRel<inverse#"_SI", inverseSide>;
    def SVI : InstRI<op, 0, 1, 0, (outs GPR32:$dst), (ins VR512W:$src, simm9:$imm),
                     asm#" $dst, $src, $imm">,
              RegImmRel<op.Name#"_SV", "imm">, InverseRel<inverse#"_VI", inverseSide>;
  }
}

defm OR    : RIArith<RR_OR, "ori">;
defm AND   : RIArith<RR_AND, "andi">;
defm XOR   : RIArith<RR_XOR, "xori">;
defm ADD   : RIArith<RR_ADD, "addi">;
defm SUB   : RIArith<RR_SUB, "subi">;
defm MULL  : RIArith<RR_MULL, "mulli">;
defm MULH  : RIArith<RR_MULHS, "mulhsi">;
defm MULHU : RIArith<RR_MULHU, "mulhui">;
defm SRA   : RIArith<RR_ASHR, "ashri">;
defm SRL   : RIArith<RR_SHR, "shri">;
defm SLL   : RIArith<RR_SHL, "shli">;

// The hardware sign-extends the immediate in unsigned compares too.
defm SEQSI : RICompare<RR_CMPEQ, "cmpeqi", "eq_ne", "a">;
defm SNESI : RICompare<RR_CMPNE, "cmpnei", "eq_ne", "b">;
defm SGTSI : RICompare<RR_CMPGT, "cmpgti", "gt_le", "a">;
defm SGESI : RICompare<RR_CMPGE, "cmpgei", "ge_lt", "a">;
defm SLTSI : RICompare<RR_CMPLT, "cmplti", "ge_lt", "b">;
defm SLESI : RICompare<RR_CMPLE, "cmplei", "gt_le", "b">;
defm SGTUI : RICompare<RR_CMPUGT, "cmpugti", "ugt_ule", "a">;
defm SGEUI : RICompare<RR_CMPUGE, "cmpugei", "uge_ult", "a">;
defm SLTUI : RICompare<RR_CMPULT, "cmpulti", "uge_ult", "b">;
defm SLEUI : RICompare<RR_CMPULE, "cmpulei", "ugt_ule", "b">;

def GET_LANEIimm : InstRI<RR_GETLANE, 0, 1, 0, (outs GPR32:$dst),
                          (ins VR512W:$src, simm9:$imm), "getlanei $dst, $src, $imm">,
                   RegImmRel<"getlane_SV", "imm">;

// addi under another name, for addresses; the disassembler prints addi.
let isAsmParserOnly = true, NoPattern = "another name of ADDSSI" in
def LOAD_EFFECTIVE_ADDR : InstRIBase<RR_ADD, 0, 0, 0, (outs GPR32:$dst),
                                     (ins (LEAri $base, $off):$addr), "_lea $dst, $addr"> {
  bits<6> dst;
  bits<6> base;
  bits<9> off;
  let Inst{23-18} = dst;
  let Inst{17-12} = base;
  let Inst{11-3} = off;
  let Inputs = (inputs (bv_reg $base):$a, (bv_imm $off):$b);
}

//===----------------------------------------------------------------------===//
// MOVEI format
//===----------------------------------------------------------------------===//

class MoveImm<HwOp op, bit fd, bit m, dag outs, dag ins, string asm>
    : InstMVI<op, fd, m, outs, ins, asm> {
  bits<16> imm;
  let Inst{17-2} = imm;
  let Inputs = (inputs (bv_extract (bv_imm $imm), 15, 0):$imm, (bv_reg $dst):$old);
}

class MoveSym<HwOp op, dag outs, dag ins, string asm> : InstMVI<op, 0, 0, outs, ins, asm> {
  bits<16> addr;
  let Inst{17-2} = addr;
  let isAsmParserOnly = true;
  let Inputs = (inputs (bv_extract (bv_imm $addr), 15, 0):$imm, (bv_reg $dst):$old);
}

// Sets all 32 bits, to the zero-extended immediate.
let NoPattern = "a part of CONST" in
def MOVEISI : MoveImm<MVI_MOVEI, 0, 0, (outs GPR32:$dst), (ins imm16:$imm), "movei $dst, $imm">;
def MOVEIVI_U : MoveImm<MVI_MOVEI, 1, 0, (outs VR512W:$dst), (ins imm16:$imm),
                        "movei $dst, $imm">,
                MaskRel<"movei", "unmasked">;
let Uses = [MR_REG], Constraints = "$dst = $oldvalue" in
def MOVEIVI_M : MoveImm<MVI_MOVEI, 1, 1, (outs VR512W:$dst),
                        (ins imm16:$imm, VR512W:$oldvalue), "movei.m $dst, $imm">,
                MaskRel<"movei", "masked">;

// Sets bits 15:0 or 31:16. The other half keeps its value, so the destination is also a source.
multiclass MoveHalf<HwOp op, string asm> {
  let Constraints = "$dst = $oldvalue" in {
    let NoPattern = "a part of CONST" in
    def SI : MoveImm<op, 0, 0, (outs GPR32:$dst), (ins imm16:$imm, GPR32:$oldvalue),
                     asm#" $dst, $imm">;
    let NoPattern = "a part of a constant in every lane" in
    def VI_U : MoveImm<op, 1, 0, (outs VR512W:$dst), (ins imm16:$imm, VR512W:$oldvalue),
                       asm#" $dst, $imm">,
               MaskRel<op.Name, "unmasked">;
    let Uses = [MR_REG] in
    def VI_M : MoveImm<op, 1, 1, (outs VR512W:$dst), (ins imm16:$imm, VR512W:$oldvalue),
                       asm#".m $dst, $imm">,
               MaskRel<op.Name, "masked">;
  }
}

defm MOVEIL : MoveHalf<MVI_MOVEIL, "moveil">;
defm MOVEIH : MoveHalf<MVI_MOVEIH, "moveih">;

// Halves of an address; the disassembler prints moveih and moveil.
let Constraints = "$dst = $oldvalue", NoPattern = "a part of SYMBOL_ADDR" in {
  def LEAH : MoveSym<MVI_MOVEIH, (outs GPR32:$dst), (ins abs_high:$addr, GPR32:$oldvalue),
                     "leah $dst, $addr">;
  def LEAL : MoveSym<MVI_MOVEIL, (outs GPR32:$dst), (ins abs_low:$addr, GPR32:$oldvalue),
                     "leal $dst, $addr">;
}

//===----------------------------------------------------------------------===//
// M format
//===----------------------------------------------------------------------===//

class ScalarLoad<HwOp op, bit spm, string asm>
    : InstMEM<op, spm, 0, (outs GPR32:$dstsrc), (ins (MEMri $base, $off):$addr),
              asm#" $dstsrc, $addr"> {
  let mayLoad = true;
}

class ScalarStore<HwOp op, bit spm, string asm>
    : InstMEM<op, spm, 0, (outs), (ins GPR32:$dstsrc, (MEMri $base, $off):$addr),
              asm#" $dstsrc, $addr"> {
  let mayStore = true;
}

class VectorStore<HwOp op, bit spm, bit m, string asm>
    : InstMEM<op, spm, m, (outs), (ins VR512W:$dstsrc, (MEMri $base, $off):$addr),
              asm#" $dstsrc, $addr"> {
  let mayStore = true;
}

defvar ByEmission = "emission selects it in place of the access to main memory (getScratchpadOp)";

multiclass ScalarLoads<HwOp op, string asm> {
  def _Mainmem    : ScalarLoad<op, 0, asm>, SpaceRel<op.Name, "mainmem">;
  let NoPattern = ByEmission in
  def _Scratchpad : ScalarLoad<op, 1, asm#"_scratchpad">, SpaceRel<op.Name, "scratchpad">;
}

multiclass ScalarStores<HwOp op, string asm> {
  def _Mainmem    : ScalarStore<op, 0, asm>, SpaceRel<op.Name, "mainmem">;
  let NoPattern = ByEmission in
  def _Scratchpad : ScalarStore<op, 1, asm#"_scratchpad">, SpaceRel<op.Name, "scratchpad">;
}

// Disabled lanes keep their value, so the old value is an input of the masked form.
multiclass VectorLoad<HwOp op, bit spm, string asm, string space> {
  let mayLoad = true in {
    let NoPattern = "packed elements are loaded unsigned, and emission chooses the memory (getScratchpadOp)" in
    def _U : InstMEM<op, spm, 0, (outs VR512W:$dstsrc), (ins (MEMri $base, $off):$addr),
                     asm#" $dstsrc, $addr">,
             MaskRel<op.Name#space, "unmasked">, SpaceRel<op.Name#"_U", space>;
    let Uses = [MR_REG], Constraints = "$dstsrc = $oldvalue" in
    def _M : InstMEM<op, spm, 1, (outs VR512W:$dstsrc),
                     (ins (MEMri $base, $off):$addr, VR512W:$oldvalue), asm#".m $dstsrc, $addr">,
             MaskRel<op.Name#space, "masked">, SpaceRel<op.Name#"_M", space>;
  }
}

multiclass VectorStore<HwOp op, bit spm, string asm, string space> {
  let NoPattern = ByEmission in
  def _U : VectorStore<op, spm, 0, asm>,
           MaskRel<op.Name#space, "unmasked">, SpaceRel<op.Name#"_U", space>;
  let Uses = [MR_REG] in
  def _M : VectorStore<op, spm, 1, asm#".m">,
           MaskRel<op.Name#space, "masked">, SpaceRel<op.Name#"_M", space>;
}

multiclass VectorLoads<HwOp op, string asm> {
  defm Mainmem    : VectorLoad<op, 0, asm, "mainmem">;
  defm Scratchpad : VectorLoad<op, 1, asm#"_scratchpad", "scratchpad">;
}

multiclass VectorStores<HwOp op, string asm> {
  defm Mainmem    : VectorStore<op, 0, asm, "mainmem">;
  defm Scratchpad : VectorStore<op, 1, asm#"_scratchpad", "scratchpad">;
}

defm L32BS : ScalarLoads<MEM_LOAD32_S8, "load32_s8">;
defm L32SS : ScalarLoads<MEM_LOAD32_S16, "load32_s16">;
defm L32W  : ScalarLoads<MEM_LOAD32, "load32">;
defm L32BU : ScalarLoads<MEM_LOAD32_U8, "load32_u8">;
defm L32SU : ScalarLoads<MEM_LOAD32_U16, "load32_u16">;

defm LV32B  : VectorLoads<MEM_LOAD_V16I8, "load_v16i8">;
defm LV32S  : VectorLoads<MEM_LOAD_V16I16, "load_v16i16">;
defm LV32W  : VectorLoads<MEM_LOAD_V16I32, "load_v16i32">;
defm LV32BU : VectorLoads<MEM_LOAD_V16U8, "load_v16u8">;
defm LV32SU : VectorLoads<MEM_LOAD_V16U16, "load_v16u16">;

defm S32B : ScalarStores<MEM_STORE32_8, "store32_8">;
defm S32S : ScalarStores<MEM_STORE32_16, "store32_16">;
defm S32W : ScalarStores<MEM_STORE32, "store32">;

defm SV32B : VectorStores<MEM_STORE_V16I8, "store_v16i8">;
defm SV32S : VectorStores<MEM_STORE_V16I16, "store_v16i16">;
defm SV32W : VectorStores<MEM_STORE_V16I32, "store_v16i32">;

// Gather and scatter: the assembler supports them, the hardware does not (erratum
// gather_scatter_missing). It takes the numbers of the vector registers for those of scalar
// registers.
let Inputs = (inputs (bv_add (bv_scalar $base), (bv_imm $off)):$address, (bv_scalar $dstsrc):$value),
    Output = (bv_scalar $dstsrc) in {
let mayLoad = true, NoPattern = "does nothing (erratum gather_scatter_missing)" in {
  def GLV32WScratchpad_U : InstMEM<MEM_LOADG_I32, 1, 0, (outs VR512W:$dstsrc),
                                   (ins (V16MEMri $base, $off):$addr),
                                   "loadg32_scratchpad $dstsrc, $addr">,
                           MaskRel<"loadg_i32", "unmasked">;
  let Uses = [MR_REG], Constraints = "$dstsrc = $oldvalue" in
  def GLV32WScratchpad_M : InstMEM<MEM_LOADG_I32, 1, 1, (outs VR512W:$dstsrc),
                                   (ins (V16MEMri $base, $off):$addr, VR512W:$oldvalue),
                                   "loadg32_scratchpad.m $dstsrc, $addr">,
                           MaskRel<"loadg_i32", "masked">;
}
let mayStore = true, NoPattern = "does nothing (erratum gather_scatter_missing)" in {
  def SSV32WScratchpad_U : InstMEM<MEM_STORES_32, 1, 0, (outs),
                                   (ins VR512W:$dstsrc, (V16MEMri $base, $off):$addr),
                                   "stores32_scratchpad $dstsrc, $addr">,
                           MaskRel<"stores_32", "unmasked">;
  let Uses = [MR_REG] in
  def SSV32WScratchpad_M : InstMEM<MEM_STORES_32, 1, 1, (outs),
                                   (ins VR512W:$dstsrc, (V16MEMri $base, $off):$addr),
                                   "stores32_scratchpad.m $dstsrc, $addr">,
                           MaskRel<"stores_32", "masked">;
}
}

//===----------------------------------------------------------------------===//
// Jumps and branches
//===----------------------------------------------------------------------===//

let isBranch = true, isTerminator = true in {
  let isBarrier = true in {
    let NoPattern = "a part of JUMP" in
    def JMP : InstJRA<JRA_JMP, (outs), (ins jmptarget18:$addr), "jmp $addr">;
    // Old tools write the register number into the unused bits as well.
    let isIndirectBranch = true, NoPattern = "a part of BR_TABLE" in
    def JUMPREG : InstJBA<JBA_JMP, (outs), (ins GPR32:$cond), "jmp $cond"> {
      bits<6> cond;
      let Inst{23-18} = cond;
      let Inst{17-0} = 0;
      let DecodeIgnored{17-0} = 0b111111111111111111;
    }
    let isReturn = true, Uses = [RA_REG], NoPattern = "emitted by the calling convention" in
    def JRET : InstJBA<JBA_JRET, (outs), (ins), "jret"> {
      let Inst{23-0} = 0;
    }
  }
  let NoPattern = "a part of BRIF, SELECT and TRAP_IF" in
  def BEQZ : InstJBA<JBA_BEQZ, (outs), (ins GPR32:$cond, brtarget18:$addr),
                     "beqz $cond, $addr"> {
    bits<6> cond;
    bits<18> addr;
    let Inst{23-18} = cond;
    let Inst{17-0} = addr;
  }
  let NoPattern = "a part of BRIF, SELECT and TRAP_IF" in
  def BNEZ : InstJBA<JBA_BNEZ, (outs), (ins GPR32:$cond, brtarget18:$addr),
                     "bnez $cond, $addr"> {
    bits<6> cond;
    bits<18> addr;
    let Inst{23-18} = cond;
    let Inst{17-0} = addr;
  }
}

let isBranch = true, isCall = true, Defs = [RA_REG], NoPattern = "emitted by the calling convention" in {
  def JMPSR_OFF : InstJRA<JRA_JMPSR, (outs), (ins calltarget18:$addr, variable_ops),
                          "jmpsr $addr">;
  // Saves the wrong return address (erratum indirect_call_link).
  def JMPSR_REG : InstJBA<JBA_JMPSR, (outs), (ins GPR32:$dst, variable_ops), "jmpsr $dst"> {
    bits<6> dst;
    let Inst{23-18} = dst;
    let Inst{17-0} = 0;
    let Inputs = (inputs (bv_reg $dst):$a);
    let DecodeIgnored{17-0} = 0b111111111111111111;
  }
}

//===----------------------------------------------------------------------===//
// Control
//===----------------------------------------------------------------------===//

// src0 is the barrier's number, src1 the number of participants minus one.
let NoPattern = "only an intrinsic uses it" in
def BARRIER : InstCTR2<CTR_BARRIER, (outs), (ins GPR32:$src0, GPR32:$src1),
                       "barrier $src0, $src1">;
// Writes the cache line of this address back to memory.
let NoPattern = "only an intrinsic uses it" in
def FLUSH : InstCTR<CTR_FLUSH, (outs), (ins GPR32:$src0), "flush $src0"> {
  let Inst{17-12} = 0;
  let mayStore = true;
}
// Writes the cache line back and invalidates it; the thread waits. The old assembler has no syntax
// for it.
let NoPattern = "only an intrinsic uses it" in
def DCACHE_INV : InstCTR<CTR_DCACHE_INV, (outs), (ins GPR32:$src0), "dcache_inv $src0"> {
  let Inst{17-12} = 0;
  let mayStore = true;
}
// src1 is the number of the control register.
let NoPattern = "only an intrinsic uses it" in
def READCR : InstCTR2<CTR_READ_CR, (outs GPR32:$src0), (ins GPR32:$src1),
                      "read_cr $src0, $src1">;
let NoPattern = "only an intrinsic uses it" in
def WRITECR : InstCTR2<CTR_WRITE_CR, (outs), (ins GPR32:$src0, GPR32:$src1),
                       "write_cr $src0, $src1">;

let NoPattern = "emission inserts it as filler" in
def NOP : NaplesPUInst<FrmNOP, (outs), (ins), "nop"> {
  let Inst = 0xFFFFFFFF;
  let Does = [(do_nothing)];
}
