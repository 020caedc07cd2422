class A { int n = 1; } class B : A; def a : A; def b : B;
class C<list<int> l> { list<int> v = !listconcat(l, [7]); list<int> n = !listconcat([0], l, l); list<A> r = !listconcat([b], [a]); list<int> e = !listconcat(l, []); }
def x : C<[1, 2]>; def y : C<[]>;
