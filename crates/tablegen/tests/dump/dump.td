dump "at the top";
class A<int n> { int N = n; dump "record " # NAME # " has " # N; }
def a : A<1>;
def b : A<2> { let N = 5; }
multiclass M<int n> { dump "multiclass " # n; def x : A<n>; }
defm m : M<3>;
foreach i = [1, 2] in dump i;
dump !repr(a);
dump [1, 2];
