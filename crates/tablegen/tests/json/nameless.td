// A record without a name precedes the others.
class A;
def "" : A;
def B : A;
