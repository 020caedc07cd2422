class C<int a, string t> { bit v = !le(a, 3); bit w = !le(t, "b"); }
def x : C<3, "b">; def y : C<4, "c">;
