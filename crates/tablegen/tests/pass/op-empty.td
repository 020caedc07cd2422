class R; def r : R;
class C<list<int> l, string s, dag d> { bit v = !empty(l); bit w = !empty(s); bit x = !empty(d); }
def x : C<[1, 2], "abc", (r 1, 2, 3)>; def y : C<[], "", (r)>;
