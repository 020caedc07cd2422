class A; class B : A; def b : B;
class C<list<bits<4>> l, list<int> i> { list<int> a = l; list<bits<4>> b = i; list<bit> c = [0, 1]; list<list<int>> e = [l, [7]]; }
def x : C<[1, 2], [3, 4]>;
