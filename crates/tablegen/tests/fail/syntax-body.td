def a { int x = 1 int y = 2; }
def b { let x 1; }
def c { 5; }
def d { defvar = 3; }
def e { assert 1 "m"; }
def ok { int fine = 1; }
