include "machine.inc"

def SILENT : InstRR1<RR_CLZ, 0, 0, 0, (outs GPR32:$dst), (ins GPR32:$src0), "silent $dst">;
def NAMELESS : InstRR1<RR_CTZ, 0, 0, 0, (outs GPR32:$dst), (ins GPR32:$src0), "$dst, $src0">;
