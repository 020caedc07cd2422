class C<list<int> l> { list<int> v = !listremove(l, [1, 9]); }
def x : C<[1, 2, 1, 3]>; def y : C<[]>;
