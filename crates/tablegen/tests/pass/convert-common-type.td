class A { int n = 1; } class B : A; class D : A; class E; def b : B; def d : D; def e : E;
def x { list<A> l = [b, d]; int n = !head([b, d]).n; list<int> m = [1, 0b11]; list<string> s = ["a", [{ b }]]; int k = !if(1, 0b101, 2); }
class C<bit c> { A a = !if(c, b, d); } def y : C<0>;
