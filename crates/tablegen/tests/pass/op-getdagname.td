def op;
class C<dag d> { string v = !getdagname(d, 0); string w = !getdagname(d, 1); }
def x : C<(op 1:$a, "s":$b)>;
