/* What compilers spell differently. */
#ifndef SLUICE_PORTABLE_H
#define SLUICE_PORTABLE_H

/* A function compiled for several instruction sets; the loader of the object picks one. Without
   contraction and without reordering all of them give the same bits. */
#if defined(__GNUC__) && !defined(__clang__) && defined(__x86_64__) && defined(__gnu_linux__) && \
    !defined(__SANITIZE_ADDRESS__) && !defined(SLUICE_PLAIN)
#define CLONES __attribute__((target_clones("avx512f", "avx2", "default")))
#else
#define CLONES
#endif

/* A short loop that is to become vectors, and not single steps before that is tried. */
#if defined(__GNUC__) && !defined(__clang__)
#define KEEP_LOOP _Pragma("GCC unroll 1")
#else
#define KEEP_LOOP
#endif

#if defined(__GNUC__)
#define INLINE static inline __attribute__((always_inline))
#else
#define INLINE static inline
#endif

#endif
