class C<int a, string t> { bit v = !ge(a, 3); bit w = !ge(t, "b"); }
def x : C<3, "b">; def y : C<-4, "a">;
