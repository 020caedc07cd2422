class C<int n> { bit b = n; } def x : C<0>; def y : C<1>;
