// Nested dags, named and rebuilt.
def add; def mul; def reg;
class Pattern<dag p> { dag Match = p; int Args = !size(p); dag Swapped = !foreach(x, p, !subst(add, mul, x)); }
def fma : Pattern<(add (mul reg:$a, reg:$b):$product, reg:$c)>;
def joined { dag d = !con((add 1:$x), (add 2:$y, 3), !dag(add, [4, 5], ["p", ?])); }
