class C<int a> { int b = 10; int v = !add(a, 1); int n = !add(a, b, 3, 4); bits<8> w = !add(a, 0b11); int wrap = !add(0x7fffffffffffffff, a); }
def x : C<1>; def y : C<-5>; def z : C<2> { let b = 7; }
