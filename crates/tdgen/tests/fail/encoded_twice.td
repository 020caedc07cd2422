include "machine.inc"

def TWICE : NaplesPUInst<FrmRR, (outs GPR32:$dst), (ins), "twice $dst"> {
  bits<6> dst;
  let Inst{31-24} = 0;
  let Inst{23-18} = dst;
  let Inst{17-12} = dst;
  let Inst{11-0} = 0;
}
