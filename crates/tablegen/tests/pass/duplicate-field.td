class A { int x = 1; bits<4> b = 2; } class B { int x = 5; }
def ab : A, B; def ba { int x = 7; int x = 8; }
