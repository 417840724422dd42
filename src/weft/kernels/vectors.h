// What the kernels share: bfloat16 as raw 16 bits, as many numbers at a time as a register holds, and the exponential.

#pragma once

#include <cstdint>
#include <cstring>
#include <new>
#include <stdexcept>
#include <string>
#include <utility>

#if defined(__AVX2__)
#include <immintrin.h>
#elif defined(__aarch64__)
#include <arm_neon.h>
#endif

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

// The words of the last exception of this thread; cut if they are too long.
inline char (&failure_words())[200] {
    static thread_local char words[200] = "";
    return words;
}

// What a call gives back, as no exception may leave this library: 0, 1 where memory did not suffice, 2 for any other, whose
// words are then kept.
template <typename Call>
int guarded(Call call) noexcept {
    try {
        call();
        return 0;
    } catch (const std::bad_alloc&) {
        return 1;
    } catch (const std::length_error&) {  // more than a vector can ever hold
        return 1;
    } catch (const std::exception& error) {
        std::strncpy(failure_words(), error.what(), sizeof(failure_words()) - 1);
        return 2;
    } catch (...) {
        std::strcpy(failure_words(), "an exception without words");
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

// a * b + c, rounded once where the CPU can, else twice. It is said which, because a compiler that may choose chooses
// differently in two copies of one loop, and a row's sum would depend on how many rows are computed with it.
inline vector fused(vector a, vector b, vector c) {
#if defined(__AVX512F__)
    return (vector)_mm512_fmadd_ps((__m512)a, (__m512)b, (__m512)c);
#elif defined(__FMA__)
    return (vector)_mm256_fmadd_ps((__m256)a, (__m256)b, (__m256)c);
#elif defined(__aarch64__)
    return (vector)vfmaq_f32((float32x4_t)c, (float32x4_t)a, (float32x4_t)b);
#else
    return a * b + c;
#endif
}
// The sum of c[n] times x to the power of n.
inline vector polynomial(vector, float last) { return vector{} + last; }
template <typename... Rest>
inline vector polynomial(vector x, float first, Rest... rest) {
    return fused(x, polynomial(x, rest...), vector{} + first);
}

inline vector greater_of(vector a, vector b) { return a > b ? a : b; }  // what is no number is passed over in a

// e^x to about 2 units in the last place, for x <= 88; 0 below -87.
inline vector exponential(vector x) {
    vector y = (x < -87.0f ? vector{} - 87.0f : x) * 1.44269504f;
    whole_vector whole = __builtin_convertvector(y + (y < 0.0f ? vector{} - 0.5f : vector{} + 0.5f), whole_vector);
    vector r = (y - __builtin_convertvector(whole, vector)) * 0.693147181f;
    vector p = polynomial(r, 1.0f, 1.0f, 0.5f, 0.166666667f, 0.0416666667f, 0.00833333333f, 0.00138888889f);
    return x < -87.0f ? vector{} : p * (vector)((whole + 127) << 23);
}

// ---- activations -----------------------------------------------------------------------------------------------
//
// A struct each: `value` for decoding; `with_grad` for training, which needs the derivative, too. `with_activation` has
// the numbers, which are those of activations.py, and NUM_ACTIVATIONS says how many there are.

struct Activated {  // an activation's value at x, and its derivative there
    vector value, grad;
};
struct Relu {
    static vector value(vector x) { return x <= 0.0f ? vector{} : x; }  // what is no number passes
    static Activated with_grad(vector x) { return {value(x), x > 0.0f ? 1.0f + vector{} : vector{}}; }
};
struct SquaredRelu {
    static vector value(vector x) { return Relu::value(x) * Relu::value(x); }
    static Activated with_grad(vector x) { return {value(x), 2.0f * Relu::value(x)}; }
};
// x times the normal distribution's share below x, by formula 7.1.26 of Abramowitz and Stegun 1964: off by less than 2e-7.
struct Gelu {
    static vector value(vector x) {
        vector z = (x < 0.0f ? -x : x) * 0.707106781f, t = 1.0f / (1.0f + 0.3275911f * z);
        vector series = t * polynomial(t, 0.254829592f, -0.284496736f, 1.421413741f, -1.453152027f, 1.061405429f);
        vector tail = 0.5f * series * exponential(-z * z);  // half of 1 - erf(z)
        return x * (x < 0.0f ? tail : 1.0f - tail);
    }
    static Activated with_grad(vector x) {
        vector bell = exponential(-0.5f * x * x), t = 1.0f / (1.0f + 0.231641888f * (x < 0.0f ? -x : x));
        vector rest = 1.421413741f + t * (-1.453152027f + t * 1.061405429f);
        vector beyond = 0.5f * bell * t * (0.254829592f + t * (-0.284496736f + t * rest));
        vector below = x < 0.0f ? beyond : 1.0f - beyond;
        return {x * below, below + 0.398942280f * x * bell};
    }
};
// x times the logistic function.
struct Silu {
    static vector value(vector x) {
        vector e = exponential(x < 0.0f ? x : -x);
        return x * (x < 0.0f ? e : 1.0f + vector{}) / (1.0f + e);
    }
    static Activated with_grad(vector x) {
        vector below = 1.0f / (1.0f + exponential(x < -87.0f ? vector{} + 87.0f : -x));
        return {x * below, below * (1.0f + x * (1.0f - below))};
    }
};

constexpr int64_t NUM_ACTIVATIONS = 4;

// Call `work` with the struct of a number, of which refuse_unknown lets no other through than the cases.
template <typename Work>
inline auto with_activation(int64_t number, Work work) {
    switch (number) {
        case 0: return work(Relu());
        case 1: return work(Gelu());
        case 2: return work(SquaredRelu());
        case 3: return work(Silu());
        default: return work(Relu());
    }
}
inline void refuse_unknown(int64_t activation) {
    if (activation >= 0 && activation < NUM_ACTIVATIONS) return;
    throw std::invalid_argument("vectors.h has no code for activation number " + std::to_string(activation));
}
inline vector activated(vector x, int64_t activation) {
    return with_activation(activation, [&](auto f) { return f.value(x); });
}
inline Activated activated_with_grad(vector x, int64_t activation) {
    return with_activation(activation, [&](auto f) { return f.with_grad(x); });
}

}  // namespace

extern "C" const char* last_failure() { return failure_words(); }
