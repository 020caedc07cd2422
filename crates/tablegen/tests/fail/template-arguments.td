class C<int n, string s = "d"> { int N = n; }
def a : C; def b : C<1, "x", 3>; def c : C<"s">; def d : C<n = 1, n = 2>; def e : C<1, t = 2>; def f : C<n = 1, 2>; def g : C<1, n = 2>; def h { C v = C<"bad">; }
