include "machine.inc"

def TYPO : InstRR1<RR_CLZ, 0, 0, 0, (outs GPR32:$dst), (ins GPR32:$src0), "typo $dst, $src">;
