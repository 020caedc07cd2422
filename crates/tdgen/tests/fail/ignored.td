include "machine.inc"

def DEAF : InstRR1<RR_CLZ, 0, 0, 0, (outs GPR32:$dst), (ins GPR32:$src0), "deaf $dst, $src0"> {
  let DecodeIgnored{13-11} = 0b111;
}
