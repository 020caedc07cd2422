def op;
class C<dag d> { int v = !getdagarg<int>(d, 0); string w = !getdagarg<string>(d, "b"); int t = !getdagarg<int>(d, 1); }
def x : C<(op 1:$a, "s":$b)>;
// An argument that converts to the type is returned unconverted until a use needs the type; any other argument counts as absent.
class B; class D : B; def d : D; def b : B;
defvar bits_list = [0b1, 0b0];
def converted {
  int i = !getdagarg<int>((op 0b11), 0);
  bits<2> two = !getdagarg<bits<2>>((op 3), 0);
  bit one = !getdagarg<bit>((op 0b1), 0);
  list<int> l = !getdagarg<list<int>>((op bits_list), 0);
  B up = !getdagarg<B>((op d), 0);
  D down = !getdagarg<D>((op b), 0);
  bits<4> wide = !getdagarg<bits<4>>((op 0b11), 0);
  string shown = !repr(!getdagarg<int>((op 0b11), 0));
  int sum = !add(!getdagarg<int>((op 0b11), 0), 1);
}
