// Unknown names, with the closest known name. Every error is reported.
class Register<int n> { int Num = n; }
def R1 : Registre<1>;
def R2 : Register<Nnum>;
def R3 : Register<1> { let Nun = 5; }
def R4 { int x = R5.Num; int y = R1; }
defm M : NoMulti<1>;
def R6 { int v = !ad(1, 2); int w = Register<1>.Numb; }
def R7 : Register<1, 2>;
def R8 : Register;
def R9 : Register<m = 1>;
def R10 { Register r = !cast<Register>("R77"); }
def R11 : Register<1>; def R11 : Register<2>;
