class C<int a, int n> { list<int> v = !listsplat(a, n); list<string> s = !listsplat("x", n); }
def x : C<7, 3>; def y : C<1, 0>;
