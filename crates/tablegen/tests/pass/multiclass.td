class I<int n> { int N = n; }
multiclass M<int a, string s = "d"> { def _one : I<a>; def NAME # "two" : I<!add(a, 1)>; def s : I<a>; def : I<99>; }
multiclass Floor<int a> : M<a> { def _top : I<!mul(a, 10)>; }
multiclass Tall<int a> { defm _x : Floor<a>; defm NAME : Floor<!add(a, 50)>; }
defm A : M<1>; defm B : M<2, "e">; defm C : Floor<3>;
