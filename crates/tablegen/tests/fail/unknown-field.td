class A { int Size = 1; bits<4> Inst = 0; }
def a : A { let Siz = 2; let Inst{4} = 1; let Inst{1, 1} = 0; let Size{0} = 1; }
def b { int n = a.Sise; }
let Nope = 1 in def c : A;
