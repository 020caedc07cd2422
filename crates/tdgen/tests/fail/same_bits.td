include "machine.inc"

def FIRST : InstRR1<RR_CLZ, 0, 0, 0, (outs GPR32:$dst), (ins GPR32:$src0), "first $dst, $src0">;
def SECOND : InstRR1<RR_CLZ, 0, 0, 0, (outs GPR32:$dst), (ins GPR32:$src0), "second $dst, $src0">;
