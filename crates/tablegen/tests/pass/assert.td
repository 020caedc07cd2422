assert !eq(1, 1), "top";
class C<int n> { assert !gt(n, 0), "n is " # n; int N = n; assert !lt(N, 10), "N"; }
def x : C<5>; def y : C<5> { let N = 6; }
multiclass M<int n> { assert !ne(n, 3), "three"; def _m : C<n>; } defm d : M<4>;
