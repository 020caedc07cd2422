// A record without a name comes first.
class A;
def "" : A;
def B : A;
