class A { int x = 1; }
def a : A { let x = x; }
def b { int p = q; int q = p; }
