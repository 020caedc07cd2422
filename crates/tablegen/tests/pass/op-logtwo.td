class C<int a> { int v = !logtwo(a); }
def x : C<7>; def y : C<1024>; def z : C<1>;
