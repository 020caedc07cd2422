include "machine.inc"

def NOFIELD : NaplesPUInst<FrmRR, (outs GPR32:$dst), (ins GPR32:$src), "nofield $dst, $src"> {
  bits<6> dst;
  let Inst{31-24} = 0;
  let Inst{23-18} = dst;
  let Inst{17-0} = 0;
}

def UNUSED : NaplesPUInst<FrmRR, (outs GPR32:$dst), (ins GPR32:$src), "unused $dst, $src"> {
  bits<6> dst;
  bits<6> src;
  let Inst{31-24} = 1;
  let Inst{23-18} = dst;
  let Inst{17-0} = 0;
}
