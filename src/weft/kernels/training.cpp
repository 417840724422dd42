// What a training step does beside its matrix products, each in one pass over memory: dropout, layer norm,
// attention over short sequences, cross-entropy, transposition.
//
// Plain C functions over pointers, called from native.py. The PyTorch forms that they are tested against stand in
// operations.py. `low` is the type of products: float, or bfloat16 as raw 16 bits. Whatever is added up is added up
// as float32, in an order that does not depend on the number of threads.

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <utility>
#include <vector>

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

// e^x to about 2 units in the last place, for x <= 88; 0 below -87. A polynomial that compilers make vectors of.
inline float exponential(float x) {
    float y = std::max(x, -87.0f) * 1.44269504f;
    float whole = std::nearbyint(y);
    float r = (y - whole) * 0.693147181f;
    float p = 1.0f + r * (1.0f + r * (0.5f + r * (0.166666667f + r * (0.0416666667f + r * (0.00833333333f + r * 0.00138888889f)))));
    uint32_t bits = uint32_t(int32_t(whole) + 127) << 23;
    float scale;
    std::memcpy(&scale, &bits, 4);
    return x < -87.0f ? 0.0f : p * scale;
}

// Dropout without a stored mask: the same seed, row and column give the same answer on the way back. Rows get keys by
// the finalizer of splitmix64 (Steele et al. 2014), columns are mixed in by a 32-bit finalizer (multiply, shift).
struct RowKey {
    uint32_t first, second;
};
inline RowKey row_key(uint64_t seed, uint64_t row) {
    uint64_t z = seed + (row + 1) * 0x9e3779b97f4a7c15ull;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
    z ^= z >> 31;
    return {uint32_t(z), uint32_t(z >> 32)};
}
inline uint32_t mixed(RowKey key, uint32_t column) {
    uint32_t x = key.first + column * 0x9e3779b9u;
    x = (x ^ (x >> 16)) * 0x7feb352du;
    x = ((x ^ (x >> 15)) + key.second) * 0x846ca68bu;
    return x ^ (x >> 16);
}
struct Dropout {  // a number is kept, and multiplied by `scale`, where its random 32 bits reach the threshold
    uint64_t seed;
    uint32_t threshold;
    float scale;
    Dropout(double p, uint64_t seed)
        : seed(seed), threshold(uint32_t(p * 4294967296.0)), scale(float(1.0 / (1.0 - p))) {}
};
inline float factor(RowKey key, uint32_t column, uint32_t threshold, float scale) {
    return mixed(key, column) >= threshold ? scale : 0.0f;
}

constexpr int64_t SOME = 1 << 14;  // numbers below which one thread is enough
constexpr int64_t PARTS = 16;      // into which rows are cut where sums over rows are made

template <typename X, typename Y>
void add_dropped(const float* x, const X* y, Y* out, int64_t rows, int64_t cols, double p, uint64_t seed) {
    Dropout dropout(p, seed);
#pragma omp parallel for if (rows * cols > SOME)
    for (int64_t r = 0; r < rows; r++) {
        RowKey key = row_key(seed, r);
        uint32_t threshold = dropout.threshold;
        float scale = dropout.scale;
        const X* __restrict from = y + r * cols;
        const float* __restrict base = x + r * cols;
        Y* __restrict to = out + r * cols;
        if (x)
            for (int64_t c = 0; c < cols; c++) store(to + c, base[c] + factor(key, c, threshold, scale) * to_float(from[c]));
        else
            for (int64_t c = 0; c < cols; c++) store(to + c, factor(key, c, threshold, scale) * to_float(from[c]));
    }
}

template <typename T>
void relu_dropped(T* x, int64_t rows, int64_t cols, double p, uint64_t seed) {
    Dropout dropout(p, seed);
#pragma omp parallel for if (rows * cols > SOME)
    for (int64_t r = 0; r < rows; r++) {
        RowKey key = row_key(seed, r);
        uint32_t threshold = dropout.threshold;
        float scale = dropout.scale;
        T* row = x + r * cols;
#pragma GCC ivdep
        for (int64_t c = 0; c < cols; c++) {
            float value = to_float(row[c]);  // what is no number passes
            store(row + c, (value <= 0.0f ? 0.0f : value) * factor(key, c, threshold, scale));
        }
    }
}

template <typename Y>
void layer_norm(const float* x, const float* weight, const float* bias, Y* out, float* mean, float* inverse, int64_t rows,
                int64_t cols, double eps) {
#pragma omp parallel for if (rows * cols > SOME)
    for (int64_t r = 0; r < rows; r++) {
        const float* from = x + r * cols;
        Y* to = out + r * cols;
        float sum = 0, squares = 0;
        for (int64_t c = 0; c < cols; c++) sum += from[c];
        float m = sum / cols;
        for (int64_t c = 0; c < cols; c++) squares += (from[c] - m) * (from[c] - m);
        float s = 1.0f / std::sqrt(squares / cols + float(eps));
        mean[r] = m, inverse[r] = s;
        if (bias)
            for (int64_t c = 0; c < cols; c++) store(to + c, (from[c] - m) * s * weight[c] + bias[c]);
        else
            for (int64_t c = 0; c < cols; c++) store(to + c, (from[c] - m) * s * weight[c]);
    }
}

template <typename Y>
void layer_norm_backward(const Y* gradient, const float* x, const float* weight, const float* mean, const float* inverse,
                         float* to, float* weight_gradient, float* bias_gradient, int64_t rows, int64_t cols) {
    std::vector<float> sums(PARTS * 2 * cols, 0.0f);
#pragma omp parallel for if (rows * cols > SOME)
    for (int64_t part = 0; part < PARTS; part++) {
        float *for_weight = &sums[part * 2 * cols], *for_bias = for_weight + cols;
        for (int64_t r = rows * part / PARTS; r < rows * (part + 1) / PARTS; r++) {
            const Y* g = gradient + r * cols;
            const float* from = x + r * cols;
            float m = mean[r], s = inverse[r], sum = 0, product = 0;
            for (int64_t c = 0; c < cols; c++) {
                float given = to_float(g[c]), normal = (from[c] - m) * s, scaled = given * weight[c];
                for_weight[c] += given * normal;
                for_bias[c] += given;
                sum += scaled;
                product += scaled * normal;
            }
            sum /= cols, product /= cols;
            for (int64_t c = 0; c < cols; c++)
                to[r * cols + c] = s * (to_float(g[c]) * weight[c] - sum - (from[c] - m) * s * product);
        }
    }
    for (int64_t part = 0; part < PARTS; part++)
        for (int64_t c = 0; c < cols; c++) {
            weight_gradient[c] += sums[part * 2 * cols + c];
            if (bias_gradient) bias_gradient[c] += sums[part * 2 * cols + cols + c];
        }
}

// Sixteen rows of sixteen numbers, transposed by four rounds of interleaving rows i and i + 8.
template <typename Lanes, size_t... I>
inline void interleaved(const Lanes& a, const Lanes& b, Lanes* to, std::index_sequence<I...>) {
    to[0] = __builtin_shufflevector(a, b, (I / 2 + (I % 2) * 16)...);
    to[1] = __builtin_shufflevector(a, b, (8 + I / 2 + (I % 2) * 16)...);
}
template <typename Lanes>
inline void turned(Lanes* rows) {
    Lanes other[16];
    for (int round = 0; round < 4; round++) {
        for (int i = 0; i < 8; i++) interleaved(rows[i], rows[i + 8], other + 2 * i, std::make_index_sequence<16>());
        std::memcpy(rows, other, sizeof(other));
    }
}

// The transpose of x, whose rows lie `stride` apart, some of it at a time: each panel is copied to a place of its own, as
// short visits to many rows would wait for memory most of the time.
template <typename T, typename Lanes, typename Out>
void transposed(const T* x, Out* out, int64_t rows, int64_t cols, int64_t stride) {
    constexpr int64_t SIDE = 16, HIGH = 128, WIDE = 128;
#pragma omp parallel for if (rows * cols > SOME)
    for (int64_t left = 0; left < cols; left += WIDE) {
        int64_t width = std::min(WIDE, cols - left);
        T panel[HIGH][WIDE] = {}, across[WIDE][HIGH];
        for (int64_t top = 0; top < rows; top += HIGH) {
            int64_t height = std::min(HIGH, rows - top);
            for (int64_t r = 0; r < height; r++) std::memcpy(panel[r], x + (top + r) * stride + left, width * sizeof(T));
            for (int64_t r = 0; r < height; r += SIDE)
                for (int64_t c = 0; c < width; c += SIDE) {
                    Lanes block[SIDE];
                    for (int64_t i = 0; i < SIDE; i++) std::memcpy(block + i, &panel[r + i][c], sizeof(Lanes));
                    turned(block);
                    for (int64_t i = 0; i < SIDE; i++) std::memcpy(&across[c + i][r], block + i, sizeof(Lanes));
                }
            for (int64_t c = 0; c < width; c++)
                for (int64_t r = 0; r < height; r++) store(out + (left + c) * rows + top + r, to_float(across[c][r]));
        }
    }
}

// Adds the columns of x to `sums`. With a gate, what came out of dropout(max(x, 0)), x is a gradient that first passes back
// through it, in place: what came out greater than 0 lets it pass.
template <typename T>
void column_sums(T* x, const T* gate, double p, float* sums, int64_t rows, int64_t cols, int64_t stride) {
    std::vector<float> parts(PARTS * cols, 0.0f);
    float scale = float(1.0 / (1.0 - p));
#pragma omp parallel for if (rows * cols > SOME)
    for (int64_t part = 0; part < PARTS; part++) {
        float* total = &parts[part * cols];
        for (int64_t r = rows * part / PARTS; r < rows * (part + 1) / PARTS; r++) {
            T* row = x + r * stride;
            const T* passed = gate + r * cols;
            if (gate)
#pragma GCC ivdep
                for (int64_t c = 0; c < cols; c++) {
                    float value = scale * to_float(row[c]);
                    store(row + c, to_float(passed[c]) > 0.0f ? value : 0.0f);
                }
            if (sums)
#pragma GCC ivdep
                for (int64_t c = 0; c < cols; c++) total[c] += to_float(row[c]);
        }
    }
    for (int64_t part = 0; part < PARTS && sums; part++)
        for (int64_t c = 0; c < cols; c++) sums[c] += parts[part * cols + c];
}

// ---- attention -------------------------------------------------------------------------------------------------

typedef float vector __attribute__((vector_size(64), aligned(4)));
constexpr int64_t LANES = 16;
inline int64_t padded(int64_t n) { return (n + LANES - 1) / LANES * LANES; }

// ROWS x COLS vectors of C = A B, held in registers while k goes over [from, to).
template <int ROWS, int COLS>
inline void tile(float* c, const float* a, const float* b, int64_t from, int64_t to, int64_t c_row, int64_t a_row,
                 int64_t a_col, int64_t b_row) {
    vector sum[ROWS][COLS] = {};
    for (int64_t k = from; k < to; k++)
        for (int i = 0; i < COLS; i++) {
            vector right = *(const vector*)(b + k * b_row + i * LANES);
            for (int r = 0; r < ROWS; r++) sum[r][i] += a[r * a_row + k * a_col] * right;
        }
    for (int r = 0; r < ROWS; r++)
        for (int i = 0; i < COLS; i++) *(vector*)(c + r * c_row + i * LANES) = sum[r][i];
}

struct Range {  // of rows or columns, in whole vectors
    int64_t from, to;
};
inline Range joined(Range a, Range b) {
    if (a.to == 0) return b;
    return b.to == 0 ? a : Range{std::min(a.from, b.from), std::max(a.to, b.to)};
}

// C = A B, four rows of C at a time; A is read one number at a time, wherever it lies, C and B by whole vectors. `inner(r)`
// is the part of k that row r needs, `outer(r)` the columns of C that it needs.
template <typename Inner, typename Outer>
void product(float* c, const float* a, const float* b, int64_t rows, int64_t c_row, int64_t a_row, int64_t a_col,
             int64_t b_row, Inner inner, Outer outer) {
    for (int64_t r = 0; r < rows; r += 4) {
        Range k = {0, 0}, n = {0, 0};
        for (int64_t i = 0; i < 4; i++) k = joined(k, inner(r + i)), n = joined(n, outer(r + i));
        float* to = c + r * c_row;
        const float* left = a + r * a_row;
        int64_t col = n.from;
        for (; col + 2 * LANES <= n.to; col += 2 * LANES)
            tile<4, 2>(to + col, left, b + col, k.from, k.to, c_row, a_row, a_col, b_row);
        for (; col < n.to; col += LANES) tile<4, 1>(to + col, left, b + col, k.from, k.to, c_row, a_row, a_col, b_row);
    }
}

}  // namespace

extern "C" {

// A tensor of (B, H, L, K), each K in one piece; strides in numbers.
struct Heads {
    void* data;
    int64_t batch, head, position;
};
// True = may attend; broadcast by strides of 0; no data = everything.
struct Mask {
    const bool* data;
    int64_t batch, head, query;
};
struct Sizes {
    int64_t batch, heads, queries, keys, width;
};
}

namespace {

// What one head of one row works on, as float32: made anew in each thread. Lengths and widths are those of whole vectors;
// what is beyond the real ones stays zero.
struct Room {
    const Sizes& s;
    int64_t queries, keys, width, mask_of = -1;
    std::vector<float> query, key, value, key_across, value_across, hidden, weights, kept, context, given, slope;
    std::vector<Range> seen, seers;  // keys that a query may see, queries that may see a key: from first to last

    Room(const Sizes& s, bool backward) : s(s), queries(padded(s.queries)), keys(padded(s.keys)), width(padded(s.width)) {
        for (auto* x : {&query}) x->resize(queries * width);
        for (auto* x : {&value, &key_across}) x->resize(keys * width);
        for (auto* x : {&hidden, &weights, &kept}) x->resize(queries * keys);
        context.resize(std::max(queries, keys) * width);
        seen.resize(queries), seers.resize(keys);
        if (!backward) return;
        given.resize(queries * width), slope.resize(queries * keys);
        for (auto* x : {&key, &value_across}) x->resize(keys * width);
    }
};

template <typename T>
T* head_of(const Heads& x, int64_t b, int64_t h) {
    return (T*)x.data + b * x.batch + h * x.head;
}

template <typename T>
void read_rows(const T* from, int64_t stride, int64_t rows, int64_t width, float* to, int64_t wide, float scale = 1.0f) {
    for (int64_t r = 0; r < rows; r++)
        for (int64_t c = 0; c < width; c++) to[r * wide + c] = scale * to_float(from[r * stride + c]);
}

// The rows that read_rows has made, as columns.
void turn_rows(const float* from, int64_t rows, int64_t width, float* to) {
    for (int64_t r = 0; r < rows; r += LANES)
        for (int64_t c = 0; c < width; c += LANES) {
            vector block[LANES];
            for (int64_t i = 0; i < LANES; i++) block[i] = *(const vector*)(from + (r + i) * width + c);
            turned(block);
            for (int64_t i = 0; i < LANES; i++) *(vector*)(to + (c + i) * rows + r) = block[i];
        }
}

template <typename T>
void write_rows(T* to, int64_t stride, int64_t rows, int64_t width, const float* from, int64_t wide, float scale = 1.0f) {
    for (int64_t r = 0; r < rows; r++)
        for (int64_t c = 0; c < width; c++) store(to + r * stride + c, scale * from[r * wide + c]);
}

// What to add to scores: nothing, or what leaves no weight; and from where to where there is something to see.
void look_at_mask(Room& room, const Mask& m, int64_t b, int64_t h) {
    int64_t mask_of = m.data ? b * m.batch + h * m.head : 0;
    if (room.mask_of == mask_of) return;
    room.mask_of = mask_of;
    std::fill(room.hidden.begin(), room.hidden.end(), -INFINITY);
    std::fill(room.seen.begin(), room.seen.end(), Range{0, 0}), std::fill(room.seers.begin(), room.seers.end(), Range{0, 0});
    for (int64_t i = 0; i < room.s.queries; i++) {
        const bool* mask = m.data ? m.data + mask_of + i * m.query : nullptr;
        for (int64_t j = 0; j < room.s.keys; j++) {
            if (mask && !mask[j]) continue;
            room.hidden[i * room.keys + j] = 0.0f;
            room.seen[i] = joined(room.seen[i], {j / LANES * LANES, padded(j + 1)});
            room.seers[j] = joined(room.seers[j], {i / LANES * LANES, padded(i + 1)});
        }
    }
}

// softmax over what each query may see, and the same after dropout; what is hidden has no weight in either.
void weigh(Room& room, const Dropout& dropout, uint64_t first_row) {
    for (int64_t i = 0; i < room.queries; i++) {
        float *w = &room.weights[i * room.keys], *kept = &room.kept[i * room.keys];
        const float* hidden = &room.hidden[i * room.keys];
        Range seen = room.seen[i];
        int64_t size = seen.to - seen.from;
        std::fill(w, w + seen.from, 0.0f), std::fill(kept, kept + seen.from, 0.0f);
        std::fill(w + seen.to, w + room.keys, 0.0f), std::fill(kept + seen.to, kept + room.keys, 0.0f);
        w += seen.from, kept += seen.from, hidden += seen.from;
        float most = -INFINITY, sum = 0;
#pragma omp simd reduction(max : most)
        for (int64_t j = 0; j < size; j++) most = std::max(most, w[j] += hidden[j]);
#pragma GCC ivdep
        for (int64_t j = 0; j < size; j++) sum += w[j] = exponential(w[j] - most);
        float share = 1.0f / sum, scale = dropout.scale;
        RowKey key = row_key(dropout.seed, first_row + i);
        uint32_t threshold = dropout.threshold, column = uint32_t(seen.from);
#pragma GCC ivdep
        for (int64_t j = 0; j < size; j++) {
            w[j] *= share;
            kept[j] = w[j] * factor(key, column + uint32_t(j), threshold, scale);
        }
    }
}

template <typename T>
void attend(Room& room, const Heads& q, const Heads& k, const Heads& v, const Mask& m, const Dropout& dropout, int64_t b,
            int64_t h, float* key_rows) {
    const Sizes& s = room.s;
    look_at_mask(room, m, b, h);
    read_rows(head_of<T>(q, b, h), q.position, s.queries, s.width, room.query.data(), room.width, 1.0f / std::sqrt(float(s.width)));
    read_rows(head_of<T>(k, b, h), k.position, s.keys, s.width, key_rows, room.width);
    turn_rows(key_rows, room.keys, room.width, room.key_across.data());
    read_rows(head_of<T>(v, b, h), v.position, s.keys, s.width, room.value.data(), room.width);
    product(
        room.weights.data(), room.query.data(), room.key_across.data(), room.queries, room.keys, room.width, 1, room.keys,
        [&](int64_t) { return Range{0, s.width}; }, [&](int64_t i) { return room.seen[i]; });
    weigh(room, dropout, uint64_t(b * s.heads + h) * s.queries);
}

// From the gradient of a row's weights after dropout to that of its scores.
void slope_of_row(Room& room, const Dropout& dropout, int64_t r, uint64_t row) {
    float* slope = &room.slope[r * room.keys];
    Range seen = room.seen[r];
    std::fill(slope, slope + seen.from, 0.0f), std::fill(slope + seen.to, slope + room.keys, 0.0f);
    slope += seen.from;
    const float* w = &room.weights[r * room.keys + seen.from];
    int64_t size = seen.to - seen.from;
    float sum = 0, scale = dropout.scale;
    RowKey key = row_key(dropout.seed, row);
    uint32_t threshold = dropout.threshold, column = uint32_t(seen.from);
#pragma GCC ivdep
    for (int64_t j = 0; j < size; j++) {
        slope[j] *= factor(key, column + uint32_t(j), threshold, scale);
        sum += slope[j] * w[j];
    }
#pragma GCC ivdep
    for (int64_t j = 0; j < size; j++) slope[j] = w[j] * (slope[j] - sum);
}

template <typename T>
void attention(const Heads& q, const Heads& k, const Heads& v, const Mask& m, const Heads& out, const Sizes& s, double p,
               uint64_t seed) {
    Dropout dropout(p, seed);
#pragma omp parallel
    {
        Room room(s, false);
        std::vector<float> key_rows(room.keys * room.width);
#pragma omp for
        for (int64_t i = 0; i < s.batch * s.heads; i++) {
            int64_t b = i / s.heads, h = i % s.heads;
            attend<T>(room, q, k, v, m, dropout, b, h, key_rows.data());
            product(
                room.context.data(), room.kept.data(), room.value.data(), room.queries, room.width, room.keys, 1, room.width,
                [&](int64_t r) { return room.seen[r]; }, [&](int64_t) { return Range{0, room.width}; });
            write_rows(head_of<T>(out, b, h), out.position, s.queries, s.width, room.context.data(), room.width);
        }
    }
}

// The weights are made again from queries and keys: that costs less than to keep them.
template <typename T>
void attention_backward(const Heads& q, const Heads& k, const Heads& v, const Mask& m, const Heads& given, const Heads& to_q,
                        const Heads& to_k, const Heads& to_v, const Sizes& s, double p, uint64_t seed) {
    Dropout dropout(p, seed);
    float scale = 1.0f / std::sqrt(float(s.width));
#pragma omp parallel
    {
        Room room(s, true);
        float *context = room.context.data(), *slope = room.slope.data();
        auto all = [&](int64_t) { return Range{0, room.width}; };
        auto seen = [&](int64_t i) { return room.seen[i]; };
        auto seers = [&](int64_t j) { return room.seers[j]; };
#pragma omp for
        for (int64_t i = 0; i < s.batch * s.heads; i++) {
            int64_t b = i / s.heads, h = i % s.heads;
            attend<T>(room, q, k, v, m, dropout, b, h, room.key.data());
            turn_rows(room.value.data(), room.keys, room.width, room.value_across.data());
            read_rows(head_of<T>(given, b, h), given.position, s.queries, s.width, room.given.data(), room.width);
            product(context, room.kept.data(), room.given.data(), room.keys, room.width, 1, room.keys, room.width, seers, all);
            write_rows(head_of<T>(to_v, b, h), to_v.position, s.keys, s.width, context, room.width);
            product(slope, room.given.data(), room.value_across.data(), room.queries, room.keys, room.width, 1, room.keys, all,
                    seen);
            for (int64_t r = 0; r < room.queries; r++) slope_of_row(room, dropout, r, uint64_t(i) * s.queries + r);
            product(context, slope, room.key.data(), room.queries, room.width, room.keys, 1, room.width, seen, all);
            write_rows(head_of<T>(to_q, b, h), to_q.position, s.queries, s.width, context, room.width, scale);
            product(context, slope, room.query.data(), room.keys, room.width, 1, room.keys, room.width, seers, all);
            write_rows(head_of<T>(to_k, b, h), to_k.position, s.keys, s.width, context, room.width);
        }
    }
}

// ---- cross-entropy ---------------------------------------------------------------------------------------------

// Per row the smoothed and the plain loss, and, where asked for, the gradient of the first. Padded rows have neither.
template <typename T>
void cross_entropy(const T* logits, const int64_t* labels, float* losses, T* slope, int64_t rows, int64_t cols,
                   double smoothing, int64_t pad) {
    float share = float(smoothing / (cols - 2)), sure = float(1.0 - smoothing);
#pragma omp parallel for if (rows * cols > SOME)
    for (int64_t r = 0; r < rows; r++) {
        const T* x = logits + r * cols;
        T* to = slope + r * cols;
        int64_t label = labels[r];
        losses[2 * r] = losses[2 * r + 1] = 0.0f;
        if (label == pad) {
            if (slope) std::memset((void*)to, 0, cols * sizeof(T));
            continue;
        }
        float most = -INFINITY, total = 0, sum = 0;
#pragma omp simd reduction(max : most)
        for (int64_t c = 0; c < cols; c++) most = std::max(most, to_float(x[c]));
        for (int64_t c = 0; c < cols; c++) {
            float value = to_float(x[c]);
            sum += value;
            total += exponential(value - most);
        }
        float log_total = std::log(total) + most, true_logit = to_float(x[label]), pad_logit = to_float(x[pad]);
        float others = sum - pad_logit - true_logit - (cols - 2) * log_total;
        losses[2 * r + 1] = log_total - true_logit;
        losses[2 * r] = sure * losses[2 * r + 1] - share * others;
        if (!slope) continue;
#pragma GCC ivdep
        for (int64_t c = 0; c < cols; c++) store(to + c, exponential(to_float(x[c]) - log_total) - share);
        store(to + pad, exponential(pad_logit - log_total));
        store(to + label, exponential(true_logit - log_total) - sure);
    }
}

}  // namespace

typedef float LANES_OF_float32 __attribute__((vector_size(64)));
typedef uint16_t LANES_OF_bfloat16 __attribute__((vector_size(32)));

#define FOR(T, NAME)                                                                                                          \
    void add_dropped_##NAME(const float* x, const T* y, float* out, int64_t rows, int64_t cols, double p, uint64_t seed) {    \
        add_dropped(x, y, out, rows, cols, p, seed);                                                                          \
    }                                                                                                                         \
    void drop_##NAME(const float* y, T* out, int64_t rows, int64_t cols, double p, uint64_t seed) {                           \
        add_dropped<float, T>(nullptr, y, out, rows, cols, p, seed);                                                          \
    }                                                                                                                         \
    void relu_dropped_##NAME(T* x, int64_t rows, int64_t cols, double p, uint64_t seed) {                                     \
        relu_dropped(x, rows, cols, p, seed);                                                                                 \
    }                                                                                                                         \
    void layer_norm_##NAME(const float* x, const float* weight, const float* bias, T* out, float* mean, float* inverse,       \
                           int64_t rows, int64_t cols, double eps) {                                                          \
        layer_norm(x, weight, bias, out, mean, inverse, rows, cols, eps);                                                     \
    }                                                                                                                         \
    void layer_norm_backward_##NAME(const T* gradient, const float* x, const float* weight, const float* mean,                \
                                    const float* inverse, float* to, float* weight_gradient, float* bias_gradient,            \
                                    int64_t rows, int64_t cols) {                                                             \
        layer_norm_backward(gradient, x, weight, mean, inverse, to, weight_gradient, bias_gradient, rows, cols);              \
    }                                                                                                                         \
    void transposed_##NAME(const T* x, T* out, int64_t rows, int64_t cols, int64_t stride) {                                  \
        transposed<T, LANES_OF_##NAME, T>(x, out, rows, cols, stride);                                                        \
    }                                                                                                                         \
    void transposed_to_float_##NAME(const T* x, float* out, int64_t rows, int64_t cols, int64_t stride) {                     \
        transposed<T, LANES_OF_##NAME, float>(x, out, rows, cols, stride);                                                    \
    }                                                                                                                         \
    void column_sums_##NAME(T* x, const T* gate, double p, float* sums, int64_t rows, int64_t cols, int64_t stride) {         \
        column_sums(x, gate, p, sums, rows, cols, stride);                                                                    \
    }                                                                                                                         \
    void attention_##NAME(const Heads* q, const Heads* k, const Heads* v, const Mask* m, const Heads* out, const Sizes* s,    \
                          double p, uint64_t seed) {                                                                          \
        attention<T>(*q, *k, *v, *m, *out, *s, p, seed);                                                                      \
    }                                                                                                                         \
    void attention_backward_##NAME(const Heads* q, const Heads* k, const Heads* v, const Mask* m, const Heads* given,         \
                                   const Heads* to_q, const Heads* to_k, const Heads* to_v, const Sizes* s, double p,         \
                                   uint64_t seed) {                                                                           \
        attention_backward<T>(*q, *k, *v, *m, *given, *to_q, *to_k, *to_v, *s, p, seed);                                      \
    }                                                                                                                         \
    void cross_entropy_##NAME(const T* logits, const int64_t* labels, float* losses, T* slope, int64_t rows, int64_t cols,    \
                              double smoothing, int64_t pad) {                                                                \
        cross_entropy(logits, labels, losses, slope, rows, cols, smoothing, pad);                                             \
    }

extern "C" {
FOR(float, float32)
FOR(bfloat16, bfloat16)
}
