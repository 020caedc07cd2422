; cores 2 threads 1 cycles 642
movei s0, 0
 read_cr s1, s0
 movei s0, 2
 read_cr s2, s0
 movei s55, 4
 movei s50, 5
 movei s51, 1
 movei s9, 2
moveil s3, 0
 moveih s3, 2
 shli s4, s1, 16
 add_i32 s3, s3, s4
again:
 barrier s50, s51
 read_cr s4, s55
 store32 s1, (s3)
 read_cr s7, s55
 sub_i32 s10, s7, s4
 store32 s1, 64(s3)
 read_cr s7, s55
 sub_i32 s11, s7, s4
 store32 s1, 128(s3)
 read_cr s7, s55
 sub_i32 s12, s7, s4
 load32 s5, (s3)
 add_i32 s6, s5, s5
 read_cr s7, s55
 sub_i32 s13, s7, s4
 addi s3, s3, 192
 subi s9, s9, 1
 bnez s9, again
movei s40, 2
 movei s41, 11
 write_cr s40, s41
 jmp .
