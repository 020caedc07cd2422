class C<int n> { bits<4> b = n; } def x : C<15>; def y : C<-8>; def z : C<0>; def wide { bits<70> b = -1; bits<65> c = 3; }
