class A { string n = NAME; string m = "pre_" # NAME; }
class B : A { string o = NAME; }
def x : B; multiclass M { def one : B; def : B; } defm Y : M; def : A;
