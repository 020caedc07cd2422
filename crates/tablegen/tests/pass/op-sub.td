class C<int a> { int v = !sub(a, 3); int w = !sub(3, a); }
def x : C<7>; def y : C<-5>;
