class C<string s> { bit v = !match(s, "a+b"); bit w = !match(s, "^[0-9]+$"); bit x = !match(s, "a|c"); }
def x : C<"xaab">; def y : C<"123">; def z : C<"c">;
