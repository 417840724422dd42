// What the kernels share: bfloat16 as raw 16 bits, as many numbers at a time as a register holds, and the exponential.

#pragma once

#include <cstdint>
#include <cstring>
#include <new>
#include <stdexcept>
#include <utility>

namespace {

struct bfloat16 {
    uint16_t bits;
};

inline float to_float(float x) { return x; }
inline float to_float(bfloat16 x) {
    uint32_t bits = uint32_t(x.bits) << 16;
    float f;
    std::memcpy(&f, &bits, 4);
    return f;
}
inline void store(float* to, float x) { *to = x; }
inline void store(bfloat16* to, float x) {  // to nearest, ties to even; what is no number stays none
    uint32_t bits;
    std::memcpy(&bits, &x, 4);
    uint32_t rounded = (bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16;
    to->bits = uint16_t((bits & 0x7fffffffu) > 0x7f800000u ? 0x7fc0u : rounded);
}

// What a call gives back, as no exception may leave this library: 0, 1 where memory did not suffice, 2 for any other.
template <typename Call>
int guarded(Call call) noexcept {
    try {
        call();
        return 0;
    } catch (const std::bad_alloc&) {
        return 1;
    } catch (const std::length_error&) {  // more than a vector can ever hold
        return 1;
    } catch (...) {
        return 2;
    }
}

// As many numbers at a time as a register of this CPU holds: wider vectors would live in memory.
#if defined(__AVX512F__)
constexpr int64_t LANES = 16;
#elif defined(__AVX__)
constexpr int64_t LANES = 8;
#else
constexpr int64_t LANES = 4;
#endif
constexpr int64_t BYTES = LANES * sizeof(float);
typedef float vector __attribute__((vector_size(BYTES), aligned(4), may_alias));
typedef int32_t whole_vector __attribute__((vector_size(BYTES)));
typedef uint32_t bits_vector __attribute__((vector_size(BYTES)));

inline vector read(const float* from) { return *(const vector*)from; }
inline void write(float* to, vector x) { *(vector*)to = x; }
inline int64_t padded(int64_t n) { return (n + LANES - 1) / LANES * LANES; }

// Where the compiler knows it; GCC below 12 has a form of its own, which PLAIN_SHUFFLES asks of every GCC.
#if defined(__has_builtin) && !(defined(PLAIN_SHUFFLES) && !defined(__clang__))
#if __has_builtin(__builtin_shufflevector)
#define HAS_SHUFFLEVECTOR
#endif
#endif

// Lanes of a and b, those of b counted behind those of a.
template <size_t... I, typename Lanes>
inline Lanes picked(const Lanes& a, const Lanes& b) {
#ifdef HAS_SHUFFLEVECTOR
    return __builtin_shufflevector(a, b, I...);
#else
    typedef decltype(a == b) Places;
    return __builtin_shuffle(a, b, Places{I...});
#endif
}

// op over all lanes.
template <size_t BY, size_t... I>
inline vector rotated(vector x, std::index_sequence<I...>) {
    return picked<((I + BY) % LANES)...>(x, x);
}
template <size_t BY = LANES / 2, typename Op>
inline float across(vector x, Op op) {
    x = op(x, rotated<BY>(x, std::make_index_sequence<LANES>()));
    if constexpr (BY > 1) return across<BY / 2>(x, op);
    return x[0];
}
inline bits_vector counted() {  // 0, 1, 2 ...
    bits_vector x{};
    for (int64_t i = 0; i < LANES; i++) x[i] = uint32_t(i);
    return x;
}
inline vector sum_of(vector a, vector b) { return a + b; }
inline vector greater_of(vector a, vector b) { return a > b ? a : b; }  // what is no number is passed over in a

// e^x to about 2 units in the last place, for x <= 88; 0 below -87.
inline vector exponential(vector x) {
    vector y = (x < -87.0f ? vector{} - 87.0f : x) * 1.44269504f;
    whole_vector whole = __builtin_convertvector(y + (y < 0.0f ? vector{} - 0.5f : vector{} + 0.5f), whole_vector);
    vector r = (y - __builtin_convertvector(whole, vector)) * 0.693147181f;
    vector p = 1.0f + r * (1.0f + r * (0.5f + r * (0.166666667f + r * (0.0416666667f + r * (0.00833333333f + r * 0.00138888889f)))));
    return x < -87.0f ? vector{} : p * (vector)((whole + 127) << 23);
}

}  // namespace
