class Op { bit flag = ?; bits<3> Operand; bits<8> Encoding; let Encoding{7-4} = 0b1010; let Encoding{3-1} = Operand; let Encoding{0} = flag; }
def x : Op; def y : Op { let Operand = 5; } def z : Op { let flag = 1; let Operand{1} = 0; }
