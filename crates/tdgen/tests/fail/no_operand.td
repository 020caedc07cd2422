include "machine.inc"

// `src1` is a field, but no operand.
def STRAY : InstRR2<RR_ADD, 0, 0, 0, 0, (outs GPR32:$dst), (ins GPR32:$src0), "stray $dst, $src0">;
