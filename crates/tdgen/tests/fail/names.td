include "machine.inc"

def "odd.name" : InstRR1<RR_CLZ, 0, 0, 0, (outs GPR32:$dst), (ins GPR32:$src0), "odd $dst, $src0">;
def TRAP_DASH : TrapReason<7, "9 lives">;
def RR_MINUS : HwOp<FrmRR, 60, "--", UnitINT, 7>;

def LayoutKeyword : HwLayout<FrmNOP, "Keyword", "", "A field that Rust does not like."> {
  bits<8> type;
  let Inst{31-24} = 0b11111111;
  let Inst{7-0} = type;
}
