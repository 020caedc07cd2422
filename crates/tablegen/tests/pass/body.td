class P { int a = 1; bits<8> b = 0; string s = "x"; }
def x : P { string s2 = "late"; let a = 5; let b{7-4} = 0b1010; let b{0} = 1; let s = s2; int c = a; defvar v = !add(a, 1); int d = v; int a = 9; }
def y : P { let b{1, 3, 5...7} = 0b10110; }
