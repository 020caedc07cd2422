#else
#endif
#ifdef A
#else
#else
#endif
#define
#define X extra
#ifdef 1
#endif
#ifdef OPEN
