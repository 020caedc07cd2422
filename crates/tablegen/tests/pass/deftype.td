deftype byte = bits<8>; deftype Names = list<string>;
class C<byte b> { byte v = b; Names n = ["x"]; list<byte> l = [1, 2]; }
def x : C<5>;
