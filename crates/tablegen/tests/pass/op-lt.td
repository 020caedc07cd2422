class C<int a, string t> { bit v = !lt(a, 3); bit w = !lt(t, "b"); }
def x : C<3, "b">; def y : C<-4, "a">;
