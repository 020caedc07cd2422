include "machine.inc"

// Bit 5 and bits 17-12 are nothing.
def GAP : NaplesPUInst<FrmRR, (outs GPR32:$dst), (ins), "gap $dst"> {
  bits<6> dst;
  let Inst{31-24} = 0;
  let Inst{23-18} = dst;
  let Inst{11-6} = 0;
  let Inst{4-0} = 0;
}
