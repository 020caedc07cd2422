// A number that needs all 64 bits is the signed number with the same bits.
def A {
  int Most = 18446744073709551615;
  int Half = 9223372036854775808;
  int Plus = +5;
  int Least = -9223372036854775808;
  int Hex = 0xFFFFFFFFFFFFFFFF;
}
