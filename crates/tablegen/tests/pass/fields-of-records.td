class B { int m = 5; } class A { int n = 1; B b = ?; }
def b1 : B; def a1 : A { let b = b1; }
class C<A r> { int n = r.n; int m = r.b.m; }
def x : C<a1>; def y { int q = a1.b.m; }
