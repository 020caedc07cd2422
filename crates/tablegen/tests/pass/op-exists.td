class A; class B; def a : A;
class C<string s> { bit v = !exists<A>(s); bit w = !exists<B>(s); }
def x : C<"a">; def y : C<"none">; def z : A { bit self = !exists<A>("z"); }
