class C<list<int> l, list<string> s, list<bit> b> { string v = !interleave(l, ", "); string w = !interleave(s, "-"); string x = !interleave(b, ""); }
def x : C<[1, -2, 3], ["a", "b"], [1, 0, 1]>; def y : C<[], ["one"], []>;
def z { list<bits<3>> l = [1, 2]; string s = !interleave(l, ":"); }
