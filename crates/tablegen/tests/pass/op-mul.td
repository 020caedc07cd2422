class C<int a> { int v = !mul(a, 3); int n = !mul(a, a, 2); }
def x : C<7>; def y : C<-5>;
