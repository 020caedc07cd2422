# stack_switch: suspends the current stack and resumes another one.
#
#   s0    address for the context of the current stack: sp, fp and the resume address, a word each
#   s1    address of the context of the other stack; may be the same
#   s2    a word that the other stack receives in s0
#
# Callee-saved registers are saved on the suspended stack, so three words are enough. The context of
# a new stack is its top, any fp, and the address of a function with one argument.

__npu_stack_switch:
        addi            sp, sp, -192
        store32         s50, 128(sp)
        store32         s51, 132(sp)
        store32         s52, 136(sp)
        store32         s53, 140(sp)
        store32         s54, 144(sp)
        store32         s55, 148(sp)
        store32         s56, 152(sp)
        store32         s57, 156(sp)
        store32         ra, 160(sp)
        store_v16i32    v56, (sp)
        store_v16i32    v57, 64(sp)
        addi            sp, sp, -256
        store_v16i32    v58, (sp)
        store_v16i32    v60, 64(sp)
        store_v16i32    v61, 128(sp)
        store_v16i32    v62, 192(sp)
        load32          s8, (s1)
        load32          s9, 4(s1)
        load32          s10, 8(s1)
        addi            s11, pc, 36             # the instruction after the jump
        store32         sp, (s0)
        store32         fp, 4(s0)
        store32         s11, 8(s0)
        move_i32        s0, s2
        move_i32        sp, s8
        move_i32        fp, s9
        movei           ra, 0                   # the first function of a new stack has no caller
        jmp             s10
        load_v16i32     v58, (sp)
        load_v16i32     v60, 64(sp)
        load_v16i32     v61, 128(sp)
        load_v16i32     v62, 192(sp)
        subi            sp, sp, -256
        load_v16i32     v56, (sp)
        load_v16i32     v57, 64(sp)
        load32          s50, 128(sp)
        load32          s51, 132(sp)
        load32          s52, 136(sp)
        load32          s53, 140(sp)
        load32          s54, 144(sp)
        load32          s55, 148(sp)
        load32          s56, 152(sp)
        load32          s57, 156(sp)
        load32          ra, 160(sp)
        addi            sp, sp, 192
        jret
