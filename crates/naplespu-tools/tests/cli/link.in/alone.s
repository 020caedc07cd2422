        .globl main
main:   movei s0, 200
        jmp limited
