class R<int n> { int N = n; } def r : R<3>;
class C<int a, list<string> l> { string v = !repr(a); string w = !repr(l); }
def x : C<3, ["a", "b"]>; def y { string s = !repr(r); string d = !repr((r 1:$x, ?)); string b = !repr(0b101); }
