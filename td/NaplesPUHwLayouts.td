//===- NaplesPUHwLayouts.td - how the hardware splits a word ----------------===//
//
// docs/machine/formats.md. The instruction records define what a word means to the assembler. These
// records define which fields the hardware reads from it, whatever their values. The hardware
// ignores the bits that are unset here.
//
//===----------------------------------------------------------------------===//

class HwLayout<InstFormat fmt, string name, string opName, string summary> {
  InstFormat Format = fmt;
  string Name = name;
  // The Rust type of the operations. If an earlier layout has the same type, the operations are the
  // same, as far as their numbers fit.
  string OpName = opName;
  string Summary = summary;
  field bits<32> Inst;
  // Fields that hold signed numbers.
  list<string> SignedFields = [];
  // Fields that hold register numbers. The bit `X_v` is set if field `X` names a vector register; a
  // field without such a bit names a scalar.
  list<string> RegisterFields = [];
}

def LayoutRR : HwLayout<FrmRR, "Rr", "AluOp", "Register-register operation."> {
  bits<6> op;
  bits<6> dst;
  bits<6> src0;
  bits<6> src1;
  bits<1> long;
  bits<1> dst_v;
  bits<1> src0_v;
  bits<1> src1_v;
  bits<1> m;
  let Inst{31-30} = 0b00;
  let Inst{29-24} = op;
  let Inst{23-18} = dst;
  let Inst{17-12} = src0;
  let Inst{11-6} = src1;
  let Inst{4} = long;
  let Inst{3} = dst_v;
  let Inst{2} = src0_v;
  let Inst{1} = src1_v;
  let Inst{0} = m;
  let RegisterFields = ["dst", "src0", "src1"];
}

def LayoutRI : HwLayout<FrmRI, "Ri", "AluOp", "Register-immediate operation."> {
  bits<5> op;
  bits<6> dst;
  bits<6> src0;
  bits<9> imm;
  bits<1> dst_v;
  bits<1> src0_v;
  bits<1> m;
  let Inst{31-29} = 0b010;
  let Inst{28-24} = op;
  let Inst{23-18} = dst;
  let Inst{17-12} = src0;
  let Inst{11-3} = imm;
  let Inst{2} = dst_v;
  let Inst{1} = src0_v;
  let Inst{0} = m;
  let SignedFields = ["imm"];
  let RegisterFields = ["dst", "src0"];
}

def LayoutMVI : HwLayout<FrmMVI, "Mvi", "MviOp", "Move of a 16-bit immediate."> {
  bits<3> op;
  bits<6> dst;
  bits<16> imm;
  bits<1> dst_v;
  bits<1> m;
  let Inst{31-27} = 0b01100;
  let Inst{26-24} = op;
  let Inst{23-18} = dst;
  let Inst{17-2} = imm;
  let Inst{1} = dst_v;
  let Inst{0} = m;
  let RegisterFields = ["dst"];
}

// The register file of `reg` depends on the operation.
def LayoutMEM : HwLayout<FrmMEM, "Mem", "MemOp", "Load or store."> {
  bits<6> op;
  bits<6> reg;
  bits<6> base;
  bits<9> offset;
  bits<1> long;
  bits<1> shared;
  bits<1> m;
  let Inst{31-30} = 0b10;
  let Inst{29-24} = op;
  let Inst{23-18} = reg;
  let Inst{17-12} = base;
  let Inst{11-3} = offset;
  let Inst{2} = long;
  let Inst{1} = shared;
  let Inst{0} = m;
  let SignedFields = ["offset"];
  let RegisterFields = ["base"];
}

def LayoutCTR : HwLayout<FrmCTR, "Ctr", "CtrOp", "Control operation."> {
  bits<3> op;
  bits<6> reg0;
  bits<6> reg1;
  let Inst{31-27} = 0b01101;
  let Inst{26-24} = op;
  let Inst{23-18} = reg0;
  let Inst{17-12} = reg1;
  let RegisterFields = ["reg0", "reg1"];
}

def LayoutJBA : HwLayout<FrmJBA, "Jba", "JbaOp", "Jump through a register, or conditional branch."> {
  bits<3> op;
  bits<6> reg;
  bits<18> offset;
  let Inst{31-27} = 0b01110;
  let Inst{26-24} = op;
  let Inst{23-18} = reg;
  let Inst{17-0} = offset;
  let SignedFields = ["offset"];
  let RegisterFields = ["reg"];
}

def LayoutJRA : HwLayout<FrmJRA, "Jra", "JraOp", "Jump relative to the program counter."> {
  bits<3> op;
  bits<18> offset;
  let Inst{31-27} = 0b01111;
  let Inst{26-24} = op;
  let Inst{17-0} = offset;
  let SignedFields = ["offset"];
}
