class C<int a> { int b = ?; int v = !and(a, 6); int n = !and(a, 7, 5); int stop = !and(0, b); bit t = !and(!eq(a, 1), 1); }
def x : C<7>; def y : C<-5>;
