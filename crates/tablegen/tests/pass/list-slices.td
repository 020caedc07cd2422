class C<list<int> l, int i> { int at = l[i]; int first = l[0]; list<int> part = l[1...2]; list<int> pick = l[2, 0]; list<int> single = l[1,]; list<int> by = l[[0, 2]]; list<int> back = l[2-0]; int calc = l[!add(i, 1)]; }
def x : C<[10, 20, 30], 1>;
