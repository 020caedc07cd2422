class R; def r : R;
class C<list<int> l, string s, dag d> { int v = !size(l); int w = !size(s); int x = !size(d); }
def x : C<[1, 2], "abc", (r 1, 2, 3)>; def y : C<[], "", (r)>;
