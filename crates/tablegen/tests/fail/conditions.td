class C<int n> { int v = !cond(!eq(n, 1): 5); } def a : C<2>;
assert !eq(1, 2), "never";
class D<int n> { assert !lt(n, 3), "n is " # n; } def b : D<5>;
def c { int k = !if(1, 2, "s"); }
