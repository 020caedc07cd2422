class A { int n = 1; } class B : A { int m = 2; } class D : A;
def b : B; def d : D;
class C<A a> { A r = a; list<A> l = [b, d]; int n = !head([b, d]).n; }
def x : C<b>; def y : C<d>;
