class C<int a> { int v = !xor(a, 6); int n = !xor(a, 8, 16); }
def x : C<7>; def y : C<-5>;
