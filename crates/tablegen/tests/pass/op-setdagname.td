def op;
class C<dag d> { dag v = !setdagname(d, 0, "q"); dag w = !setdagname(d, "b", "z"); }
def x : C<(op 1:$a, "s":$b)>;
