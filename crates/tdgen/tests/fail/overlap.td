include "machine.inc"

def NARROW : InstRR1<RR_CLZ, 0, 0, 0, (outs GPR32:$dst), (ins GPR32:$src0), "narrow $dst, $src0">;
// The same opcode with another source where NARROW has zeros.
def WIDE : InstRR2<RR_CLZ, 0, 0, 0, 0, (outs GPR32:$dst), (ins GPR32:$src0, GPR32:$src1),
                   "wide $dst, $src0, $src1">;
