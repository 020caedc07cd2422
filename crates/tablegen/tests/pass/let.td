class A { int x = 0; bits<8> b = 0; list<int> l = [1]; }
let x = 1 in { def a : A; let b<7-6> = 0b11, l = [2, 3] in { def b : A; let x = 2 in def c : A; } class D : A { int y = x; } }
let x = 5 in def e : D { let b = 3; }
def f : D;
