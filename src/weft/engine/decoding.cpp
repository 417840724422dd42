// Decoding on a CPU: sentences are encoded, and hypotheses go on by one position or several, many at a time.
//
// Plain C functions over pointers, called from bindings.py. One session belongs to one thread; the weights are shared.
// What a row becomes depends on that row alone, bit for bit: every sum is made in an order of its own, whatever
// stands beside it, and `fused` alone joins a product and a sum (the compiler may not: -ffp-contract=off). All widths
// are multiples of LANES; what fills them up is zero.

#include "vectors.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <new>
#include <stdexcept>
#include <vector>

extern "C" {

// y = W x + bias. The weights lie in panels of LANES outputs; each holds, for one group of inputs after the other,
// four bytes an output: one float32, two bfloat16, and four int8 or, where the CPU adds up no products of bytes, two
// of them as int16. `starts` are what sums of int8 begin with.
struct Matrix {
    const uint8_t* weights;
    const float* scales;
    const int32_t* starts;
    const float* bias;
    int64_t inputs, outputs;
};

struct Norm {  // without a gain there is none
    const float *gain, *bias;
};

// `self_qkv` gives queries, keys and values of self-attention, `cross_query` and `cross_kv` those of cross-attention; none:
// no cross-attention. What a sublayer gives has a norm of its own in `after`, if any. A gate, if any, is activated in the place
// of `inner`, which it is multiplied with. Gains of queries and keys, a number a dimension: without them these are not normed.
struct Layer {
    Norm norms[3], after[3];
    Matrix self_qkv, self_out, cross_query, cross_kv, cross_out, inner, gate, outer;
    Matrix cross_back;  // `cross_out` turned over, in float32 whatever the kind; there once shares are asked for
    const float *self_gains[2], *cross_gains[2];
};

// Queries, keys and values lie in `groups` of heads, in each dimension after dimension, in each one lane a head:
// the sums over a head's dimensions are then those of whole vectors. `steps` counts the dimensions.
struct Model {
    int64_t kind, d_model, d_model_padded, d_ff, head_dim, groups, lanes, steps, norm_first, root_mean_square, activation,
        num_encoder_layers, num_decoder_layers, vocab_size, half, num_heads;
    double eps, score_scale, embedding_scale;
    const float *src_tokens, *src_positions, *tgt_tokens, *tgt_positions, *cosines, *sines;
    const Layer *encoder, *decoder;
    Norm encoder_norm, decoder_norm, src_norm, tgt_norm;  // the last two: of the embeddings
    Matrix projection, listed;  // the same twice: in panels, and one output behind the other for those of a shortlist
};

// The beams of all slots, as decoding/places.py has them: `places` hypotheses of each, `room` tokens of each of these,
// `most` penalties of a slot, by the number of tokens.
struct Beams {
    int64_t places, room, most;
    int64_t* lengths;
    const int64_t *sizes, *max_lens;
    const int32_t* eos_ids;
    const float *penalties, *worst_scores;
    float *log_probs, *token_log_probs;
    int32_t *newest, *tokens, *ancestors;
};
}

namespace {

enum { FLOAT32, BFLOAT16, INT8 };
enum Mode { STORE, ADD, ACTIVATE };

typedef uint8_t bytes_vector __attribute__((vector_size(LANES), aligned(1), may_alias));
typedef whole_vector loose_wholes __attribute__((aligned(4), may_alias));
typedef uint16_t halves_vector __attribute__((vector_size(2 * LANES), aligned(2), may_alias));

inline whole_vector read_wholes(const void* from) { return *(const loose_wholes*)from; }
inline vector read(const bfloat16* from) {
    return (vector)(__builtin_convertvector(*(const halves_vector*)from, bits_vector) << 16);
}
inline void write(bfloat16* to, vector x) {  // as `store`
    bits_vector bits = (bits_vector)x, rounded = (bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16;
    rounded = (bits & 0x7fffffffu) > 0x7f800000u ? bits_vector{} + 0x7fc0u : rounded;
    *(halves_vector*)to = __builtin_convertvector(rounded, halves_vector);
}
template <size_t BY = LANES / 2>
inline int32_t sum_across(whole_vector x) {
    x += (whole_vector)rotated<BY>((vector)x, std::make_index_sequence<LANES>());
    if constexpr (BY > 1) return sum_across<BY / 2>(x);
    return x[0];
}

// Memory that begins at a line of the cache and only grows; what was in it stays.
struct Buffer {
    float* data = nullptr;
    int64_t size = 0;
    Buffer() = default;
    Buffer(Buffer&& other) noexcept : data(other.data), size(other.size) { other.data = nullptr, other.size = 0; }
    Buffer(const Buffer&) = delete;
    ~Buffer() { std::free(data); }
    template <typename T>
    T* of(int64_t needed) {
        return (T*)of((needed * sizeof(T) + sizeof(float) - 1) / sizeof(float));
    }
    float* of(int64_t needed) {
        if (needed <= size) return data;
        int64_t more = std::max(needed, size + size / 2);
        void* fresh = std::aligned_alloc(64, (more * sizeof(float) + 63) / 64 * 64);
        if (!fresh) throw std::bad_alloc();
        if (size) std::memcpy(fresh, data, size * sizeof(float));
        std::free(data);
        data = (float*)fresh, size = more;
        return data;
    }
};

// The products. `Kind` says what four bytes hold and how they are multiplied and added up.

struct Float32 {
    static constexpr int64_t GROUP = 1;
    typedef float Cached;  // keys and values of the memory and of the past
    typedef vector Sums;
    static Sums start(const Matrix&, int64_t) { return Sums{}; }
    static Sums dot(Sums sums, whole_vector inputs, whole_vector weights) { return fused((vector)inputs, (vector)weights, sums); }
    static vector result(Sums sums, const Matrix&, int64_t, float) { return sums; }
    static float total(Sums sums, const Matrix&, int64_t, float) { return across(sums, sum_of); }
};

struct BFloat16 {
    static constexpr int64_t GROUP = 2;
    typedef bfloat16 Cached;
    typedef vector Sums;
    static Sums start(const Matrix&, int64_t) { return Sums{}; }
    static Sums dot(Sums sums, whole_vector inputs, whole_vector weights) {
#if defined(__AVX512BF16__)
        return (vector)_mm512_dpbf16_ps((__m512)sums, (__m512bh)inputs, (__m512bh)weights);
#else
        bits_vector bits = (bits_vector)weights, x = (bits_vector)inputs;
        sums = fused((vector)(x << 16), (vector)(bits << 16), sums);
        return fused((vector)(x & 0xffff0000u), (vector)(bits & 0xffff0000u), sums);
#endif
    }
    static vector result(Sums sums, const Matrix&, int64_t, float) { return sums; }
    static float total(Sums sums, const Matrix&, int64_t, float) { return across(sums, sum_of); }
};

#if defined(__AVX512VNNI__) || defined(__AVXVNNI__)
#elif defined(__AVX512BW__) || (defined(__AVX2__) && !defined(__AVX512F__))
#define BYTES_AS_PAIRS
#endif

// Of bytes, inputs are unsigned, 128 above what they stand for; `starts` takes that back: -128 times the sum of the weights.
struct Int8 {
#if defined(BYTES_AS_PAIRS)
    static constexpr int64_t GROUP = 2;
#else
    static constexpr int64_t GROUP = 4;
#endif
    typedef bfloat16 Cached;
    typedef whole_vector Sums;
    static Sums start(const Matrix& matrix, int64_t output) { return read_wholes(matrix.starts + output); }
    static Sums dot(Sums sums, whole_vector inputs, whole_vector weights) {
#if defined(__AVX512VNNI__)
        return (Sums)_mm512_dpbusd_epi32((__m512i)sums, (__m512i)inputs, (__m512i)weights);
#elif defined(__AVXVNNI__)
        return (Sums)_mm256_dpbusd_avx_epi32((__m256i)sums, (__m256i)inputs, (__m256i)weights);
#elif defined(__AVX512BW__)
        return sums + (Sums)_mm512_madd_epi16((__m512i)inputs, (__m512i)weights);
#elif defined(BYTES_AS_PAIRS)
        return sums + (Sums)_mm256_madd_epi16((__m256i)inputs, (__m256i)weights);
#else
        for (int i = 0; i < 4; i++)
            sums += (whole_vector)(((bits_vector)inputs >> (8 * i)) & 255u) * ((whole_vector)((bits_vector)weights << (24 - 8 * i)) >> 24);
        return sums;
#endif
    }
    static vector result(Sums sums, const Matrix& matrix, int64_t output, float scale) {
        return __builtin_convertvector(sums, vector) * (scale * read(matrix.scales + output));
    }
    static float total(Sums sums, const Matrix& matrix, int64_t output, float scale) {
        return float(matrix.starts[output] + sum_across(sums)) * (scale * matrix.scales[output]);
    }
};

struct Inputs {  // rows of inputs, as a Kind has them; scales of int8 alone
    uint8_t* data;
    int64_t stride, rows;
    float* scales;
    Inputs from(int64_t row, int64_t count) const { return {data + row * stride, stride, count, scales + row}; }
};

struct Target {
    float* data;
    int64_t stride;
    Mode mode;
    int64_t activation;
};

// As many sums as there are registers for, of which some CPUs have 32 and others 16.
#if defined(__AVX512F__) || defined(__aarch64__)
constexpr int TILE_ROWS = 6, TILE_PANELS = 4, QUERIES_AT_ONCE = 4;
#else
constexpr int TILE_ROWS = 6, TILE_PANELS = 2, QUERIES_AT_ONCE = 2;
#endif

template <typename Kind, int ROWS, int PANELS>
void tile(const Matrix& matrix, const Inputs& inputs, int64_t row, int64_t panel, const Target& target) {
    typename Kind::Sums sums[ROWS][PANELS];
    const int64_t groups = matrix.inputs / Kind::GROUP, output = panel * LANES;
    const uint8_t *x = inputs.data + row * inputs.stride, *weights = matrix.weights + panel * groups * BYTES;
    for (int r = 0; r < ROWS; r++)
        for (int p = 0; p < PANELS; p++) sums[r][p] = Kind::start(matrix, output + p * LANES);
    for (int64_t g = 0; g < groups; g++) {
        whole_vector w[PANELS];
        for (int p = 0; p < PANELS; p++) w[p] = read_wholes(weights + (p * groups + g) * BYTES);
        for (int r = 0; r < ROWS; r++) {
            int32_t four;
            std::memcpy(&four, x + r * inputs.stride + g * 4, 4);
            for (int p = 0; p < PANELS; p++) sums[r][p] = Kind::dot(sums[r][p], whole_vector{} + four, w[p]);
        }
    }
    for (int r = 0; r < ROWS; r++)
        for (int p = 0; p < PANELS; p++) {
            int64_t at = output + p * LANES;
            vector y = Kind::result(sums[r][p], matrix, at, inputs.scales[row + r]) + read(matrix.bias + at);
            float* to = target.data + (row + r) * target.stride + at;
            if (target.mode == ADD) y += read(to);
            if (target.mode == ACTIVATE) y = activated(y, target.activation);
            write(to, y);
        }
}

template <typename Kind, int ROWS, int PANELS>
void tile_of(int64_t rows, const Matrix& matrix, const Inputs& inputs, int64_t row, int64_t panel, const Target& target) {
    if (rows >= ROWS) return tile<Kind, ROWS, PANELS>(matrix, inputs, row, panel, target);
    if constexpr (ROWS > 1) tile_of<Kind, ROWS - 1, PANELS>(rows, matrix, inputs, row, panel, target);
}

template <typename Kind>
void product(const Matrix& matrix, const Inputs& inputs, float* to, Mode mode = STORE, int64_t activation = 0) {
    Target target{to, matrix.outputs, mode, activation};
    int64_t panels = matrix.outputs / LANES;
    for (int64_t panel = 0; panel < panels;) {
        bool whole = panels - panel >= TILE_PANELS;
        for (int64_t row = 0; row < inputs.rows; row += TILE_ROWS)
            if (whole)
                tile_of<Kind, TILE_ROWS, TILE_PANELS>(inputs.rows - row, matrix, inputs, row, panel, target);
            else
                tile_of<Kind, TILE_ROWS, 1>(inputs.rows - row, matrix, inputs, row, panel, target);
        panel += whole ? TILE_PANELS : 1;
    }
}

// Some outputs of a matrix alone, whose weights lie one output behind the other; what fills up the last vector is -inf.
template <typename Kind>
void product_of(const Matrix& matrix, const std::vector<int32_t>& outputs, const Inputs& inputs, float* to) {
    const int64_t bytes = matrix.inputs / Kind::GROUP * 4, rest = bytes % BYTES, whole = bytes - rest;
    const int64_t count = outputs.size(), stride = padded(count);
    for (int64_t n = 0; n < count; n++) {
        const int64_t output = outputs[n];
        const uint8_t* weights = matrix.weights + output * bytes;
        for (int64_t r = 0; r < inputs.rows; r++) {
            const uint8_t* x = inputs.data + r * inputs.stride;
            typename Kind::Sums sums{};
            for (int64_t at = 0; at < whole; at += BYTES) sums = Kind::dot(sums, read_wholes(x + at), read_wholes(weights + at));
            if (rest) {
                whole_vector last_x{}, last_weights{};
                std::memcpy(&last_x, x + whole, rest), std::memcpy(&last_weights, weights + whole, rest);
                sums = Kind::dot(sums, last_x, last_weights);
            }
            to[r * stride + n] = Kind::total(sums, matrix, output, inputs.scales[r]) + matrix.bias[output];
        }
    }
    for (int64_t r = 0; r < inputs.rows; r++)
        std::fill(to + r * stride + count, to + (r + 1) * stride, -std::numeric_limits<float>::infinity());
}

// A row of numbers as the products take it.
inline void prepare(Float32, const float* x, int64_t size, uint8_t* to, float* scale) {
    std::memcpy(to, x, size * sizeof(float));
    *scale = 1.0f;
}
inline void prepare(BFloat16, const float* x, int64_t size, uint8_t* to, float* scale) {
    for (int64_t i = 0; i < size; i++) store((bfloat16*)to + i, x[i]);
    *scale = 1.0f;
}
inline void prepare(Int8, const float* x, int64_t size, uint8_t* to, float* scale) {
    vector largest{}, wrong{};
    for (int64_t i = 0; i < size; i += LANES) {
        vector y = read(x + i);
        largest = greater_of(y < 0.0f ? -y : y, largest);
        wrong = y - y == 0.0f ? wrong : vector{} + 1.0f;  // infinite, or no number
    }
    float most = across(largest, greater_of), inverse = most > 0 ? 127.0f / most : 0.0f;
    *scale = across(wrong, greater_of) > 0 ? std::numeric_limits<float>::quiet_NaN() : most / 127.0f;
    for (int64_t i = 0; i < size; i += LANES) {  // to nearest: the sum has no digits behind the point
        whole_vector q = (whole_vector)(read(x + i) * inverse + 12582912.0f) - 0x4b400000;
        if constexpr (Int8::GROUP == 2) *(halves_vector*)(to + 2 * i) = __builtin_convertvector(q, halves_vector);
        else *(bytes_vector*)(to + i) = __builtin_convertvector(q + 128, bytes_vector);
    }
}

// Returns what the centred numbers are multiplied with, before the gain.
inline float normalize(const Model& model, const Norm& norm, const float* x, float* to) {
    const int64_t size = model.d_model_padded, real = model.d_model, last = size - LANES;
    vector sum{};
    for (int64_t c = 0; c < size && !model.root_mean_square; c += LANES) sum += read(x + c);
    float mean = across(sum, sum_of) / real;
    vector squares{};
    for (int64_t c = 0; c < last; c += LANES) {
        vector d = read(x + c) - mean;
        squares += d * d;
    }
    vector d = counted() < uint32_t(real - last) ? read(x + last) - mean : vector{};
    squares += d * d;
    float inverse = 1.0f / std::sqrt(across(squares, sum_of) / real + float(model.eps));
    for (int64_t c = 0; c < size; c += LANES)
        write(to + c, (read(x + c) - mean) * inverse * read(norm.gain + c) + read(norm.bias + c));
    return inverse;
}

// A direction in what a norm gives becomes the one in what it reads that has the same product, its scale taken as given.
inline void go_back(const Model& model, const Norm& norm, float inverse, float* direction) {
    const int64_t size = model.d_model_padded, real = model.d_model, last = size - LANES;
    vector sum{};
    for (int64_t c = 0; c < size; c += LANES) {  // where nothing is but filling, the gain is 0
        vector y = read(direction + c) * read(norm.gain + c) * inverse;
        sum += y;
        write(direction + c, y);
    }
    if (model.root_mean_square) return;
    const float mean = across(sum, sum_of) / real;
    for (int64_t c = 0; c < size; c += LANES) {
        vector y = read(direction + c) - mean;
        write(direction + c, c < last || counted() < uint32_t(real - last) ? y : vector{});
    }
}

template <typename Cached>
void cache(const float* from, int64_t size, Cached* to) {
    for (int64_t i = 0; i < size; i += LANES) write(to + i, read(from + i));
}

// A vector's dimensions added up: in each lane the sum of those of its head.
template <size_t BY = LANES / 2>
inline vector by_head(vector x, int64_t lanes) {
    if (lanes <= int64_t(BY)) x += rotated<BY>(x, std::make_index_sequence<LANES>());
    if constexpr (BY > 1) return by_head<BY / 2>(x, lanes);
    return x;
}

// Add to the mean of all heads, for each key, what those of a group give: their weights, which `inverse` makes a softmax.
inline void add_heads(const Model& model, const float* weights, vector inverse, int64_t first_head, int64_t keys, float* mean) {
    const int64_t count = std::min(model.lanes, model.num_heads - first_head);
    const vector share = counted() < uint32_t(count) ? inverse / float(model.num_heads) : vector{};
    for (int64_t j = 0; j < keys; j++) mean[j] += across(read(weights + j * LANES) * share, sum_of);
}

// Each head's softmax(q k / sqrt(d_k)) v (Vaswani et al. 2017, equation 1), of several queries that read the same keys;
// `score_scale` is 1 / sqrt(d_k). There is no mask (section 3.2.3): a query is given only the keys that it may attend to.
// Heads stand in lanes: a key costs as many products as it has vectors. Each query's sums are made in the order that
// they have alone. The softmax of a single query is added to `mean`, if any, the mean of the heads.
template <int QUERIES, typename At>
void attend(const Model& model, const float* query, int64_t query_stride, float* context, int64_t keys, Buffer& room, At at,
            float* mean = nullptr) {
    const int64_t span = model.steps * model.lanes, width = model.groups * span, size = keys * LANES;
    float* weights = room.of(QUERIES * size);
    for (int64_t group = 0; group < width; group += span) {
        const float* q = query + group;
        vector largest[QUERIES], inverse[QUERIES];
        for (int n = 0; n < QUERIES; n++) largest[n] = vector{} - std::numeric_limits<float>::infinity();
        for (int64_t j = 0; j < keys; j += 4) {
            decltype(at(0)) k[4];
            vector sums[QUERIES][4] = {};
            for (int u = 0; u < 4; u++) k[u] = at(std::min(j + u, keys - 1)) + group;
            for (int64_t i = 0; i < span; i += LANES) {
                vector y[4];
                for (int u = 0; u < 4; u++) y[u] = read(k[u] + i);
                for (int n = 0; n < QUERIES; n++) {
                    vector x = read(q + n * query_stride + i);
                    for (int u = 0; u < 4; u++) sums[n][u] = fused(x, y[u], sums[n][u]);
                }
            }
            for (int n = 0; n < QUERIES; n++)
                for (int u = 0; u < 4 && j + u < keys; u++) {
                    vector s = by_head(sums[n][u], model.lanes) * float(model.score_scale);
                    largest[n] = s > largest[n] ? s : largest[n];
                    write(weights + n * size + (j + u) * LANES, s);
                }
        }
        for (int n = 0; n < QUERIES; n++) {
            vector total{};
            for (int64_t j = n * size; j < (n + 1) * size; j += LANES) {
                vector w = exponential(read(weights + j) - largest[n]);
                total += w;
                write(weights + j, w);
            }
            inverse[n] = 1.0f / total;
        }
        if (QUERIES == 1 && mean) add_heads(model, weights, inverse[0], group / model.steps, keys, mean);
        for (int64_t i = 0; i < span; i += 4 * LANES) {
            const int64_t count = std::min<int64_t>(4, (span - i) / LANES);
            vector sums[QUERIES][4] = {};
            for (int64_t j = 0; j < keys; j++) {
                const auto* v = at(j) + width + group + i;
                const float* w = weights + j * LANES;
                if (count == 4) {
                    vector y[4];
                    for (int u = 0; u < 4; u++) y[u] = read(v + u * LANES);
                    for (int n = 0; n < QUERIES; n++)
                        for (int u = 0; u < 4; u++) sums[n][u] = fused(read(w + n * size), y[u], sums[n][u]);
                } else {
                    for (int u = 0; u < count; u++)
                        for (int n = 0; n < QUERIES; n++) sums[n][u] = fused(read(w + n * size), read(v + u * LANES), sums[n][u]);
                }
            }
            for (int n = 0; n < QUERIES; n++)
                for (int u = 0; u < count; u++) write(context + n * width + group + i + u * LANES, sums[n][u] * inverse[n]);
        }
    }
}

// Queries that stand behind each other, as many at a time as there are registers for.
template <int QUERIES, typename At>
void attend_all(const Model& model, int64_t count, const float* query, int64_t stride, float* context, int64_t keys, Buffer& room, At at) {
    const int64_t width = model.groups * model.steps * model.lanes;
    for (; count >= QUERIES; count -= QUERIES, query += QUERIES * stride, context += QUERIES * width)
        attend<QUERIES>(model, query, stride, context, keys, room, at);
    if constexpr (QUERIES > 1) attend_all<QUERIES / 2>(model, count, query, stride, context, keys, room, at);
}

// For each key the product of a query with something that stands at `at` of it, of each head in its lane.
template <typename At, typename Take>
void by_key(const Model& model, const float* query, int64_t keys, At at, Take take) {
    const int64_t span = model.steps * model.lanes;
    for (int64_t j = 0; j < keys; j += 4) {
        decltype(at(0)) k[4];
        vector sums[4] = {};
        for (int u = 0; u < 4; u++) k[u] = at(std::min(j + u, keys - 1));
        for (int64_t i = 0; i < span; i += LANES) {
            const vector x = read(query + i);
            for (int u = 0; u < 4; u++) sums[u] = fused(x, read(k[u] + i), sums[u]);
        }
        for (int u = 0; u < 4 && j + u < keys; u++) take(j + u, by_head(sums[u], model.lanes));
    }
}

// What heads carry from each key: the softmax of its score times the product of its value with `wanted`. The shares of the
// keys are added to `shares`; to `spread` how much each head carried, and that times its softmax's entropy.
template <typename Cached>
void carry(const Model& model, const float* query, const float* wanted, const Cached* memory, int64_t keys, Buffer& room, float* shares,
           double* spread) {
    const int64_t span = model.steps * model.lanes, width = model.groups * span;
    float* weights = room.of(keys * LANES);
    for (int64_t group = 0; group < width; group += span) {
        vector largest = vector{} - std::numeric_limits<float>::infinity(), total{}, slope{}, carried{};
        by_key(model, query + group, keys, [=](int64_t j) { return memory + j * 2 * width + group; }, [&](int64_t j, vector product) {
            const vector s = product * float(model.score_scale);
            largest = s > largest ? s : largest;
            write(weights + j * LANES, s);
        });
        for (int64_t j = 0; j < keys * LANES; j += LANES) {
            const vector less = read(weights + j) - largest, w = exponential(less);
            total += w, slope += w * less;
            write(weights + j, w);
        }
        const vector inverse = 1.0f / total;
        const int64_t count = std::min(model.lanes, model.num_heads - group / model.steps);
        by_key(model, wanted + group, keys, [=](int64_t j) { return memory + (j * 2 + 1) * width + group; }, [&](int64_t j, vector product) {
            const vector all = read(weights + j * LANES) * inverse * product, share = counted() < uint32_t(count) ? all : vector{};
            carried += share < 0.0f ? -share : share;
            shares[j] += across(share, sum_of);
        });
        for (int64_t h = 0; h < count; h++) {
            const double entropy = std::log(double(total[h])) - double(slope[h]) / total[h];
            spread[0] += carried[h], spread[1] += carried[h] * entropy;
        }
    }
}

// Rotate queries or keys by their position: dimension i and i + half of each head are a pair.
void rotate(const Model& model, float* x, int64_t position) {
    const float *cosines = model.cosines + position * model.half, *sines = model.sines + position * model.half;
    const int64_t lanes = model.lanes, span = model.steps * lanes;
    for (int64_t group = 0; group < model.groups * span; group += span)
        for (int64_t i = 0; i < model.half; i++)
            for (int64_t h = 0; h < lanes; h++) {
                float *a = x + group + i * lanes + h, *b = a + model.half * lanes, first = *a, second = *b;
                *a = first * cosines[i] - second * sines[i], *b = second * cosines[i] + first * sines[i];
            }
}

// Divide each head of queries or keys by its root mean square; a gain for each dimension.
void normalize_heads(const Model& model, float* x, const float* gains) {
    if (!gains) return;
    const int64_t lanes = model.lanes, span = model.steps * lanes;
    for (int64_t group = 0; group < model.groups * span; group += span)
        for (int64_t h = 0; h < lanes; h++) {
            float sum = 0, *head = x + group + h;
            for (int64_t i = 0; i < model.head_dim; i++) sum += head[i * lanes] * head[i * lanes];
            const float inverse = 1.0f / std::sqrt(sum / model.head_dim + float(model.eps));
            for (int64_t i = 0; i < model.head_dim; i++) head[i * lanes] *= inverse * gains[i];
        }
}

struct Slot {  // one sentence: keys and values of its memory, and of its hypotheses' past, for each layer
    std::vector<Buffer> memory, past;
    int64_t memory_len = 0;
    bool is_recorded = false;  // whether steps keep in `trace` what shares are made of, by time and place as `past`
    Buffer trace;
    std::vector<int32_t> allowed;  // the outputs that it may have, ascending; none: all
};

// Where the last layer's attention to the source is written, the mean of its heads: `keys` numbers a row, zero behind those
// of the source. Nothing where that is not asked for; `alone`: nothing else is. With a `readout`, d_model_padded numbers a
// row, the shares of source tokens in its product with the final states are written in its place: what all layers carried,
// the scale of each norm taken as given. `evenness` is then the mean entropy of the softmaxes by what they carried, of 1.
struct Look {
    float* rows;
    int64_t keys;
    bool alone;
    const float* readout;
    float* evenness;
};

// What a step keeps for shares: of each decoder layer the queries to the source and what its norms multiplied with.
struct Trace {
    std::vector<Buffer> queries;
    std::vector<float> norms, after, last;
    int64_t rows = 0;

    void begin(int64_t num_layers, int64_t num_rows) {
        rows = num_rows;
        queries.resize(num_layers);
        norms.assign(num_layers * 3 * rows, 0.0f), after.assign(num_layers * rows, 0.0f), last.assign(rows, 0.0f);
    }
    float* norm(int64_t layer, int part) { return norms.data() + (layer * 3 + part) * rows; }
};

constexpr int64_t ROWS_AT_ONCE = 48;  // what is wide is computed for so many rows at a time, and stays in the cache

struct Session {
    const Model& model;
    const int64_t places, width;
    std::vector<Slot> slots;
    Buffer x, y, qkv, context, wide, weights, prepared, scales, directions;
    Trace trace;

    Session(const Model& model, int64_t num_slots, int64_t places)
        : model(model), places(places), width(model.groups * model.steps * model.lanes), slots(num_slots) {
        for (Slot& slot : slots)
            slot.memory.resize(model.num_decoder_layers), slot.past.resize(model.num_decoder_layers);
    }

    template <typename Kind>
    Inputs inputs_of(const float* from, int64_t size, int64_t rows) {
        int64_t stride = size / Kind::GROUP * 4;
        Inputs inputs{(uint8_t*)prepared.of(rows * stride / 4), stride, rows, scales.of(rows)};
        for (int64_t r = 0; r < rows; r++)
            prepare(Kind(), from + r * size, size, inputs.data + r * stride, inputs.scales + r);
        return inputs;
    }

    // What a sublayer reads: the states, normed where the norm comes first.
    template <typename Kind>
    Inputs sublayer_inputs(const Norm& norm, int64_t rows) {
        const int64_t size = model.d_model_padded;
        if (!model.norm_first) return inputs_of<Kind>(x.data, size, rows);
        for (int64_t r = 0; r < rows; r++) normalize(model, norm, x.data + r * size, y.of(rows * size) + r * size);
        return inputs_of<Kind>(y.data, size, rows);
    }

    void normalize_all(const Norm& norm, int64_t rows, float* inverses = nullptr) {
        const int64_t size = model.d_model_padded;
        for (int64_t r = 0; r < rows && norm.gain; r++) {
            float inverse = normalize(model, norm, x.data + r * size, x.data + r * size);
            if (inverses) inverses[r] = inverse;
        }
    }

    // Add what a sublayer gives to the states; without a norm before it there is one behind it.
    template <typename Kind>
    void join(const Matrix& out, const Inputs& inputs, const Layer& layer, int part, float* inverses = nullptr,
              float* after_inverses = nullptr) {
        add<Kind>(out, inputs, x.data, layer.after[part], after_inverses);
        if (!model.norm_first) normalize_all(layer.norms[part], inputs.rows, inverses);
    }

    // to += what a product gives, by a norm of its own if it has one.
    template <typename Kind>
    void add(const Matrix& out, const Inputs& inputs, float* to, const Norm& after, float* inverses = nullptr) {
        if (!after.gain) return product<Kind>(out, inputs, to, ADD);
        const int64_t size = model.d_model_padded;
        float* apart = y.of(inputs.rows * size);
        product<Kind>(out, inputs, apart);
        for (int64_t r = 0; r < inputs.rows; r++) {
            const float inverse = normalize(model, after, apart + r * size, apart + r * size);
            if (inverses) inverses[r] = inverse;
            for (int64_t c = r * size; c < (r + 1) * size; c += LANES) write(to + c, read(to + c) + read(apart + c));
        }
    }

    void norm_and_rotate(float* query_and_key, const float* const* gains, int64_t position) {
        for (int part = 0; part < 2; part++) {
            normalize_heads(model, query_and_key + part * width, gains[part]);
            if (model.cosines) rotate(model, query_and_key + part * width, position);
        }
    }

    template <typename Kind>
    void feed_forward(const Layer& layer, int part, int64_t rows, float* inverses = nullptr) {
        const int64_t size = model.d_model_padded, room = model.d_ff;
        Inputs all = sublayer_inputs<Kind>(layer.norms[part], rows);
        int64_t stride = room / Kind::GROUP * 4;
        int64_t own = all.rows * all.stride / 4;  // the second product's inputs lie behind the first one's
        prepared.of(own + ROWS_AT_ONCE * stride / 4);
        all.data = (uint8_t*)prepared.data;
        std::vector<float> own_scales(ROWS_AT_ONCE);
        for (int64_t first = 0; first < rows; first += ROWS_AT_ONCE) {
            int64_t some = std::min(ROWS_AT_ONCE, rows - first);
            float *inner = wide.of(2 * ROWS_AT_ONCE * room), *gate = inner + ROWS_AT_ONCE * room;
            if (layer.gate.weights) {
                product<Kind>(layer.inner, all.from(first, some), inner);
                product<Kind>(layer.gate, all.from(first, some), gate, ACTIVATE, model.activation);
                for (int64_t c = 0; c < some * room; c += LANES) write(inner + c, read(inner + c) * read(gate + c));
            } else {
                product<Kind>(layer.inner, all.from(first, some), inner, ACTIVATE, model.activation);
            }
            Inputs inputs{(uint8_t*)(prepared.data + own), stride, some, own_scales.data()};
            for (int64_t r = 0; r < some; r++)
                prepare(Kind(), inner + r * room, room, inputs.data + r * stride, inputs.scales + r);
            add<Kind>(layer.outer, inputs, x.data + first * size, layer.after[part]);
        }
        if (!model.norm_first) normalize_all(layer.norms[part], rows, inverses);
    }

    void embed(const float* tokens, const float* positions, const Norm& norm, const int32_t* ids, const int64_t* times,
               const float* beside, int64_t rows) {
        const int64_t size = model.d_model_padded;
        x.of(rows * size);
        for (int64_t r = 0; r < rows; r++)
            for (int64_t c = 0; c < size; c += LANES) {
                vector sum = read(tokens + ids[r] * size + c);
                if (beside) sum += read(beside + r * size + c);
                sum *= float(model.embedding_scale);
                if (positions) sum += read(positions + times[r] * size + c);
                write(x.data + r * size + c, sum);
            }
        normalize_all(norm, rows);
    }

    // The encoder's final states of texts that lie end to end, into `x`; `ends` are where they end.
    template <typename Kind>
    void read_texts(int64_t count, const int32_t* ids, const int64_t* ends) {
        const int64_t rows = ends[count - 1];
        std::vector<int64_t> positions(rows);
        for (int64_t s = 0, r = 0; s < count; s++)
            for (int64_t begin = r; r < ends[s]; r++) positions[r] = r - begin;
        embed(model.src_tokens, model.src_positions, model.src_norm, ids, positions.data(), nullptr, rows);
        for (int64_t l = 0; l < model.num_encoder_layers; l++) {
            const Layer& layer = model.encoder[l];
            float *all = qkv.of(rows * 3 * width), *to = context.of(rows * width);
            product<Kind>(layer.self_qkv, sublayer_inputs<Kind>(layer.norms[0], rows), all);
            for (int64_t r = 0; r < rows; r++) norm_and_rotate(all + r * 3 * width, layer.self_gains, positions[r]);
            for (int64_t s = 0, begin = 0; s < count; begin = ends[s++]) {
                const float *query = all + begin * 3 * width, *first = query + width;
                const int64_t len = ends[s] - begin, stride = 3 * width;
                attend_all<QUERIES_AT_ONCE>(model, len, query, stride, to + begin * width, len, weights,
                                            [=](int64_t j) { return first + j * stride; });
            }
            join<Kind>(layer.self_out, inputs_of<Kind>(to, width, rows), layer, 0);
            feed_forward<Kind>(layer, 1, rows);
        }
        normalize_all(model.encoder_norm, rows);
    }

    // Sentences end to end, each into a slot of its own; `ends` are where they end. The same of what each may become:
    // nothing where all is allowed.
    template <typename Kind>
    void encode(int64_t count, const int64_t* into, const int32_t* ids, const int64_t* ends, const int32_t* allowed,
                const int64_t* allowed_ends) {
        const int64_t rows = ends[count - 1];
        read_texts<Kind>(count, ids, ends);
        Inputs memory = inputs_of<Kind>(x.data, model.d_model_padded, rows);
        for (int64_t l = 0; l < model.num_decoder_layers; l++) {
            float* both = qkv.of(rows * 2 * width);
            product<Kind>(model.decoder[l].cross_kv, memory, both);
            for (int64_t r = 0; r < rows; r++) normalize_heads(model, both + r * 2 * width, model.decoder[l].cross_gains[1]);
            for (int64_t s = 0; s < count; s++) {
                int64_t begin = s ? ends[s - 1] : 0, size = (ends[s] - begin) * 2 * width;
                Slot& slot = slots[into[s]];
                slot.memory_len = ends[s] - begin, slot.is_recorded = false;
                cache(both + begin * 2 * width, size, slot.memory[l].of<typename Kind::Cached>(size));
            }
        }
        for (int64_t s = 0; s < count; s++)
            slots[into[s]].allowed.assign(allowed + (s ? allowed_ends[s - 1] : 0), allowed + allowed_ends[s]);
    }

    // New positions of hypotheses: row r is the token at times[r] of place[r] in its slot. It attends to its own time and
    // to those before, each of which lies in the place that `ancestors` names. Rows of one call may follow each other.
    // Slots, places and times are the search's sentences, beams and positions.
    template <typename Kind>
    void decode(int64_t rows, const int64_t* of, const int64_t* place, const int64_t* times, const int32_t* tokens,
                const int32_t* ancestors, int64_t stride, const float* beside, const Look& look) {
        embed(model.tgt_tokens, model.tgt_positions, model.tgt_norm, tokens, times, beside, rows);
        const bool is_recorded = std::any_of(of, of + rows, [&](int64_t slot) { return slots[slot].is_recorded; });
        const bool traces = look.readout || is_recorded;
        if (traces) trace.begin(model.num_decoder_layers, rows);
        auto norm_of = [&](int64_t l, int part) { return traces ? trace.norm(l, part) : nullptr; };
        for (int64_t l = 0; l < model.num_decoder_layers; l++) {
            const Layer& layer = model.decoder[l];
            float *all = qkv.of(rows * 3 * width), *to = context.of(rows * width);
            product<Kind>(layer.self_qkv, sublayer_inputs<Kind>(layer.norms[0], rows), all);
            for (int64_t r = 0; r < rows; r++) {
                float* row = all + r * 3 * width;
                norm_and_rotate(row, layer.self_gains, times[r]);
                auto* past = slots[of[r]].past[l].of<typename Kind::Cached>((times[r] + 1) * places * 2 * width);
                cache(row + width, 2 * width, past + (times[r] * places + place[r]) * 2 * width);
            }
            for (int64_t r = 0; r < rows; r++) {
                const auto* past = (const typename Kind::Cached*)slots[of[r]].past[l].data;
                const int32_t* before = ancestors + r * stride;
                const int64_t now = times[r], here = place[r], step = places, size = 2 * width;
                attend<1>(model, all + r * 3 * width, 0, to + r * width, now + 1, weights,
                          [=](int64_t j) { return past + (j * step + (j < now ? before[j] : here)) * size; });
            }
            join<Kind>(layer.self_out, inputs_of<Kind>(to, width, rows), layer, 0, norm_of(l, 0));
            if (layer.cross_query.weights) {
                product<Kind>(layer.cross_query, sublayer_inputs<Kind>(layer.norms[1], rows), all);
                float* seen = l == model.num_decoder_layers - 1 && !look.readout ? look.rows : nullptr;
                for (int64_t r = 0; r < rows; r++) {
                    const Slot& slot = slots[of[r]];
                    const auto* memory = (const typename Kind::Cached*)slot.memory[l].data;
                    const int64_t size = 2 * width;
                    normalize_heads(model, all + r * width, layer.cross_gains[0]);
                    attend<1>(model, all + r * width, 0, to + r * width, slot.memory_len, weights,
                              [=](int64_t j) { return memory + j * size; }, seen ? seen + r * look.keys : nullptr);
                }
                if (seen && look.alone) return;
                if (traces) std::memcpy(trace.queries[l].of(rows * width), all, rows * width * sizeof(float));
                join<Kind>(layer.cross_out, inputs_of<Kind>(to, width, rows), layer, 1, norm_of(l, 1),
                           traces ? trace.after.data() + l * rows : nullptr);
            }
            const int last = layer.cross_query.weights ? 2 : 1;
            feed_forward<Kind>(layer, last, rows, norm_of(l, last));
        }
        normalize_all(model.decoder_norm, rows, traces ? trace.last.data() : nullptr);
        if (is_recorded) record(rows, of, place, times);
        if (look.readout) write_shares<typename Kind::Cached>(rows, of, look);
    }

    // The numbers that a step keeps of a row: of each layer the queries and what four norms multiplied with, and of the last norm.
    int64_t trace_size() const { return model.num_decoder_layers * (width + 4) + 1; }

    void record(int64_t rows, const int64_t* of, const int64_t* place, const int64_t* times) {
        for (int64_t r = 0; r < rows; r++) {
            Slot& slot = slots[of[r]];
            if (!slot.is_recorded) continue;
            float* to = slot.trace.of((times[r] + 1) * places * trace_size()) + (times[r] * places + place[r]) * trace_size();
            for (int64_t l = 0; l < model.num_decoder_layers; l++, to += width + 4) {
                std::memcpy(to, trace.queries[l].data + r * width, width * sizeof(float));
                for (int part = 0; part < 3; part++) to[width + part] = trace.norm(l, part)[r];
                to[width + 3] = trace.after[l * rows + r];
            }
            *to = trace.last[r];
        }
    }

    // Put what was kept of a hypothesis, whose `ancestors` say where it stood, in the place of what a step of all its rows keeps.
    void recall(const Slot& slot, int64_t rows, const int32_t* ancestors) {
        trace.begin(model.num_decoder_layers, rows);
        for (int64_t r = 0; r < rows; r++) {
            const float* from = slot.trace.data + (r * places + ancestors[r]) * trace_size();
            for (int64_t l = 0; l < model.num_decoder_layers; l++, from += width + 4) {
                std::memcpy(trace.queries[l].of(rows * width) + r * width, from, width * sizeof(float));
                for (int part = 0; part < 3; part++) trace.norm(l, part)[r] = from[width + part];
                trace.after[l * rows + r] = from[width + 3];
            }
            trace.last[r] = *from;
        }
    }

    void go_back_all(const Norm& norm, const float* inverses, int64_t rows, float* to) {
        for (int64_t r = 0; r < rows && norm.gain; r++) go_back(model, norm, inverses[r], to + r * model.d_model_padded);
    }

    // The readout goes back through the norms, from the last layer to the first; what each layer's attention to the source
    // added to the states is met on the way.
    template <typename Cached>
    void write_shares(int64_t rows, const int64_t* of, const Look& look) {
        const int64_t size = model.d_model_padded;
        float *direction = directions.of(2 * rows * size), *apart = direction + rows * size;
        std::vector<double> spread(2 * rows, 0.0);
        std::memcpy(direction, look.readout, rows * size * sizeof(float));
        go_back_all(model.decoder_norm, trace.last.data(), rows, direction);
        for (int64_t l = model.num_decoder_layers - 1; l >= 0; l--) {
            const Layer& layer = model.decoder[l];
            for (int part = 2; part >= 1 && !model.norm_first; part--) go_back_all(layer.norms[part], trace.norm(l, part), rows, direction);
            std::memcpy(apart, direction, rows * size * sizeof(float));
            go_back_all(layer.after[1], trace.after.data() + l * rows, rows, apart);
            float* wanted = context.of(rows * width);
            product<Float32>(layer.cross_back, inputs_of<Float32>(apart, size, rows), wanted);
            for (int64_t r = 0; r < rows; r++) {
                const Slot& slot = slots[of[r]];
                carry(model, trace.queries[l].data + r * width, wanted + r * width, (const Cached*)slot.memory[l].data, slot.memory_len,
                      weights, look.rows + r * look.keys, spread.data() + 2 * r);
            }
            if (!model.norm_first) go_back_all(layer.norms[0], trace.norm(l, 0), rows, direction);
        }
        for (int64_t r = 0; r < rows; r++) {
            const double most = spread[2 * r] * std::log(double(slots[of[r]].memory_len));
            look.evenness[r] = most > 0 ? float(spread[2 * r + 1] / most) : 0.0f;
        }
    }
};

// The `count` largest of a row and their places, largest first, the lower place among equals.
void largest_of(const float* x, int64_t size, int64_t count, float* best, int32_t* ids, std::vector<float>& tops) {
    constexpr int64_t BLOCK = 4 * LANES;
    int64_t filled = 0;
    for (int64_t block = 0; block < size; block += BLOCK) {
        if (filled == count && !(tops[block / BLOCK] > best[count - 1])) continue;
        for (int64_t c = block; c < std::min(block + BLOCK, size); c++) {
            if (filled == count && !(x[c] > best[count - 1])) continue;
            int64_t at = filled < count ? filled++ : count - 1;
            for (; at > 0 && x[c] > best[at - 1]; at--) best[at] = best[at - 1], ids[at] = ids[at - 1];
            best[at] = x[c], ids[at] = int32_t(c);
        }
    }
}

// The log of the sum of the exponentials: a logit less this is a log-probability. `tops` becomes the largest logit of
// each block, for `largest_of`.
float log_of_sum(const float* x, int64_t size, std::vector<float>& tops) {
    constexpr int64_t BLOCK = 4 * LANES;
    tops.resize((size + BLOCK - 1) / BLOCK);
    vector largest = vector{} - std::numeric_limits<float>::infinity(), sum{};
    for (int64_t block = 0; block < size; block += BLOCK) {
        vector top = read(x + block);
        for (int64_t c = block + LANES; c < std::min(block + BLOCK, size); c += LANES) top = greater_of(read(x + c), top);
        tops[block / BLOCK] = across(top, greater_of);
        largest = greater_of(top, largest);
    }
    float most = across(largest, greater_of);
    for (int64_t c = 0; c < size; c += LANES) sum += exponential(read(x + c) - most);
    return most + std::log(across(sum, sum_of));
}

template <typename Kind>
void step(Session& session, int64_t rows, const int64_t* slots, const int64_t* places, const int64_t* times,
          const int32_t* tokens, const int32_t* ancestors, int64_t stride, const float* beside, const int64_t* wanted,
          int64_t num_wanted, const int32_t* banned, const int64_t* ban_ends, const int32_t* forced, int64_t count, float* best,
          int32_t* ids, float* all_log_probs, bool as_logits, const Look& look) {
    const Model& model = session.model;
    session.decode<Kind>(rows, slots, places, times, tokens, ancestors, stride, beside, look);
    const int64_t size = model.d_model_padded, vocab_size = model.vocab_size;
    const float nothing = -std::numeric_limits<float>::infinity();
    std::vector<float> tops;
    float* y = session.y.of(ROWS_AT_ONCE * size);
    for (int64_t first = 0, some; first < num_wanted; first += some) {
        Slot& slot = session.slots[slots[wanted[first]]];
        const std::vector<int32_t>& allowed = slot.allowed;
        auto alike = [&](int64_t n) {  // rows of one slot, or any without a list
            Slot& other = session.slots[slots[wanted[n]]];
            return allowed.empty() ? other.allowed.empty() : &other == &slot;
        };
        for (some = 1; some < ROWS_AT_ONCE && first + some < num_wanted && alike(first + some);) some++;
        for (int64_t r = 0; r < some; r++)
            std::memcpy(y + r * size, session.x.data + wanted[first + r] * size, size * sizeof(float));
        const int64_t known = allowed.empty() ? vocab_size : allowed.size(), entries = padded(known);
        float* logits = session.wide.of(some * entries);
        const Inputs inputs = session.inputs_of<Kind>(y, size, some);
        if (allowed.empty())
            product<Kind>(model.projection, inputs, logits);
        else
            product_of<Kind>(model.listed, allowed, inputs, logits);
        for (int64_t r = 0; r < some; r++) {
            float* row = logits + r * entries;
            int64_t n = first + r;
            float total = count || !as_logits ? log_of_sum(row, entries, tops) : 0.0f, less = as_logits ? 0.0f : total;
            float* all = all_log_probs ? all_log_probs + n * vocab_size : nullptr;
            if (all && !allowed.empty()) std::fill(all, all + vocab_size, nothing);
            for (int64_t c = 0; c < known && all; c++) all[allowed.empty() ? c : allowed[c]] = row[c] - less;
            auto logit_of = [&](int32_t id) -> float* {  // none where the id is not allowed
                if (allowed.empty()) return row + id;
                auto at = std::lower_bound(allowed.begin(), allowed.end(), id);
                return at != allowed.end() && *at == id ? row + (at - allowed.begin()) : nullptr;
            };
            if (forced && forced[n] >= 0 && count) {
                const float* logit = logit_of(forced[n]);
                std::fill(best + n * count, best + (n + 1) * count, nothing);
                best[n * count] = (logit ? *logit : nothing) - total, ids[n * count] = forced[n];
                continue;
            }
            for (int64_t b = n ? ban_ends[n - 1] : 0; b < ban_ends[n]; b++)
                if (float* logit = logit_of(banned[b])) *logit = nothing;
            if (count) largest_of(row, known, count, best + n * count, ids + n * count, tops);
            for (int64_t c = 0; c < std::min(count, known); c++) {
                best[n * count + c] -= total;
                if (!allowed.empty()) ids[n * count + c] = allowed[ids[n * count + c]];
            }
        }
    }
}

// Steps of beams. What is chosen here is what `best_extensions` of decoding/extensions.py chooses, number for number.

struct Candidate {
    float total, log_prob;
    int32_t id, parent;
};

// The `width` best of all candidates, best first; of equals the earlier one.
void choose(std::vector<Candidate>& candidates, int64_t width) {
    for (int64_t n = 0; n < width; n++) {
        size_t best = n;
        for (size_t other = n + 1; other < candidates.size(); other++)
            if (candidates[other].total > candidates[best].total) best = other;
        std::rotate(candidates.begin() + n, candidates.begin() + best, candidates.begin() + best + 1);
    }
}

// Gives each place the history of its parent's.
template <typename T>
void follow(T* rows, int64_t stride, int64_t length, const std::vector<Candidate>& parents, int64_t width, std::vector<char>& kept) {
    kept.resize(width * length * sizeof(T));
    for (int64_t b = 0; b < width; b++) std::memcpy(kept.data() + b * length * sizeof(T), rows + parents[b].parent * stride, length * sizeof(T));
    for (int64_t b = 0; b < width; b++) std::memcpy(rows + b * stride, kept.data() + b * length * sizeof(T), length * sizeof(T));
}

// The rows of a step of beams, one for each live hypothesis.
struct Live {
    std::vector<int64_t> slots, places, times, wanted, ban_ends;
    std::vector<int32_t> tokens, ancestors, banned, ids;
    std::vector<float> best;

    Live(const Beams& beams, int64_t count, const int64_t* active, int64_t width, const int32_t* ban, int64_t num_banned) {
        int64_t longest = 0;
        for (int64_t a = 0; a < count; a++) longest = std::max(longest, beams.lengths[active[a]] + 1);
        for (int64_t a = 0; a < count; a++)
            for (int64_t b = 0; b < width; b++) {
                int64_t place = active[a] * beams.places + b;
                if (!(beams.log_probs[place] > -std::numeric_limits<float>::infinity())) continue;
                wanted.push_back(slots.size());
                slots.push_back(active[a]), places.push_back(b), times.push_back(beams.lengths[active[a]]);
                tokens.push_back(beams.newest[place]);
                const int32_t* past = beams.ancestors + place * beams.room;
                ancestors.insert(ancestors.end(), past, past + longest);
                banned.insert(banned.end(), ban, ban + num_banned);
                ban_ends.push_back(banned.size());
            }
        best.assign(slots.size() * width, -std::numeric_limits<float>::infinity());
        ids.assign(slots.size() * width, 0);
    }
    int64_t longest() const { return slots.empty() ? 0 : ancestors.size() / slots.size(); }
};

// Extends the beams of some slots by what was found for their live hypotheses.
struct Extension {
    const Beams& beams;
    const Live& live;
    int64_t width, row = 0;
    std::vector<Candidate> candidates;
    std::vector<char> kept;

    // False where there is no finite number: then nothing is changed.
    bool extend(int64_t slot, float* scores, uint8_t* ended, float* bound) {
        const float nothing = -std::numeric_limits<float>::infinity();
        candidates.clear();
        bool is_number = true;
        float most = nothing;
        for (int64_t b = 0; b < width; b++) {
            float before = beams.log_probs[slot * beams.places + b];
            bool is_live = before > nothing;
            for (int64_t c = 0; c < width; c++) {
                Candidate one{nothing, nothing, 0, int32_t(b)};
                if (is_live) one.log_prob = live.best[row * width + c], one.id = live.ids[row * width + c];
                if (is_live) one.total = before + one.log_prob;
                is_number = is_number && one.total == one.total;
                most = std::max(most, one.total);
                candidates.push_back(one);
            }
            row += is_live;
        }
        if (!is_number || !std::isfinite(most)) return false;
        choose(candidates, width);
        record(slot);
        score(slot, scores, ended, bound);
        return true;
    }

    void record(int64_t slot) {
        const int64_t length = beams.lengths[slot], first = slot * beams.places, stride = beams.room;
        if (width > 1) {
            follow(beams.tokens + first * stride, stride, length, candidates, width, kept);
            follow(beams.ancestors + first * stride, stride, length, candidates, width, kept);
            follow(beams.token_log_probs + first * stride, stride, length, candidates, width, kept);
        }
        for (int64_t b = 0; b < width; b++) {
            const Candidate& chosen = candidates[b];
            const int64_t at = (first + b) * stride + length;
            beams.tokens[at] = beams.newest[first + b] = chosen.id;
            beams.ancestors[at] = chosen.parent;
            beams.token_log_probs[at] = chosen.log_prob;
            beams.log_probs[first + b] = b < beams.sizes[slot] ? chosen.total : -std::numeric_limits<float>::infinity();
        }
    }

    // The scores, which of them ended, and what none that goes on can be above.
    // A log-probability only falls, and the penalty is largest at one end of the lengths that are left.
    void score(int64_t slot, float* scores, uint8_t* ended, float* bound) {
        const float* penalties = beams.penalties + slot * beams.most;
        const int64_t length = beams.lengths[slot] + 1;
        float best = -std::numeric_limits<float>::infinity();
        for (int64_t b = 0; b < width; b++) {
            float total = beams.log_probs[slot * beams.places + b];
            scores[b] = total / penalties[length];
            ended[b] = candidates[b].id == beams.eos_ids[slot] && total > -std::numeric_limits<float>::infinity();
            if (!ended[b]) best = std::max(best, total);
        }
        *bound = best / std::max(penalties[beams.max_lens[slot]], penalties[length + 1]);
    }
};

}  // namespace

extern "C" {

int64_t decoding_lanes() { return LANES; }
int64_t decoding_int8_group() { return Int8::GROUP; }

Session* decoding_session(const Model* model, int64_t slots, int64_t places) {
    Session* made = nullptr;
    guarded([&] { made = new Session(*model, slots, places); });
    return made;
}

void decoding_end(Session* session) { delete session; }

int decoding_encode(Session* session, int64_t count, const int64_t* into, const int32_t* ids, const int64_t* ends,
                    const int32_t* allowed, const int64_t* allowed_ends) {
    return guarded([&] {
        auto go = [&](auto kind) { session->encode<decltype(kind)>(count, into, ids, ends, allowed, allowed_ends); };
        if (session->model.kind == INT8) go(Int8());
        if (session->model.kind == BFLOAT16) go(BFloat16());
        if (session->model.kind == FLOAT32) go(Float32());
    });
}

// The bytes that a layer keeps of a source of so many tokens.
static int64_t memory_bytes(const Session& session, int64_t len) {
    return len * 2 * session.width * (session.model.kind == FLOAT32 ? sizeof(float) : sizeof(bfloat16));
}

// The bytes of a slot's memory, all layers.
int64_t decoding_memory_size(Session* session, int64_t slot) {
    return session->model.num_decoder_layers * memory_bytes(*session, session->slots[slot].memory_len);
}

void decoding_copy_memory(Session* session, int64_t slot, uint8_t* to) {
    const int64_t size = memory_bytes(*session, session->slots[slot].memory_len);
    for (int64_t l = 0; l < session->model.num_decoder_layers; l++)
        std::memcpy(to + l * size, session->slots[slot].memory[l].data, size);
}

// The same back into a slot, as if its source of so many tokens had been read there, with all ids allowed.
int decoding_restore(Session* session, int64_t slot, int64_t len, const uint8_t* from) {
    return guarded([&] {
        const int64_t size = memory_bytes(*session, len);
        Slot& into = session->slots[slot];
        into.memory_len = len, into.is_recorded = false, into.allowed.clear();
        for (int64_t l = 0; l < session->model.num_decoder_layers; l++) std::memcpy(into.memory[l].of<uint8_t>(size), from + l * size, size);
    });
}

// From the next step on, what shares are made of is kept of a slot's hypotheses, until another source is read into it.
void decoding_record(Session* session, int64_t slot) { session->slots[slot].is_recorded = true; }

// What a step of all rows of a recorded hypothesis writes with this `readout`; `shares` have `keys` numbers a row.
int decoding_shares(Session* session, int64_t slot, int64_t rows, const int32_t* ancestors, const float* readout, float* shares,
                    int64_t keys, float* evenness) {
    return guarded([&] {
        if (session->slots[slot].memory_len > keys) throw std::invalid_argument("the shares have no room for a source");
        if (!session->slots[slot].is_recorded) throw std::invalid_argument("nothing was recorded");
        session->recall(session->slots[slot], rows, ancestors);
        std::fill(shares, shares + rows * keys, 0.0f);
        const std::vector<int64_t> of(rows, slot);
        const Look look{shares, keys, true, readout, evenness};
        if (session->model.kind == FLOAT32) session->write_shares<float>(rows, of.data(), look);
        else session->write_shares<bfloat16>(rows, of.data(), look);
    });
}

// The encoder's final states of texts, d_model numbers a token.
int decoding_states(Session* session, int64_t count, const int32_t* ids, const int64_t* ends, float* states) {
    return guarded([&] {
        refuse_unknown(session->model.activation);
        auto go = [&](auto kind) { session->read_texts<decltype(kind)>(count, ids, ends); };
        if (session->model.kind == INT8) go(Int8());
        if (session->model.kind == BFLOAT16) go(BFloat16());
        if (session->model.kind == FLOAT32) go(Float32());
        const int64_t size = session->model.d_model, stride = session->model.d_model_padded;
        for (int64_t r = 0; r < ends[count - 1]; r++)
            std::memcpy(states + r * size, session->x.data + r * stride, size * sizeof(float));
    });
}

int decoding_step(Session* session, int64_t rows, const int64_t* slots, const int64_t* places, const int64_t* times,
                  const int32_t* tokens, const int32_t* ancestors, int64_t stride, const float* beside, const int64_t* wanted,
                  int64_t num_wanted, const int32_t* banned, const int64_t* ban_ends, const int32_t* forced, int64_t count,
                  float* best, int32_t* ids, float* all_log_probs, int64_t as_logits, float* attention, int64_t keys,
                  const float* readout, float* evenness) {
    return guarded([&] {
        refuse_unknown(session->model.activation);
        for (int64_t r = 0; r < rows && attention; r++)
            if (session->slots[slots[r]].memory_len > keys) throw std::invalid_argument("the attention has no room for a source");
        if (attention) std::fill(attention, attention + rows * keys, 0.0f);
        const Look look{attention, keys, num_wanted == 0, readout, evenness};
        auto go = [&](auto kind) {
            step<decltype(kind)>(*session, rows, slots, places, times, tokens, ancestors, stride, beside, wanted, num_wanted,
                                 banned, ban_ends, forced, count, best, ids, all_log_probs, as_logits, look);
        };
        if (session->model.kind == INT8) go(Int8());
        if (session->model.kind == BFLOAT16) go(BFloat16());
        if (session->model.kind == FLOAT32) go(Float32());
    });
}

// A step of the beams of some slots, `width` places of each, in which nothing is drawn or forced and every row bans the
// same ids. Where a slot is `broken`, nothing of it has changed. `events` counts what is to be looked at: hypotheses that
// ended, and slots that are broken or done.
int decoding_advance(Session* session, const Beams* beams, int64_t count, const int64_t* active, int64_t width,
                     const int32_t* banned, int64_t num_banned, float* scores, uint8_t* ended, float* bounds, uint8_t* broken,
                     int64_t* events) {
    int status = 0;
    int failed = guarded([&] {
        Live live(*beams, count, active, width, banned, num_banned);
        const int64_t rows = live.slots.size();
        if (rows)
            status = decoding_step(session, rows, live.slots.data(), live.places.data(), live.times.data(), live.tokens.data(),
                                   live.ancestors.data(), live.longest(), nullptr, live.wanted.data(), rows, live.banned.data(),
                                   live.ban_ends.data(), nullptr, width, live.best.data(), live.ids.data(), nullptr, 0, nullptr, 0, nullptr,
                                   nullptr);
        if (status) return;
        Extension extension{*beams, live, width, 0, {}, {}};
        *events = 0;
        for (int64_t a = 0; a < count; a++) {
            const int64_t slot = active[a];
            broken[a] = !extension.extend(slot, scores + a * width, ended + a * width, bounds + a);
            *events += broken[a];
            if (broken[a]) continue;
            const int64_t length = ++beams->lengths[slot];
            *events += std::count(ended + a * width, ended + (a + 1) * width, 1);
            *events += bounds[a] <= beams->worst_scores[slot] || length >= beams->max_lens[slot];
        }
    });
    return failed ? failed : status;
}
}
