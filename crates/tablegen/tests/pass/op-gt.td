class C<int a, string t> { bit v = !gt(a, 3); bit w = !gt(t, "b"); }
def x : C<3, "b">; def y : C<4, "c">;
