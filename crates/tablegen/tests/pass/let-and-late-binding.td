class A { int X = 1; int Y = !add(X, 1); }
def a : A; def b : A { let X = 10; }
class S<string salutation = "Hi"> { string message = salutation # ", " # who; string who = "you"; }
def s1 : S; def s2 : S<"Hello"> { let who = "world"; }
