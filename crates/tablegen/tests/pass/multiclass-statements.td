class I<int n> { int N = n; }
multiclass M<int a, list<int> l> { defvar twice = !mul(a, 2); foreach i = l in def _#i : I<!add(i, twice)>; if !gt(a, 1) then { def big : I<a>; } else def small : I<a>; let N = 77 in def let_ : I<0>; assert !gt(a, 0), "positive"; }
defm A : M<1, [4, 5]>; defm B : M<2, []>;
