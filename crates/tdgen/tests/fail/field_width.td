include "machine.inc"

// A 16-bit operand in a field of 9 bits.
def NARROW : NaplesPUInst<FrmRI, (outs GPR32:$dst), (ins imm16:$imm), "narrow $dst, $imm"> {
  bits<6> dst;
  bits<9> imm;
  let Inst{31-24} = 0;
  let Inst{23-18} = dst;
  let Inst{17-9} = 0;
  let Inst{8-0} = imm;
}
