def op;
class C<dag d> { dag v = !setdagarg(d, 0, "new"); dag w = !setdagarg(d, "b", 7); }
def x : C<(op 1:$a, "s":$b)>;
