// cores: 2
// fault: barrier_without_master
// instruction: barrier s50, s51
// line: tile 8
// Tile 8 has no core.
        .org 0x400
_start:
        movei s50, 256
        movei s51, 1
        barrier s50, s51

        movei   s40, 2
        movei   s41, 11
        write_cr s40, s41
        jmp     .
