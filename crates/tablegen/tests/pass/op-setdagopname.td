def op;
class C<dag d, string s> { dag v = !setdagopname(d, s); }
def x : C<(op 1), "n">;
