// Bits and slices of arguments, bits that remain references; multiclasses of instruction formats.
class X<bits<4> v, bit b = v{0}> { bits<4> V = v; bit B = b; bits<2> S = v{2-1}; bit C = v{3}; list<bits<4>> L = [v, 3]; bits<8> W = {v, b, 0b10, C}; int I = v; string P = "a" # v; }
def x : X<5>; def y : X<{1, 0, 1, 1}>; def z : X<!add(1, 2)>;
class Fmt<bits<6> op> { field bits<32> Inst; field bits<32> SoftFail = 0; bits<6> dst; let Inst{31-26} = op; }
class RR<bits<6> op> : Fmt<op> { bits<6> s0; let Inst{25-20} = dst; let Inst{19-14} = s0; let Inst{13-0} = 0; }
multiclass MM<bits<6> op, dag pat = (x)> { let SoftFail<3-0> = 0b1111 in def _r : RR<op> { dag P = pat; } }
defm I : MM<3, (y x:$a, (z))>; defm J : MM<0b000111>; let s0 = 3 in defm K : MM<9>;
