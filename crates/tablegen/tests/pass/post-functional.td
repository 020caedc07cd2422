// Classes that return a value fold, filter and concatenate lists.
class Sum<list<int> l> { int ret = !foldl(0, l, a, b, !add(a, b)); }
class Reverse<list<string> l> { list<string> ret = !foldl([]<string>, l, acc, x, !listconcat([x], acc)); }
class Squares<int n> { list<int> ret = !foreach(i, !range(1, !add(n, 1)), !mul(i, i)); }
class Tag<string t> { string text = t; }
class Holder<string t> { Tag tag = Tag<t>; }
def a : Holder<"same">; def b : Holder<"same">;
def out { int sum = Sum<Squares<4>.ret>.ret; list<string> r = Reverse<["x", "y", "z"]>.ret; bit shared = !eq(a.tag, b.tag); }
