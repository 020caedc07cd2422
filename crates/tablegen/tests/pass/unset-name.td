// `?` is no name, so the record is anonymous. In a multiclass, a name that is no string is an error only when it is used.
class A { string N = NAME; }
def ?;
def ? : A { int n = 1; }
foreach i = [1, 2] in def ? : A;
multiclass Unused<int i, A a> {
  def i : A;
  def 5;
  foreach j = [1, 2] in def j;
  def a;
}
multiclass Used { def x : A; }
multiclass UnusedToo { def ?; defm 3 : Used; }
defm ? : Used;
