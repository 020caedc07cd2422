// Arithmetic, bitwise and comparison operators, literals and their conversions.
def one_def;
def numbers {
  int a = !add(1, 2, 3);
  int b = !mul(2, 3, -4);
  int c = !sub(1, 5);
  int d = !div(-7, 2);
  int e = !and(0xFF, 0x0F, 0b1010);
  int f = !or(1, 2, 4);
  int g = !xor(7, 2, 1);
  int h = !not(0);
  int i = !logtwo(1000);
  int j = !shl(1, 40);
  int k = !sra(-8, 1);
  int l = !srl(-8, 60);
  int m = 0xFFFFFFFFFFFFFFFF;
  int n = -9223372036854775808;
  int wrap = !add(0x7FFFFFFFFFFFFFFF, 1);
  bits<4> o = 0b0101;
  int p = 0b0101;
  bits<70> q = -1;
  bit r = 1;
  bits<1> s = r;
  bit lt = !lt(1, 2);
  bit le = !le("b", "a");
  bit gt = !gt("b", "a");
  bit ge = !ge(2, 2);
  bit eq = !eq("x", "x");
  bit ne = !ne(one_def, one_def);
  bits<8> t = {0b101, 1, r, ?, o{2-1}};
  bits<4> rev = o{0-3};
  bit one = o{2};
  int u = true;
  int v = false;
  bits<4> w = -8;
}

