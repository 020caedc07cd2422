class R { int n = 3; } def op : R;
class C<dag d> { R v = !getdagop<R>(d); R w = !cast<R>(!getdagop(d)); int n = !getdagop<R>(d).n; }
def x : C<(op 1)>;
