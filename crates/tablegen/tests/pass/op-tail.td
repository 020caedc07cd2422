class C<list<int> l> { list<int> v = !tail(l); }
def x : C<[1, 2, 3]>; def y : C<[1]>;
