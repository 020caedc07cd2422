def op;
class C<list<int> l, list<string> n> { dag v = !dag(op, l, n); dag w = !dag(op, l, ?); dag x = !dag(op, ?, n); dag y = !dag(op, [1, ?], ["a", ?]); }
def x : C<[1, 2], ["a", "b"]>; def y : C<[], []>;
