//===- NaplesPUOperands.td - operands that are not registers ----------------===//
//
// docs/machine/objects.md. Every range is checked, because the hardware silently keeps the low bits
// of the field.
//
//===----------------------------------------------------------------------===//

def simm9 : SImmOperand<9> {
  let Shape = "i";
  let IsleConst = "simm9_const";
}

// Both the signed and the unsigned reading of 16 bits are accepted; the disassembler prints the
// signed one.
def imm16 : Operand<i32> {
  let FieldBits = 16;
  let SignificantBits = 16;
  let MinValue = -32768;
  let MaxValue = 65535;
  let Shape = "w";
}

// The high and the low half of a symbol's address (relocations R_NPU_ABS_HIGH_LEA,
// R_NPU_ABS_LOW_LEA) or a number.
class AbsHalf : Operand<i32> {
  let IsSymbol = true;
  let FieldBits = 16;
  let SignificantBits = 16;
  let MinValue = -32768;
  let MaxValue = 65535;
  let Shape = "w";
}
def abs_high : AbsHalf;
def abs_low  : AbsHalf;

// Signed distance from the branch itself, in bytes; not scaled.
def brtarget18 : SImmOperand<18> {
  let Shape = "b";
}
// The J format has 24 bits for the distance, of which the hardware reads 18.
class JumpTarget : SImmOperand<18> {
  let FieldBits = 24;
  let Shape = "b";
}
def jmptarget18  : JumpTarget;
def calltarget18 : JumpTarget;

// Signed offset of a memory access, in bytes; not scaled.
def offset9 : SImmOperand<9>;

class MemOperand<dag sub> : Operand<i32> {
  let MIOperandInfo = sub;
  let AsmFormat = "$off($base)";
  let Shape = "m";
}
def MEMri    : MemOperand<(ops GPR32:$base, offset9:$off)>;
// One address per lane. The hardware does not implement it (erratum gather_scatter_missing).
def V16MEMri : MemOperand<(ops VR512W:$base, offset9:$off)> { let Shape = "g"; }
// An address that is computed but not accessed.
def LEAri    : MemOperand<(ops GPR32:$base, offset9:$off)>;
