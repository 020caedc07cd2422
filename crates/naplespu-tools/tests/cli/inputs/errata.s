# Code that meets errata of the hardware.
f:      fadd_f32        s2, s3, s5
        nop
        bnez            s9, target
        load32          s2, (s6)
        bnez            s2, target
        ftoi_i32        s2, s3
        movei           tr, 0
        jmp             target
target: addi            s4, s2, 0
        jmpsr           tr
        jmpsr           s7
        moveih          rm, 1
        addi            s0, s0, 1
        moveih          rm, 1
        moveil          rm, 1
        add_i32         v59, v1, v2
        add_i32         v63, v1, v2
        load_v16i8      v1, (s0)
        store_v16i32.m  v1, (s0)
        shli            s1, s1, 40
        jret
