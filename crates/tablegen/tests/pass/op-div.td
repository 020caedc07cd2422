class C<int a> { int v = !div(a, 3); int w = !div(-7, a); }
def x : C<7>; def y : C<-5>;
