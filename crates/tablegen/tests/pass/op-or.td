class C<int a> { int b = ?; int v = !or(a, 6); int n = !or(a, 8, 16); int stop = !or(-1, b); }
def x : C<7>; def y : C<-5>;
