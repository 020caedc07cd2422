// Values of the wrong type, and values that never become known.
class C { int n; }
class D { int other = 1; }
def c : C { let n = 1; }
class Empty { C none = ?; int late = none.n; }
def e : Empty;
def b { bits<2> x = {"s", 1}; bits<2> y = 1; }
defvar many = {1, 0};
foreach i = {0-many{3}} in def "f" # i;
foreach i = ["a"] in foreach j = {i} in def "g" # j;
defvar pasted = "a" # [1];
defvar pasted_dag = "a" # (c 1);
defvar slice = "text"{0};
defvar element = 5[0];
defvar mixed = [1, "a", c];
class Later<int n> { int number = n; list<int> all = []; }
def later : Later<1> { let append number = 2; }
def "" # !cast<string>(?) : C;
multiclass M { defset list<C> inside = { def "" : C; } }
class Asserted { int open = ?; assert !eq(open, 1), "never known"; }
def asserted : Asserted;
class Named { string name = "missing"; C found = !cast<C>(name); int through = !cast<C>(name).n; }
def named : Named;
defvar getop = !getdagop<D>((c 1));
class Wide { bits<65536> most = 0; bits<65537> more; }
def wide { bits<65536> most = 0; defvar two = {most, most}; }
multiclass Loop<list<int> all> { foreach i = all in def "" # i : C { let n = i; } }
defm open : Loop<?>;
defm broken : Loop<!foreach(x, [1], !cast<int>(c))>;
