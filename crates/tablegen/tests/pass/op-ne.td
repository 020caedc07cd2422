class R; def r : R; def s : R;
class C<int a, string t, R k> { bit v = !ne(a, 3); bit w = !ne(t, "a"); bit x = !ne(k, r); }
def x : C<3, "a", r>; def y : C<4, "b", s>;
