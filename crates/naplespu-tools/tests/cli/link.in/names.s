        .globl  _ZN4list6appendEi, plain
_ZN4list6appendEi:
        jmpsr   missing
plain:  jret
