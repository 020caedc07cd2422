include "machine.inc"

def RR_ADD_AGAIN : HwOp<FrmRR, 4, "plus", UnitINT, 7>;
def RR_SAME_NAME : HwOp<FrmRR, 60, "add", UnitINT, 7>;
def MVI_BIG : HwOp<FrmMVI, 8, "big", UnitINT, 7>;
def NOP_OP : HwOp<FrmNOP, 0, "nop", UnitNone, 0>;
def SLOW : HwOp<FrmRR, 61, "slow", UnitINT, 256>;

def LayoutTorn : HwLayout<FrmNOP, "Torn", "", "A field in two runs."> {
  bits<8> op;
  let Inst{31-28} = op{3-0};
  let Inst{3-0} = op{7-4};
}
