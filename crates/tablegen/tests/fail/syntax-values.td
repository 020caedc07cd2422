def a { int x = (; }
def b { list<int> l = [1, 2; }
def c { int y = !add(1, 2; }
def d { dag g = (op 1:x); }
def e { int z = x{; }
def f { bits<3> w = {1, 0; }
def ok;
