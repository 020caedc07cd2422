        addi    s0, s1, 300
        load_v16i32 v0, (v1)
loop:   add_i23 s0, s0, s1
        beqz    S1, loop
        .word   1
        movei   s0, table
