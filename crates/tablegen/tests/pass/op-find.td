class C<string s, int i> { int v = !find(s, "l"); int w = !find(s, "l", i); int e = !find(s, ""); }
def x : C<"hello", 3>; def y : C<"none", 0>;
