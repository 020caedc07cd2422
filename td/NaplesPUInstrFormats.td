//===- NaplesPUInstrFormats.td - layout of the instruction word -------------===//
//
// docs/machine/formats.md. Bit 31 is the most significant bit of the word.
//
//===----------------------------------------------------------------------===//

class NaplesPUInst<InstFormat fmt, dag outs, dag ins, string asm> : Instruction {
  field bits<32> Inst;
  // Bits that the decoder accepts with any value; the encoder writes those of Inst.
  bits<32> DecodeIgnored = 0;

  let OutOperandList = outs;
  let InOperandList = ins;
  let AsmString = asm;

  InstFormat Format = fmt;
  HwOp Op = ?;
  HwUnit Unit = UnitNone;
  // Cycles from the issue of this instruction to the issue of one that uses its result; 0 without a
  // result.
  int Latency = 0;
  // The assembler's `.m` form: operates only on the lanes enabled in rm.
  bit isMasked = false;
  let NoPattern = !if(isMasked, "no pattern needs it under a mask", "");
  bit isScratchpad = false;
  // Semantics: the statements of the operation, the values that these name, and the register of the
  // result.
  list<dag> Does = ?;
  list<dag> DoesAt63 = [];
  dag Inputs = (inputs);
  dag Output = ?;
}

class NaplesPUOp<InstFormat fmt, HwOp op, dag outs, dag ins, string asm>
    : NaplesPUInst<fmt, outs, ins, asm> {
  let Op = op;
  let Unit = op.Unit;
  let Latency = op.Latency;
  let Does = op.Does;
}

// R: 00 | opcode 6 | rd 6 | rs0 6 | rs1 6 | 0 | L | FD | F0 | F1 | m.
// L marks the 64-bit form; FD, F0 and F1 mark vector registers; m marks the masked form.
class InstRR<HwOp op, bit fd, bit f0, bit f1, bit m, dag outs, dag ins, string asm>
    : NaplesPUOp<FrmRR, op, outs, ins, asm> {
  let Inst{31-30} = 0b00;
  let Inst{29-24} = op.Code;
  let Inst{5} = 0;
  let Inst{4} = 0; // 64-bit forms do not exist
  let Inst{3} = fd;
  let Inst{2} = f0;
  let Inst{1} = f1;
  let Inst{0} = m;
  let isMasked = m;
  let DoesAt63 = op.DoesAt63;
  let Output = (bv_reg $dst);
}

class InstRR2<HwOp op, bit fd, bit f0, bit f1, bit m, dag outs, dag ins, string asm>
    : InstRR<op, fd, f0, f1, m, outs, ins, asm> {
  bits<6> dst;
  bits<6> src0;
  bits<6> src1;
  let Inst{23-18} = dst;
  let Inst{17-12} = src0;
  let Inst{11-6} = src1;
  let Inputs = (inputs (bv_reg $src0):$a, (bv_reg $src1):$b);
}

class InstRR1<HwOp op, bit fd, bit f0, bit m, dag outs, dag ins, string asm>
    : InstRR<op, fd, f0, 0, m, outs, ins, asm> {
  bits<6> dst;
  bits<6> src0;
  let Inst{23-18} = dst;
  let Inst{17-12} = src0;
  let Inst{11-6} = 0;
  let Inputs = (inputs (bv_reg $src0):$a);
}

// I: 010 | opcode 5 | rd 6 | rs 6 | imm 9 | FD | F0 | m. The opcode is the low part of the R
// opcode, so only R opcodes below 32 have this form.
class InstRIBase<HwOp op, bit fd, bit f0, bit m, dag outs, dag ins, string asm>
    : NaplesPUOp<FrmRI, op, outs, ins, asm> {
  assert !eq(op.Code{5}, 0), "the number of this operation does not fit the I format, which has numbers 0 to 31";
  let Inst{31-29} = 0b010;
  let Inst{28-24} = op.Code{4-0};
  let Inst{2} = fd;
  let Inst{1} = f0;
  let Inst{0} = m;
  let isMasked = m;
  let Output = (bv_reg $dst);
}

class InstRI<HwOp op, bit fd, bit f0, bit m, dag outs, dag ins, string asm>
    : InstRIBase<op, fd, f0, m, outs, ins, asm> {
  bits<6> dst;
  bits<6> src;
  bits<9> imm;
  let Inst{23-18} = dst;
  let Inst{17-12} = src;
  let Inst{11-3} = imm;
  let Inputs = (inputs (bv_reg $src):$a, (bv_imm $imm):$b);
}

// MOVEI: 01100 | opcode 3 | rd 6 | imm 16 | FD | m.
class InstMVI<HwOp op, bit fd, bit m, dag outs, dag ins, string asm>
    : NaplesPUOp<FrmMVI, op, outs, ins, asm> {
  assert !eq(op.Code{5-3}, 0), "the number of this operation does not fit the MVI format, which has numbers 0 to 7";
  bits<6> dst;
  let Inst{31-27} = 0b01100;
  let Inst{26-24} = op.Code{2-0};
  let Inst{23-18} = dst;
  let Inst{1} = fd;
  let Inst{0} = m;
  let isMasked = m;
  let Output = (bv_reg $dst);
}

// M: 10 | opcode 6 | r 6 | base 6 | off 9 | L | S | m. The opcode determines whether the access is
// scalar or vector; no other bit does.
class InstMEM<HwOp op, bit scratchpad, bit m, dag outs, dag ins, string asm>
    : NaplesPUOp<FrmMEM, op, outs, ins, asm> {
  bits<6> dstsrc;
  bits<6> base;
  bits<9> off;
  let Inst{31-30} = 0b10;
  let Inst{29-24} = op.Code;
  let Inst{23-18} = dstsrc;
  let Inst{17-12} = base;
  let Inst{11-3} = off;
  let Inst{2} = 0; // 64-bit forms do not exist
  let Inst{1} = scratchpad;
  let Inst{0} = m;
  let isMasked = m;
  let isScratchpad = scratchpad;
  let Unit = !if(scratchpad, UnitSPM, op.Unit);
  let Latency = !if(scratchpad, op.ScratchpadLatency, op.Latency);
  let Does = !if(scratchpad, op.DoesInScratchpad, op.Does);
  let Inputs = (inputs (bv_add (bv_reg $base), (bv_imm $off)):$address, (bv_reg $dstsrc):$value);
  let Output = (bv_reg $dstsrc);
}

// J: 01111 | opcode 3 | off 24. The hardware reads only bits 17:0.
class InstJRA<HwOp op, dag outs, dag ins, string asm> : NaplesPUOp<FrmJRA, op, outs, ins, asm> {
  bits<24> addr;
  let Inst{31-27} = 0b01111;
  let Inst{26-24} = op.Code{2-0};
  let Inst{23-0} = addr;
  let DecodeIgnored{23-18} = 0b111111;
  let Inputs = (inputs (bv_add (bv_pc), (bv_imm $addr)):$target);
  let Output = (bv_register RA_REG);
}

// JR: 01110 | opcode 3 | r 6 | off 18.
class InstJBA<HwOp op, dag outs, dag ins, string asm> : NaplesPUOp<FrmJBA, op, outs, ins, asm> {
  let Inst{31-27} = 0b01110;
  let Inst{26-24} = op.Code{2-0};
  let Inputs = (inputs (bv_reg $cond):$a, (bv_add (bv_pc), (bv_imm $addr)):$target);
  let Output = (bv_register RA_REG);
}

// C: 01101 | opcode 3 | ra 6 | rb 6 | 0.
class InstCTR<HwOp op, dag outs, dag ins, string asm> : NaplesPUOp<FrmCTR, op, outs, ins, asm> {
  bits<6> src0;
  let Inst{31-27} = 0b01101;
  let Inst{26-24} = op.Code{2-0};
  let Inst{23-18} = src0;
  let Inst{11-0} = 0;
  let hasSideEffects = true;
  let Inputs = (inputs (bv_reg $src0):$a, (bv_reg $src1):$b);
  let Output = (bv_reg $src0);
}

class InstCTR2<HwOp op, dag outs, dag ins, string asm> : InstCTR<op, outs, ins, asm> {
  bits<6> src1;
  let Inst{17-12} = src1;
}
