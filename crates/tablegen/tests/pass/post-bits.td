// Bits of an operand in an encoding: references to unset bits remain references.
class Op<bits<4> opcode> { bits<3> Operand; bits<8> Encoding; let Encoding{7-4} = opcode; let Encoding{3-1} = Operand; let Encoding{0} = 0; }
def inc : Op<0b0001>; def dec : Op<0b0010> { let Operand = 0b111; }
class Shifted<int v> { bits<8> high = !srl(v, 8); bits<8> low = !and(v, 0xff); bits<16> swapped = {low, high}; }
def s : Shifted<0x1234>;
