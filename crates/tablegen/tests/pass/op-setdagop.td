def op; def q;
class C<dag d> { dag v = !setdagop(d, q); }
def x : C<(op 1:$a, 2)>;
