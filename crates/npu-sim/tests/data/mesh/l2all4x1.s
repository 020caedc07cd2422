; cores 4 threads 1 cycles 5728
movei s0, 0
 read_cr s1, s0
 movei s0, 2
 read_cr s2, s0
 movei s55, 4
 movei s50, 5
 movei s51, 3
moveil s3, 0
 moveih s3, 16
 or_i32 s8, s3, s3
 cmpeqi s20, s1, 0
 beqz s20, skip14
 bnez s2, w2
 movei s9, 32
w1:
 load32 s5, (s3)
 add_i32 s6, s5, s5
 addi s3, s3, 64
 subi s9, s9, 1
 bnez s9, w1
w2:
skip14:
 barrier s50, s51
 or_i32 s3, s8, s8
 movei s9, 32
again:
 load32 s5, (s3)
 add_i32 s6, s5, s5
 addi s3, s3, 64
 subi s9, s9, 1
 bnez s9, again
movei s40, 2
 movei s41, 11
 write_cr s40, s41
 jmp .
