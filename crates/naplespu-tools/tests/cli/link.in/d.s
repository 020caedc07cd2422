main:   addi sp, sp, -64
        jmpsr sum
        beqz s0, end
        lea s1, out + 4
end:    jret
        .zero 16
        .long 1
        .data
out:    .long 0, 0
