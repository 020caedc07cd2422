class I<int n, string s> { int N = n; string S = s; }
multiclass L1<int a> { def l1 : I<a, NAME>; }
multiclass L2<int a> { defm x : L1<a>; defm y : L1<!add(a, 1)>; let S = "let" in defm z : L1<0>; }
multiclass L3<int a> { defm p : L2<a>; defm NAME # q : L2<!mul(a, 2)>; }
defm T : L3<5>;
