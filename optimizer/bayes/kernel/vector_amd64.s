#include "textflag.h"

// A row of pairs is worked on in blocks of 16 points, whose sums are Y0…Y3, then
// of 4. DI is at the results, SI at the point x, DX at the first point of the
// block, both in their first column; AX and BX go through the columns. R8 and R9
// are the strides in bytes, CX counts the points left, R10 and R11 are the numbers
// of numeric and categorical columns, and Y15 is the factor.
#define NEXTCOLUMN \
	ADDQ R8, AX; \
	ADDQ R9, BX; \
	DECQ R13

#define CLEAR4 \
	VXORPD Y0, Y0, Y0; \
	VXORPD Y1, Y1, Y1; \
	VXORPD Y2, Y2, Y2; \
	VXORPD Y3, Y3, Y3

#define COLUMNS \
	MOVQ SI, AX; \
	MOVQ DX, BX

// func distancesAVX2(dst *float64, n int, x *float64, xStride int, y *float64, yStride, numeric int, weights []float64, factor float64)
//
// Y14 is x's value, Y13 a category's weight, R12 is at the weights.
TEXT ·distancesAVX2(SB), NOSPLIT, $0-88
	MOVQ dst+0(FP), DI
	MOVQ n+8(FP), CX
	MOVQ x+16(FP), SI
	MOVQ xStride+24(FP), R8
	MOVQ y+32(FP), DX
	MOVQ yStride+40(FP), R9
	MOVQ numeric+48(FP), R10
	MOVQ weights_base+56(FP), R12
	MOVQ weights_len+64(FP), R11
	VBROADCASTSD factor+80(FP), Y15
	SHLQ $3, R8
	SHLQ $3, R9

distances16:
	CMPQ CX, $16
	JLT distances4
	CLEAR4
	COLUMNS
	MOVQ R10, R13
	TESTQ R13, R13
	JZ different16

difference16:
	VBROADCASTSD (AX), Y14
	VSUBPD (BX), Y14, Y4
	VSUBPD 32(BX), Y14, Y5
	VSUBPD 64(BX), Y14, Y6
	VSUBPD 96(BX), Y14, Y7
	VFMADD231PD Y4, Y4, Y0
	VFMADD231PD Y5, Y5, Y1
	VFMADD231PD Y6, Y6, Y2
	VFMADD231PD Y7, Y7, Y3
	NEXTCOLUMN
	JNZ difference16

different16:
	MOVQ R11, R13
	MOVQ R12, R14
	TESTQ R13, R13
	JZ root16

category16:
	VBROADCASTSD (AX), Y14
	VBROADCASTSD (R14), Y13
	VCMPPD $4, (BX), Y14, Y4
	VCMPPD $4, 32(BX), Y14, Y5
	VCMPPD $4, 64(BX), Y14, Y6
	VCMPPD $4, 96(BX), Y14, Y7
	VANDPD Y13, Y4, Y4
	VANDPD Y13, Y5, Y5
	VANDPD Y13, Y6, Y6
	VANDPD Y13, Y7, Y7
	VADDPD Y4, Y0, Y0
	VADDPD Y5, Y1, Y1
	VADDPD Y6, Y2, Y2
	VADDPD Y7, Y3, Y3
	ADDQ $8, R14
	NEXTCOLUMN
	JNZ category16

root16:
	VSQRTPD Y0, Y0
	VSQRTPD Y1, Y1
	VSQRTPD Y2, Y2
	VSQRTPD Y3, Y3
	VMULPD Y15, Y0, Y0
	VMULPD Y15, Y1, Y1
	VMULPD Y15, Y2, Y2
	VMULPD Y15, Y3, Y3
	VMOVUPD Y0, (DI)
	VMOVUPD Y1, 32(DI)
	VMOVUPD Y2, 64(DI)
	VMOVUPD Y3, 96(DI)
	ADDQ $128, DI
	ADDQ $128, DX
	SUBQ $16, CX
	JMP distances16

distances4:
	CMPQ CX, $4
	JLT distancesDone
	VXORPD Y0, Y0, Y0
	COLUMNS
	MOVQ R10, R13
	TESTQ R13, R13
	JZ different4

difference4:
	VBROADCASTSD (AX), Y14
	VSUBPD (BX), Y14, Y4
	VFMADD231PD Y4, Y4, Y0
	NEXTCOLUMN
	JNZ difference4

different4:
	MOVQ R11, R13
	MOVQ R12, R14
	TESTQ R13, R13
	JZ root4

category4:
	VBROADCASTSD (AX), Y14
	VBROADCASTSD (R14), Y13
	VCMPPD $4, (BX), Y14, Y4
	VANDPD Y13, Y4, Y4
	VADDPD Y4, Y0, Y0
	ADDQ $8, R14
	NEXTCOLUMN
	JNZ category4

root4:
	VSQRTPD Y0, Y0
	VMULPD Y15, Y0, Y0
	VMOVUPD Y0, (DI)
	ADDQ $32, DI
	ADDQ $32, DX
	SUBQ $4, CX
	JMP distances4

distancesDone:
	VZEROUPPER
	RET

// func productsAVX2(dst *float64, n int, x *float64, xStride int, y *float64, yStride, numeric, categorical int, factor float64)
//
// Y14 is x's value, Y13 is 1.
TEXT ·productsAVX2(SB), NOSPLIT, $0-72
	MOVQ dst+0(FP), DI
	MOVQ n+8(FP), CX
	MOVQ x+16(FP), SI
	MOVQ xStride+24(FP), R8
	MOVQ y+32(FP), DX
	MOVQ yStride+40(FP), R9
	MOVQ numeric+48(FP), R10
	MOVQ categorical+56(FP), R11
	VBROADCASTSD factor+64(FP), Y15
	MOVQ $0x3ff0000000000000, AX
	MOVQ AX, X13
	VBROADCASTSD X13, Y13
	SHLQ $3, R8
	SHLQ $3, R9

products16:
	CMPQ CX, $16
	JLT products4
	CLEAR4
	COLUMNS
	MOVQ R10, R13
	TESTQ R13, R13
	JZ same16

product16:
	VBROADCASTSD (AX), Y14
	VFMADD231PD (BX), Y14, Y0
	VFMADD231PD 32(BX), Y14, Y1
	VFMADD231PD 64(BX), Y14, Y2
	VFMADD231PD 96(BX), Y14, Y3
	NEXTCOLUMN
	JNZ product16

same16:
	MOVQ R11, R13
	TESTQ R13, R13
	JZ scale16

equal16:
	VBROADCASTSD (AX), Y14
	VCMPPD $0, (BX), Y14, Y4
	VCMPPD $0, 32(BX), Y14, Y5
	VCMPPD $0, 64(BX), Y14, Y6
	VCMPPD $0, 96(BX), Y14, Y7
	VANDPD Y13, Y4, Y4
	VANDPD Y13, Y5, Y5
	VANDPD Y13, Y6, Y6
	VANDPD Y13, Y7, Y7
	VADDPD Y4, Y0, Y0
	VADDPD Y5, Y1, Y1
	VADDPD Y6, Y2, Y2
	VADDPD Y7, Y3, Y3
	NEXTCOLUMN
	JNZ equal16

scale16:
	VMULPD Y15, Y0, Y0
	VMULPD Y15, Y1, Y1
	VMULPD Y15, Y2, Y2
	VMULPD Y15, Y3, Y3
	VMOVUPD Y0, (DI)
	VMOVUPD Y1, 32(DI)
	VMOVUPD Y2, 64(DI)
	VMOVUPD Y3, 96(DI)
	ADDQ $128, DI
	ADDQ $128, DX
	SUBQ $16, CX
	JMP products16

products4:
	CMPQ CX, $4
	JLT productsDone
	VXORPD Y0, Y0, Y0
	COLUMNS
	MOVQ R10, R13
	TESTQ R13, R13
	JZ same4

product4:
	VBROADCASTSD (AX), Y14
	VFMADD231PD (BX), Y14, Y0
	NEXTCOLUMN
	JNZ product4

same4:
	MOVQ R11, R13
	TESTQ R13, R13
	JZ scale4

equal4:
	VBROADCASTSD (AX), Y14
	VCMPPD $0, (BX), Y14, Y4
	VANDPD Y13, Y4, Y4
	VADDPD Y4, Y0, Y0
	NEXTCOLUMN
	JNZ equal4

scale4:
	VMULPD Y15, Y0, Y0
	VMOVUPD Y0, (DI)
	ADDQ $32, DI
	ADDQ $32, DX
	SUBQ $4, CX
	JMP products4

productsDone:
	VZEROUPPER
	RET

// SUMCOLUMN stores the sum of the 16 lanes as the next result.
#define SUMCOLUMN \
	VADDPD Y1, Y0, Y0; \
	VADDPD Y3, Y2, Y2; \
	VADDPD Y2, Y0, Y0; \
	VEXTRACTF128 $1, Y0, X1; \
	VADDPD X1, X0, X0; \
	VPERMILPD $1, X0, X1; \
	VADDSD X1, X0, X0; \
	VMOVSD X0, (DI); \
	ADDQ $8, DI; \
	ADDQ R8, SI

// func momentsAVX2(dst, weights *float64, n int, x *float64, xStride int, y *float64, numeric, categorical int)
//
// DI is at the results, R12 at the weights, SI at the point, BX goes through y's columns,
// AX through the weights, and R13 counts the points left. Y14 is x's value.
TEXT ·momentsAVX2(SB), NOSPLIT, $0-64
	MOVQ dst+0(FP), DI
	MOVQ weights+8(FP), R12
	MOVQ n+16(FP), CX
	MOVQ x+24(FP), SI
	MOVQ xStride+32(FP), R8
	MOVQ y+40(FP), BX
	MOVQ numeric+48(FP), R10
	MOVQ categorical+56(FP), R11
	SHLQ $3, R8
	TESTQ R10, R10
	JZ categories

numericColumn:
	VBROADCASTSD (SI), Y14
	CLEAR4
	MOVQ R12, AX
	MOVQ CX, R13

moment:
	VSUBPD (BX), Y14, Y4
	VSUBPD 32(BX), Y14, Y5
	VSUBPD 64(BX), Y14, Y6
	VSUBPD 96(BX), Y14, Y7
	VFMADD231PD (AX), Y4, Y0
	VFMADD231PD 32(AX), Y5, Y1
	VFMADD231PD 64(AX), Y6, Y2
	VFMADD231PD 96(AX), Y7, Y3
	ADDQ $128, AX
	ADDQ $128, BX
	SUBQ $16, R13
	JNZ moment
	SUMCOLUMN
	DECQ R10
	JNZ numericColumn

categories:
	TESTQ R11, R11
	JZ momentsDone

categoricalColumn:
	VBROADCASTSD (SI), Y14
	CLEAR4
	MOVQ R12, AX
	MOVQ CX, R13

differing:
	VCMPPD $4, (BX), Y14, Y4
	VCMPPD $4, 32(BX), Y14, Y5
	VCMPPD $4, 64(BX), Y14, Y6
	VCMPPD $4, 96(BX), Y14, Y7
	VANDPD (AX), Y4, Y4
	VANDPD 32(AX), Y5, Y5
	VANDPD 64(AX), Y6, Y6
	VANDPD 96(AX), Y7, Y7
	VADDPD Y4, Y0, Y0
	VADDPD Y5, Y1, Y1
	VADDPD Y6, Y2, Y2
	VADDPD Y7, Y3, Y3
	ADDQ $128, AX
	ADDQ $128, BX
	SUBQ $16, R13
	JNZ differing
	SUMCOLUMN
	DECQ R11
	JNZ categoricalColumn

momentsDone:
	VZEROUPPER
	RET

// ONES sets Y15 to 1 and Y14 to −1 in each lane.
#define ONES \
	MOVQ $0x3ff0000000000000, AX; \
	MOVQ AX, X15; \
	VBROADCASTSD X15, Y15; \
	MOVQ $0xbff0000000000000, AX; \
	MOVQ AX, X14; \
	VBROADCASTSD X14, Y14

// func covariancesAVX2(v, e *float64, n int, square, variance float64)
TEXT ·covariancesAVX2(SB), NOSPLIT, $0-40
	MOVQ v+0(FP), DI
	MOVQ e+8(FP), SI
	MOVQ n+16(FP), CX
	VBROADCASTSD square+24(FP), Y13
	VBROADCASTSD variance+32(FP), Y12
	ONES

covariance:
	VMOVUPD (DI), Y0
	VMULPD (SI), Y12, Y1
	VMOVAPD Y14, Y2
	VFMADD231PD Y13, Y0, Y2
	VFMADD213PD Y15, Y0, Y2
	VMULPD Y1, Y2, Y2
	VMOVUPD Y2, (DI)
	ADDQ $32, DI
	ADDQ $32, SI
	SUBQ $4, CX
	JNZ covariance
	VZEROUPPER
	RET

// func slopesAVX2(v, e, weights *float64, n int, square, slope, rise float64, lanes *[4]float64)
TEXT ·slopesAVX2(SB), NOSPLIT, $0-64
	MOVQ v+0(FP), DI
	MOVQ e+8(FP), SI
	MOVQ weights+16(FP), DX
	MOVQ n+24(FP), CX
	VBROADCASTSD square+32(FP), Y13
	VBROADCASTSD slope+40(FP), Y12
	VBROADCASTSD rise+48(FP), Y11
	MOVQ lanes+56(FP), BX
	VMOVUPD (BX), Y10
	ONES

slope:
	VMOVUPD (DI), Y0
	VMOVUPD (SI), Y1
	VMULPD (DX), Y1, Y1
	VMOVAPD Y14, Y2
	VFMADD231PD Y13, Y0, Y2
	VFMADD213PD Y15, Y0, Y2
	VFMADD231PD Y1, Y2, Y10
	VFMADD213PD Y12, Y11, Y0
	VMULPD Y1, Y0, Y0
	VMOVUPD Y0, (DI)
	ADDQ $32, DI
	ADDQ $32, SI
	ADDQ $32, DX
	SUBQ $4, CX
	JNZ slope
	VMOVUPD Y10, (BX)
	VZEROUPPER
	RET
