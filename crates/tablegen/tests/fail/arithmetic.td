class C<int n> { int s = !shl(1, n); } def a : C<64>; def b : C<-1>; def c { int d = !div(1, 0); int e = !div(-9223372036854775808, -1); int l = !logtwo(0); }
