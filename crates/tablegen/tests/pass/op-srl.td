class C<int a> { int v = !srl(a, 1); }
def x : C<7>; def y : C<-5>;
