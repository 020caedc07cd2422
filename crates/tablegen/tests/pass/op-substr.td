class C<string s, int i> { string v = !substr(s, i); string w = !substr(s, i, 2); }
def x : C<"hello", 1>; def y : C<"hello", 5>; def z : C<"hi", 0>;
