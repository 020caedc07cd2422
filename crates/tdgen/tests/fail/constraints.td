include "machine.inc"

class Tied<HwOp op, string constraint>
    : InstRR1<op, 1, 1, 1, (outs VR512W:$dst), (ins VR512W:$src0, VR512W:$old), "t $dst, $src0"> {
  let Constraints = constraint;
}

def UNKNOWN : Tied<RR_CLZ, "$dst = $older">;
def INPUTS : Tied<RR_CTZ, "$src0 = $old">;
def NOTIED : Tied<RR_SEXT8, "">;
def CLASSES : InstRR1<RR_SEXT16, 1, 1, 1, (outs VR512W:$dst), (ins VR512W:$src0, GPR32:$old),
                      "t $dst, $src0"> {
  let Constraints = "$dst = $old";
}
