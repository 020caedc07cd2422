class I<int n> { int N = n; } class Tag { bit tagged = 1; int N2 = 0; }
multiclass M<int a> { def _a : I<a>; def _b : I<!add(a, 1)>; }
multiclass N<int a> { def _c : I<a>; }
defm X : M<1>, N<5>, Tag; defm : M<7>; defm "" : N<8>;
let N = 3 in defm Y : M<1>;
foreach i = [1, 2] in defm Z # i : M<i>;
