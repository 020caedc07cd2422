include "machine.inc"

// The fault of the class is reported once, not for every use.
def TYPO : MemOperand<(ops GPR32:$base, offset9:$off)> { let AsmFormat = "$ofs($base)"; }
def ONE : InstMEM<MEM_LOAD32, 0, 0, (outs GPR32:$dstsrc), (ins (TYPO $base, $off):$addr), "one $dstsrc, $addr">;
def TWO : InstMEM<MEM_LOAD32_U8, 0, 0, (outs GPR32:$dstsrc), (ins (TYPO $base, $off):$addr), "two $dstsrc, $addr">;

def SHORT : InstMEM<MEM_LOAD32_S8, 0, 0, (outs GPR32:$dstsrc), (ins (MEMri $base):$addr), "short $dstsrc, $addr">;
