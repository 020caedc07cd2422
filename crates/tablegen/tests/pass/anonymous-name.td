// `NAME` of a class remains a variable in a class value, which has no name.
class Type<int size> {
  string Id = NAME;
  int Size = size;
}
class Sub<int size> : Type<size> {
  string Sub = NAME # "_sub";
}
def i32 : Type<32>;
def i64 : Sub<64>;
class Use<Type ty> {
  Type Ty = ty;
  int Size = ty.Size;
}
def A : Use<Type<8>>;
def B : Use<Sub<16>>;
def C : Use<i64>;
