"""Features of this processor. Compiled for any processor and imported before other kernels."""

cdef extern from *:
    """
    #if defined(_MSC_VER) && defined(_M_X64)
    #include <windows.h>
    static int has_avx2(void) { return IsProcessorFeaturePresent(40); }
    #elif defined(__GNUC__) && defined(__x86_64__)
    static int has_avx2(void) {
        __builtin_cpu_init();
        return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")
            && __builtin_cpu_supports("bmi") && __builtin_cpu_supports("bmi2");
    }
    #else
    static int has_avx2(void) { return 0; }
    #endif
    """
    bint has_avx2()

HAS_AVX2 = has_avx2()
