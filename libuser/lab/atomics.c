// SPDX-License-Identifier: MIT
/*
 * What -fsanitize=thread has a program call in place of its atomic operations: these do them. All are as strong
 * as any, whatever order was asked for. Those of 16 bytes are missing: a program that uses them does not link.
 */
#include "lab.h"

#define LOAD(bits)                                                                              \
	LAB_EXPORT uint##bits##_t __tsan_atomic##bits##_load(const volatile void *p, int order);\
	LAB_EXPORT uint##bits##_t __tsan_atomic##bits##_load(const volatile void *p, int order) \
	{                                                                                       \
		(void)order;                                                                    \
		return __atomic_load_n((const volatile uint##bits##_t *)p, __ATOMIC_SEQ_CST);   \
	}

#define STORE(bits)                                                                                     \
	LAB_EXPORT void __tsan_atomic##bits##_store(volatile void *p, uint##bits##_t value, int order); \
	LAB_EXPORT void __tsan_atomic##bits##_store(volatile void *p, uint##bits##_t value, int order)  \
	{                                                                                               \
		(void)order;                                                                            \
		lab_note(p, sizeof(value), LAB_CALLER);                                                 \
		__atomic_store_n((volatile uint##bits##_t *)p, value, __ATOMIC_SEQ_CST);                \
	}

#define CHANGE(bits, name, builtin)                                                                               \
	LAB_EXPORT uint##bits##_t __tsan_atomic##bits##_##name(volatile void *p, uint##bits##_t value, int order);\
	LAB_EXPORT uint##bits##_t __tsan_atomic##bits##_##name(volatile void *p, uint##bits##_t value, int order) \
	{                                                                                                         \
		(void)order;                                                                                      \
		lab_note(p, sizeof(value), LAB_CALLER);                                                           \
		return builtin((volatile uint##bits##_t *)p, value, __ATOMIC_SEQ_CST);                            \
	}

/* One that fails stores nothing. */
#define COMPARE(bits, strength)                                                                                 \
	LAB_EXPORT bool __tsan_atomic##bits##_compare_exchange_##strength(volatile void *p, void *expected,     \
									  uint##bits##_t value, int order,      \
									  int order_failed);                    \
	LAB_EXPORT bool __tsan_atomic##bits##_compare_exchange_##strength(volatile void *p, void *expected,     \
									  uint##bits##_t value, int order,      \
									  int order_failed)                     \
	{                                                                                                       \
		bool done = __atomic_compare_exchange_n((volatile uint##bits##_t *)p,                           \
							(uint##bits##_t *)expected, value, false,               \
							__ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);                    \
		(void)order;                                                                                    \
		(void)order_failed;                                                                             \
		if (done)                                                                                       \
			lab_note(p, sizeof(value), LAB_CALLER);                                                 \
		return done;                                                                                    \
	}

/* Clang's form: what was there comes back, whether it was the expected or not. */
#define COMPARE_VALUE(bits)                                                                                        \
	LAB_EXPORT uint##bits##_t __tsan_atomic##bits##_compare_exchange_val(volatile void *p,                     \
									     uint##bits##_t expected,              \
									     uint##bits##_t value, int order,      \
									     int order_failed);                    \
	LAB_EXPORT uint##bits##_t __tsan_atomic##bits##_compare_exchange_val(volatile void *p,                     \
									     uint##bits##_t expected,              \
									     uint##bits##_t value, int order,      \
									     int order_failed)                     \
	{                                                                                                          \
		(void)order;                                                                                       \
		(void)order_failed;                                                                                \
		if (__atomic_compare_exchange_n((volatile uint##bits##_t *)p, &expected, value, false,             \
						__ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST))                               \
			lab_note(p, sizeof(value), LAB_CALLER);                                                    \
		return expected;                                                                                   \
	}

#define ALL(bits)                                          \
	LOAD(bits)                                         \
	STORE(bits)                                        \
	CHANGE(bits, exchange, __atomic_exchange_n)        \
	CHANGE(bits, fetch_add, __atomic_fetch_add)        \
	CHANGE(bits, fetch_sub, __atomic_fetch_sub)        \
	CHANGE(bits, fetch_and, __atomic_fetch_and)        \
	CHANGE(bits, fetch_or, __atomic_fetch_or)          \
	CHANGE(bits, fetch_xor, __atomic_fetch_xor)        \
	CHANGE(bits, fetch_nand, __atomic_fetch_nand)      \
	COMPARE(bits, strong)                              \
	COMPARE(bits, weak)                                \
	COMPARE_VALUE(bits)

ALL(8)
ALL(16)
ALL(32)
ALL(64)

LAB_EXPORT void __tsan_atomic_thread_fence(int order);
LAB_EXPORT void __tsan_atomic_signal_fence(int order);

LAB_EXPORT void __tsan_atomic_thread_fence(int order)
{
	(void)order;
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
}

LAB_EXPORT void __tsan_atomic_signal_fence(int order)
{
	(void)order;
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
}
