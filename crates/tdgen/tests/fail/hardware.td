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

def LayoutWithoutOperations : HwLayout<FrmNOP, "Plain", "PlainOp", "No field for an operation."> {
  bits<6> dst;
  let Inst{31-28} = 0b1111;
  let Inst{5-0} = dst;
}

def LayoutWithoutRegister : HwLayout<FrmNOP, "Bare", "BareOp", "A register that is no field."> {
  bits<3> op;
  let Inst{31-28} = 0b1110;
  let Inst{2-0} = op;
  let RegisterFields = ["dst"];
}
