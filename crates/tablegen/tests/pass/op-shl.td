class C<int a> { int v = !shl(a, 3); int w = !shl(1, a); }
def x : C<7>; def y : C<63>; def z : C<0>;
