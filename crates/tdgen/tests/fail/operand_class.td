include "machine.inc"

def NOCLASS : InstRR1<RR_CLZ, 0, 0, 0, (outs GPR32:$dst), (ins RR_CLZ:$src0), "noclass $dst, $src0">;
