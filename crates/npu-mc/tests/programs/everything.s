# A program that uses most of the language.
        .file   "everything.s"
        .text
        .globl  _start
        .type   _start, @function
        .set    LIMIT, 10
        .equ    TWICE, LIMIT * 2        // numbers are numbers
COUNT = (TWICE - 4) / 2
_start:
        .cfi_startproc
        movei   s0, COUNT; MOVEI s1, 0
1:      add_i32 s1, s1, s0              /* a comment
                                           over two lines */
        subi    s0, s0, 1
        bnez    s0, 1b
        beqz    s0, 1f
        nop
1:      leah    s2, table
        leal    s2, table
        lea     s3, counter + 4
        _lea    s4, near
        load32  s5, near
        load32  s6, 4(s2)
        load_v16i32.m v1, (s2)
        store_v16i32_scratchpad v1, -64(s3)
        addi    s7, s7, table_end - table
        jmpsr   helper
        jmp     . + 8
        jmp     done
near:   .long   0x12345678
done:   jmp     done
        .size   _start, . - _start
        .cfi_endproc

        .p2align 3
        .weak   helper
helper:
        move_i32 s0, s1
        jret

        .section .rodata.table, "a", @progbits
        .balign 4
table:
        .long   1, -1, 0xffffffff, helper, table + 4, _start
        .short  1, 'a', -32768
        .2byte  65535
        .byte   0b101, 017, ~0
        .balign 8, 0xcc
        .quad   0x123456789abcdef0
        .ascii  "abc", "\n\t\"\101\x41"
        .asciz  "end"
table_end:
        .fill   3, 2, 0x1234
        .data
        .align  64
vector: .zero   64
        .space  4, 0xff
        .comm   counter, 8, 4
        .local  hidden
        .bss
hidden: .skip   16
        .section scratchpad
scratch: .zero  128
