class C<list<int> l> { int sum = !foldl(0, l, acc, i, !add(acc, i)); string s = !foldl("", l, acc, i, acc # i # ","); list<int> rev = !foldl([]<int>, l, acc, i, !listconcat([i], acc)); }
def x : C<[1, 2, 3, 4]>; def y : C<[]>;
