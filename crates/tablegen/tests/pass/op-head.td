class C<list<int> l> { int v = !head(l); }
def x : C<[1, 2]>; def y { string s = !head(["a"]); }
