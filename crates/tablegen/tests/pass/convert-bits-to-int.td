class C<bits<4> n> { int i = n; int s = !add(n, 1); } def x : C<0b1010>; def y : C<-1>;
