	.att_syntax
	.section	.text.main_dispatch_0_conv_16x16x32x3x3x16_f32,"ax",@progbits
	.prefalign	4, .Lfunc_end0, nop
	.type	main_dispatch_0_conv_16x16x32x3x3x16_f32,@function
main_dispatch_0_conv_16x16x32x3x3x16_f32:
.Lfunc_begin0:
	pushq	%rbp
	movq	%rsp, %rbp
	pushq	%r15
	pushq	%r14
	pushq	%r13
	pushq	%r12
	pushq	%rbx
	movq	32(%rsi), %rcx
	xorl	%r8d, %r8d
	movq	8(%rcx), %rsi
	movq	(%rcx), %rax
	movq	16(%rcx), %rcx
	movq	%rcx, -72(%rbp)
	movl	(%rdx), %ecx
	movq	%rsi, -88(%rbp)
	addq	%rcx, %rcx
	movq	%rcx, -64(%rbp)
	movb	$1, %cl
.LBB0_1:
	addq	-64(%rbp), %r8
	movl	%ecx, -44(%rbp)
	xorl	%r11d, %r11d
	movq	%r8, %rcx
	shlq	$11, %rcx
	addq	-72(%rbp), %rcx
	movq	%rcx, -80(%rbp)
	movb	$1, %cl
.LBB0_2:
	movl	%ecx, -48(%rbp)
	movq	%r11, %rcx
	shlq	$7, %rcx
	addq	-80(%rbp), %rcx
	xorl	%r15d, %r15d
	movq	%rcx, -96(%rbp)
	movb	$1, %cl
.LBB0_3:
	movq	-88(%rbp), %rdx
	movl	%ecx, -52(%rbp)
	vxorps	%xmm0, %xmm0, %xmm0
	vxorps	%xmm1, %xmm1, %xmm1
	vxorps	%xmm2, %xmm2, %xmm2
	vxorps	%xmm3, %xmm3, %xmm3
	vxorps	%xmm4, %xmm4, %xmm4
	vxorps	%xmm5, %xmm5, %xmm5
	vxorps	%xmm6, %xmm6, %xmm6
	vxorps	%xmm7, %xmm7, %xmm7
	xorl	%r13d, %r13d
	leaq	(%rdx,%r15,4), %r12
.LBB0_4:
	leaq	(%r8,%r13), %rcx
	leaq	(%r13,%r13,2), %rsi
	xorl	%r9d, %r9d
	leaq	(%rcx,%rcx,8), %rdx
	shlq	$11, %rsi
	shlq	$7, %rdx
	addq	%r12, %rsi
	addq	%rax, %rdx
.LBB0_5:
	leaq	(%r9,%r11), %r10
	movq	%r9, %rdi
	shlq	$11, %rdi
	movb	$1, %bl
	xorl	%ecx, %ecx
	shlq	$6, %r10
	addq	%rsi, %rdi
	addq	%rdx, %r10
.LBB0_6:
	movl	%ebx, %r14d
	movq	%rcx, %rbx
	shlq	$7, %rbx
	vmovaps	(%rdi,%rbx), %zmm14
	leaq	1(%rcx), %rbx
	vfmadd231ps	(%r10,%rcx,4){1to16}, %zmm14, %zmm0
	vfmadd231ps	64(%r10,%rcx,4){1to16}, %zmm14, %zmm1
	vfmadd231ps	128(%r10,%rcx,4){1to16}, %zmm14, %zmm2
	vfmadd231ps	192(%r10,%rcx,4){1to16}, %zmm14, %zmm3
	vfmadd231ps	256(%r10,%rcx,4){1to16}, %zmm14, %zmm4
	vfmadd231ps	320(%r10,%rcx,4){1to16}, %zmm14, %zmm5
	vfmadd231ps	384(%r10,%rcx,4){1to16}, %zmm14, %zmm6
	vfmadd231ps	448(%r10,%rcx,4){1to16}, %zmm14, %zmm7
	shlq	$7, %rbx
	vmovaps	(%rdi,%rbx), %zmm15
	leaq	2(%rcx), %rbx
	shlq	$7, %rbx
	vmovaps	(%rdi,%rbx), %zmm13
	leaq	3(%rcx), %rbx
	vfmadd231ps	4(%r10,%rcx,4){1to16}, %zmm15, %zmm0
	vfmadd231ps	68(%r10,%rcx,4){1to16}, %zmm15, %zmm1
	vfmadd231ps	132(%r10,%rcx,4){1to16}, %zmm15, %zmm2
	vfmadd231ps	196(%r10,%rcx,4){1to16}, %zmm15, %zmm3
	vfmadd231ps	260(%r10,%rcx,4){1to16}, %zmm15, %zmm4
	vfmadd231ps	324(%r10,%rcx,4){1to16}, %zmm15, %zmm5
	vfmadd231ps	388(%r10,%rcx,4){1to16}, %zmm15, %zmm6
	vfmadd231ps	452(%r10,%rcx,4){1to16}, %zmm15, %zmm7
	shlq	$7, %rbx
	vmovaps	(%rdi,%rbx), %zmm12
	leaq	4(%rcx), %rbx
	shlq	$7, %rbx
	vmovaps	(%rdi,%rbx), %zmm11
	leaq	5(%rcx), %rbx
	vfmadd231ps	8(%r10,%rcx,4){1to16}, %zmm13, %zmm0
	vfmadd231ps	72(%r10,%rcx,4){1to16}, %zmm13, %zmm1
	vfmadd231ps	136(%r10,%rcx,4){1to16}, %zmm13, %zmm2
	vfmadd231ps	200(%r10,%rcx,4){1to16}, %zmm13, %zmm3
	vfmadd231ps	264(%r10,%rcx,4){1to16}, %zmm13, %zmm4
	vfmadd231ps	328(%r10,%rcx,4){1to16}, %zmm13, %zmm5
	vfmadd231ps	392(%r10,%rcx,4){1to16}, %zmm13, %zmm6
	vfmadd231ps	456(%r10,%rcx,4){1to16}, %zmm13, %zmm7
	shlq	$7, %rbx
	vmovaps	(%rdi,%rbx), %zmm10
	leaq	6(%rcx), %rbx
	shlq	$7, %rbx
	vmovaps	(%rdi,%rbx), %zmm9
	leaq	7(%rcx), %rbx
	vfmadd231ps	12(%r10,%rcx,4){1to16}, %zmm12, %zmm0
	vfmadd231ps	76(%r10,%rcx,4){1to16}, %zmm12, %zmm1
	vfmadd231ps	140(%r10,%rcx,4){1to16}, %zmm12, %zmm2
	vfmadd231ps	204(%r10,%rcx,4){1to16}, %zmm12, %zmm3
	vfmadd231ps	268(%r10,%rcx,4){1to16}, %zmm12, %zmm4
	vfmadd231ps	332(%r10,%rcx,4){1to16}, %zmm12, %zmm5
	vfmadd231ps	396(%r10,%rcx,4){1to16}, %zmm12, %zmm6
	vfmadd231ps	460(%r10,%rcx,4){1to16}, %zmm12, %zmm7
	shlq	$7, %rbx
	vmovaps	(%rdi,%rbx), %zmm8
	xorl	%ebx, %ebx
	vfmadd231ps	16(%r10,%rcx,4){1to16}, %zmm11, %zmm0
	vfmadd231ps	80(%r10,%rcx,4){1to16}, %zmm11, %zmm1
	vfmadd231ps	144(%r10,%rcx,4){1to16}, %zmm11, %zmm2
	vfmadd231ps	208(%r10,%rcx,4){1to16}, %zmm11, %zmm3
	vfmadd231ps	272(%r10,%rcx,4){1to16}, %zmm11, %zmm4
	vfmadd231ps	336(%r10,%rcx,4){1to16}, %zmm11, %zmm5
	vfmadd231ps	400(%r10,%rcx,4){1to16}, %zmm11, %zmm6
	vfmadd231ps	464(%r10,%rcx,4){1to16}, %zmm11, %zmm7
	vfmadd231ps	20(%r10,%rcx,4){1to16}, %zmm10, %zmm0
	vfmadd231ps	84(%r10,%rcx,4){1to16}, %zmm10, %zmm1
	vfmadd231ps	148(%r10,%rcx,4){1to16}, %zmm10, %zmm2
	vfmadd231ps	212(%r10,%rcx,4){1to16}, %zmm10, %zmm3
	vfmadd231ps	276(%r10,%rcx,4){1to16}, %zmm10, %zmm4
	vfmadd231ps	340(%r10,%rcx,4){1to16}, %zmm10, %zmm5
	vfmadd231ps	404(%r10,%rcx,4){1to16}, %zmm10, %zmm6
	vfmadd231ps	468(%r10,%rcx,4){1to16}, %zmm10, %zmm7
	vfmadd231ps	24(%r10,%rcx,4){1to16}, %zmm9, %zmm0
	vfmadd231ps	88(%r10,%rcx,4){1to16}, %zmm9, %zmm1
	vfmadd231ps	152(%r10,%rcx,4){1to16}, %zmm9, %zmm2
	vfmadd231ps	216(%r10,%rcx,4){1to16}, %zmm9, %zmm3
	vfmadd231ps	280(%r10,%rcx,4){1to16}, %zmm9, %zmm4
	vfmadd231ps	344(%r10,%rcx,4){1to16}, %zmm9, %zmm5
	vfmadd231ps	408(%r10,%rcx,4){1to16}, %zmm9, %zmm6
	vfmadd231ps	472(%r10,%rcx,4){1to16}, %zmm9, %zmm7
	vfmadd231ps	28(%r10,%rcx,4){1to16}, %zmm8, %zmm0
	vfmadd231ps	92(%r10,%rcx,4){1to16}, %zmm8, %zmm1
	vfmadd231ps	156(%r10,%rcx,4){1to16}, %zmm8, %zmm2
	vfmadd231ps	220(%r10,%rcx,4){1to16}, %zmm8, %zmm3
	vfmadd231ps	284(%r10,%rcx,4){1to16}, %zmm8, %zmm4
	vfmadd231ps	348(%r10,%rcx,4){1to16}, %zmm8, %zmm5
	vfmadd231ps	412(%r10,%rcx,4){1to16}, %zmm8, %zmm6
	vfmadd231ps	476(%r10,%rcx,4){1to16}, %zmm8, %zmm7
	movl	$8, %ecx
	testb	$1, %r14b
	jne	.LBB0_6
	incq	%r9
	cmpq	$3, %r9
	jne	.LBB0_5
	incq	%r13
	cmpq	$3, %r13
	jne	.LBB0_4
	movq	-96(%rbp), %rcx
	testb	$1, -52(%rbp)
	vmovaps	%zmm0, (%rcx,%r15,4)
	vmovaps	%zmm1, 128(%rcx,%r15,4)
	vmovaps	%zmm2, 256(%rcx,%r15,4)
	vmovaps	%zmm3, 384(%rcx,%r15,4)
	vmovaps	%zmm4, 512(%rcx,%r15,4)
	vmovaps	%zmm5, 640(%rcx,%r15,4)
	vmovaps	%zmm6, 768(%rcx,%r15,4)
	vmovaps	%zmm7, 896(%rcx,%r15,4)
	movl	$16, %r15d
	movl	$0, %ecx
	jne	.LBB0_3
	testb	$1, -48(%rbp)
	movl	$8, %r11d
	jne	.LBB0_2
	testb	$1, -44(%rbp)
	movl	$1, %r8d
	jne	.LBB0_1
	xorl	%eax, %eax
	popq	%rbx
	popq	%r12
	popq	%r13
	popq	%r14
	popq	%r15
	popq	%rbp
	vzeroupper
	retq
.Lfunc_end0:
