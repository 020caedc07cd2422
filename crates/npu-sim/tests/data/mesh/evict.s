; cores 2 threads 1 cycles 4123
movei s0, 0
 read_cr s1, s0
 movei s0, 2
 read_cr s2, s0
 movei s55, 4
 movei s50, 5
 movei s51, 1
moveil s3, 0
 moveih s3, 16
 shli s4, s1, 20
 add_i32 s3, s3, s4
 movei s7, 3
outer:
 or_i32 s8, s3, s3
 movei s9, 12
again:
 store32 s1, (s8)
 load32 s5, (s8)
 add_i32 s6, s5, s5
moveil s4, 8192
 moveih s4, 0
 add_i32 s8, s8, s4
 subi s9, s9, 1
 bnez s9, again
 subi s7, s7, 1
 bnez s7, outer
movei s40, 2
 movei s41, 11
 write_cr s40, s41
 jmp .
