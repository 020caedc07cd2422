#define HERE
#ifdef HERE
def a;
#else
def never;
#endif
#ifndef THERE // a comment
def b;
#endif
/* */ #ifdef THERE
def never2 { syntax error
#ifdef HERE
#else
#endif
#endif
def c;
