; cores 2 threads 1 cycles 1152
movei s0, 0
 read_cr s1, s0
 movei s0, 2
 read_cr s2, s0
 movei s55, 4
 movei s50, 5
 movei s51, 1
moveil s3, 0
 moveih s3, 2
 movei s9, 4
again:
 barrier s50, s51
 load32 s5, (s3)
 add_i32 s6, s5, s5
 barrier s50, s51
 cmpeqi s20, s1, 0
 beqz s20, skip9
 store32 s1, (s3)
 load32 s5, (s3)
 add_i32 s6, s5, s5
skip9:
 barrier s50, s51
 addi s3, s3, 64
 subi s9, s9, 1
 bnez s9, again
movei s40, 2
 movei s41, 11
 write_cr s40, s41
 jmp .
