def op;
class C<dag d> { int v = !getdagarg<int>(d, 0); string w = !getdagarg<string>(d, "b"); int t = !getdagarg<int>(d, 1); }
def x : C<(op 1:$a, "s":$b)>;
