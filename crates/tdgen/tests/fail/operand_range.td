include "machine.inc"

def bad : Operand<i32> {
  let FieldBits = 9;
  let SignificantBits = 9;
  let MinValue = -256;
  let MaxValue = 512;
}

def WRONG : InstRI<RR_ADD, 0, 0, 0, (outs GPR32:$dst), (ins GPR32:$src, bad:$imm),
                   "wrong $dst, $src, $imm">;
