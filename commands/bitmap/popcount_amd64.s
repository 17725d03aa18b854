#include "textflag.h"

// func popcount(b []byte) int
//
// popcount is how many bits of b are set, whose length is a multiple of 64. The processor has POPCNT.
TEXT ·popcount(SB), NOSPLIT, $0-32
	MOVQ b_base+0(FP), SI
	MOVQ b_len+8(FP), CX
	XORQ R8, R8
	XORQ R9, R9
	XORQ R10, R10
	XORQ R11, R11
	SHRQ $6, CX
	JZ   done

loop:
	// The result goes to a register of its own that is cleared first: some processors wait for what POPCNT writes over.
	XORL    AX, AX
	XORL    BX, BX
	XORL    DX, DX
	XORL    DI, DI
	POPCNTQ (SI), AX
	POPCNTQ 8(SI), BX
	POPCNTQ 16(SI), DX
	POPCNTQ 24(SI), DI
	ADDQ    AX, R8
	ADDQ    BX, R9
	ADDQ    DX, R10
	ADDQ    DI, R11
	XORL    AX, AX
	XORL    BX, BX
	XORL    DX, DX
	XORL    DI, DI
	POPCNTQ 32(SI), AX
	POPCNTQ 40(SI), BX
	POPCNTQ 48(SI), DX
	POPCNTQ 56(SI), DI
	ADDQ    AX, R8
	ADDQ    BX, R9
	ADDQ    DX, R10
	ADDQ    DI, R11
	ADDQ    $64, SI
	DECQ    CX
	JNZ     loop

done:
	ADDQ R9, R8
	ADDQ R11, R10
	ADDQ R10, R8
	MOVQ R8, ret+24(FP)
	RET
