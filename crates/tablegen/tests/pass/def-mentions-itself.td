class A { dag d; }
def rec : A { let d = (rec 1); int n = 4; }
def other { A a = rec; }
