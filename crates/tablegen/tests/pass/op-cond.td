class C<int a> { string v = !cond(!lt(a, 0): "less", !eq(a, 0): "zero", true: "more",); int w = !cond(a: 1, 1: 2); bits<4> b = !cond(a: 0b0101, true: 3); }
def x : C<-1>; def y : C<0>; def z : C<5>;
