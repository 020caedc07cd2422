        .globl main
main:   addi sp, sp, -64
        store32 ra, 60(sp)
        movei s0, 100
        movei s1, 7
        jmpsr sum
        lea s1, out
        store32 s0, (s1)
        flush s1
        load32 ra, 60(sp)
        addi sp, sp, 64
        jret
        .data
out:    .long 0
