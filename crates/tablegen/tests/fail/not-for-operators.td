// Programs that recent, stricter releases of llvm-tblgen reject.
def A { string c = !cast<code>("x"); }
def B { bit c = !isa<code>("x"); }
def C { string o = !getop((A 1)); }
def D { dag d = ("op" 1); }
def E { dag d = (!if(1, A, B) 1); }
def F { string s = !getdagop<string>((A 1)); }
def G { dag d = !setdagop((A 1), ?); }
