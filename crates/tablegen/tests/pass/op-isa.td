class A; class B : A; def a : A; def b : B;
class C<A r, int i> { bit v = !isa<B>(r); bit w = !isa<A>(r); bit x = !isa<int>(i); bit y = !isa<string>(i); }
def x : C<a, 1>; def y : C<b, 1>;
