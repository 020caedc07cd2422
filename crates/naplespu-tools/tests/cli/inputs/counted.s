# The loop of docs/timing.md and of its picture; counted.hex is what `clif-util asm` makes of it.
        .text
        .globl _start
_start: movei s0, 5
        movei s1, 7
loop:   mull_i32 s3, s0, s1
        fadd_f32 s4, s0, s1
        add_i32 s5, s3, s0
        fadd_f32 s6, s4, s0
        add_i32 s8, s5, s0
        subi s0, s0, 1
        bnez s0, loop
        movei s7, 2
        movei s8, 11
        write_cr s7, s8
        jmp .
