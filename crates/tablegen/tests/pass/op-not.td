class C<int a> { int v = !not(a); bit b = !not(a); }
def x : C<7>; def y : C<0>;
