def a { int x = 1;
def b { list<int> l = [1,
