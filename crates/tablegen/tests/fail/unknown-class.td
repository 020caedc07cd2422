class Register; def a : Registre;
class B : Nope<1>;
def c { Regster r = ?; }
