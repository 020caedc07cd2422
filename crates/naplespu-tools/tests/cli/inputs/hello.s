# Writes a greeting to the console, then ends.
        .set    CONSOLE, 0xff000000
        .org    0x400
        .globl  _start
_start: leah    s0, text
        leal    s0, text
next:   load32_u8 s2, (s0)
        beqz    s2, done
        moveih  s3, CONSOLE >> 16
        moveil  s3, CONSOLE & 0xffff
        store32 s2, (s3)
        addi    s0, s0, 1
        jmp     next
done:   movei   s50, 2                  # status: ended
        movei   s51, 11
        write_cr s50, s51
        jmp     .
text:   .asciz  "Hi\n"
