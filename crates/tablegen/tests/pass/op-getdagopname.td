def op;
class C<dag d> { string v = !getdagopname(d); }
def x : C<(op:$n 1)>;
