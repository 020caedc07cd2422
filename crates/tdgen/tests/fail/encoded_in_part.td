include "machine.inc"

def PART : NaplesPUInst<FrmRI, (outs GPR32:$dst), (ins simm9:$imm), "part $dst, $imm"> {
  bits<6> dst;
  bits<9> imm;
  let Inst{31-24} = 0;
  let Inst{23-18} = dst;
  let Inst{17-8} = 0;
  let Inst{7-0} = imm{7-0};
}
