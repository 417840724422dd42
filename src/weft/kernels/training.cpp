// What a training step does beside its matrix products, each in one pass over memory: dropout, layer norm,
// attention over short sequences, cross-entropy, transposition.
//
// Plain C functions over pointers, called from training.py. The PyTorch forms that they are tested against stand in
// operations.py, those of attention and cross-entropy in model/attention.py and training/loss.py. `low` is the type
// of products: float, or bfloat16 as raw 16 bits. Whatever is added up is added up as float32, in an order that does
// not depend on the number of threads.

#include "vectors.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <optional>
#include <vector>

namespace {

// Whether memory sufficed in all threads of a parallel region, which no exception may leave: what a thread needs is made
// by `make`, and a thread without it does nothing. `check` stands behind the region.
struct Memory {
    std::atomic<bool> sufficed{true};
    template <typename Make>
    void make(Make make) noexcept {
        if (guarded(make) != 0) sufficed = false;
    }
    void check() const {
        if (!sufficed) throw std::bad_alloc();
    }
};
// So many numbers of this thread's own, kept for the next call; null where memory does not suffice.
inline float* own_numbers(int64_t count, Memory& memory) {
    static thread_local std::vector<float> numbers;
    if (int64_t(numbers.size()) < count) memory.make([&] { numbers.resize(count); });
    return int64_t(numbers.size()) < count ? nullptr : numbers.data();
}

// Dropout without a stored mask: the same seed, row and column give the same answer in the backward pass. Rows get keys by
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
template <typename Columns>
inline Columns mixed(RowKey key, Columns column) {
    Columns x = key.first + column * 0x9e3779b9u;
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
inline vector factors(RowKey key, int64_t column, const Dropout& dropout) {  // of as many columns as there are lanes
    bits_vector columns = uint32_t(column) + counted();
    return mixed(key, columns) >= dropout.threshold ? vector{} + dropout.scale : vector{};
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

// dropout(max(x, 0)), or of its square.
template <typename T>
void relu_dropped(T* x, int64_t rows, int64_t cols, double p, uint64_t seed, bool squared) {
    Dropout dropout(p, seed);
#pragma omp parallel for if (rows * cols > SOME)
    for (int64_t r = 0; r < rows; r++) {
        RowKey key = row_key(seed, r);
        uint32_t threshold = dropout.threshold;
        float scale = dropout.scale;
        T* row = x + r * cols;
#pragma GCC ivdep
        for (int64_t c = 0; c < cols; c++) {
            float value = to_float(row[c]), kept = value <= 0.0f ? 0.0f : value;  // what is no number passes
            store(row + c, (squared ? kept * kept : kept) * factor(key, c, threshold, scale));
        }
    }
}

// Without a place for means it is the norm that leaves them in: RMSNorm.
template <typename Y>
void layer_norm(const float* x, const float* weight, const float* bias, Y* out, float* mean, float* inverse, int64_t rows,
                int64_t cols, double eps) {
#pragma omp parallel for if (rows * cols > SOME)
    for (int64_t r = 0; r < rows; r++) {
        const float* from = x + r * cols;
        Y* to = out + r * cols;
        float m = 0, squares = 0;
        if (mean) {
            for (int64_t c = 0; c < cols; c++) m += from[c];
            mean[r] = m /= cols;
        }
        for (int64_t c = 0; c < cols; c++) squares += (from[c] - m) * (from[c] - m);
        float s = 1.0f / std::sqrt(squares / cols + float(eps));
        inverse[r] = s;
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
        float *for_weight = sums.data() + part * 2 * cols, *for_bias = for_weight + cols;
        for (int64_t r = rows * part / PARTS; r < rows * (part + 1) / PARTS; r++) {
            const Y* g = gradient + r * cols;
            const float* from = x + r * cols;
            float m = mean ? mean[r] : 0.0f, s = inverse[r], sum = 0, product = 0;
            for (int64_t c = 0; c < cols; c++) {
                float grad = to_float(g[c]), normal = (from[c] - m) * s, scaled = grad * weight[c];
                for_weight[c] += grad * normal;
                for_bias[c] += grad;
                sum += scaled;
                product += scaled * normal;
            }
            sum = mean ? sum / cols : 0.0f, product /= cols;
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

// As many rows as lanes, transposed by rounds of interleaving row i of the upper half and row i of the lower.
template <typename Lanes, size_t... I>
inline void interleaved(const Lanes& a, const Lanes& b, Lanes* to, std::index_sequence<I...>) {
    to[0] = picked<(I / 2 + (I % 2) * LANES)...>(a, b);
    to[1] = picked<(LANES / 2 + I / 2 + (I % 2) * LANES)...>(a, b);
}
template <typename Lanes>
inline void transpose_block(Lanes* rows) {
    constexpr int64_t HALF = LANES / 2;
    Lanes other[LANES];
    for (int64_t turns = LANES; turns > 1; turns /= 2) {
        for (int64_t i = 0; i < HALF; i++)
            interleaved(rows[i], rows[i + HALF], other + 2 * i, std::make_index_sequence<LANES>());
        std::memcpy(rows, other, sizeof(other));
    }
}

// The transpose of x, whose rows lie `stride` apart, some of it at a time: each panel is copied to a place of its own, as
// short visits to many rows would wait for memory most of the time.
template <typename T, typename Lanes, typename Out>
void transposed(const T* x, Out* out, int64_t rows, int64_t cols, int64_t stride) {
    constexpr int64_t SIDE = LANES, HIGH = 128, WIDE = 128;
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
                    transpose_block(block);
                    for (int64_t i = 0; i < SIDE; i++) std::memcpy(&across[c + i][r], block + i, sizeof(Lanes));
                }
            for (int64_t c = 0; c < width; c++)
                for (int64_t r = 0; r < height; r++) store(out + (left + c) * rows + top + r, to_float(across[c][r]));
        }
    }
}

// Adds the columns of x to `sums`. With a gate, what came out of `relu_dropped`, x is a gradient that first passes back
// through it, in place: what came out greater than 0 lets it pass. The derivative of y = scale * max(x, 0)^2 is
// 2 sqrt(scale * y).
template <typename T>
void column_sums(T* x, const T* gate, double p, bool squared, float* sums, int64_t rows, int64_t cols, int64_t stride) {
    std::vector<float> parts(PARTS * cols, 0.0f);
    float scale = float(1.0 / (1.0 - p));
#pragma omp parallel for if (rows * cols > SOME)
    for (int64_t part = 0; part < PARTS; part++) {
        float* total = parts.data() + part * cols;
        for (int64_t r = rows * part / PARTS; r < rows * (part + 1) / PARTS; r++) {
            T* row = x + r * stride;
            const T* passed = gate + r * cols;
            if (gate && squared)
#pragma GCC ivdep
                for (int64_t c = 0; c < cols; c++)
                    store(row + c, 2.0f * std::sqrt(scale * to_float(passed[c])) * to_float(row[c]));
            else if (gate)
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

// Of each of several pieces of memory the sum of squares, added up in parts of PIECE numbers.
void sums_of_squares(const float* const* pieces, const int64_t* sizes, int64_t count, double* sums) {
    constexpr int64_t PIECE = 1 << 14;
    std::vector<int64_t> starts(count + 1, 0);
    for (int64_t i = 0; i < count; i++) starts[i + 1] = starts[i] + (sizes[i] + PIECE - 1) / PIECE;
    std::vector<double> parts(starts[count]);
#pragma omp parallel for schedule(dynamic, 4)
    for (int64_t part = 0; part < starts[count]; part++) {
        int64_t i = std::upper_bound(starts.begin(), starts.end(), part) - starts.begin() - 1;
        const float* x = pieces[i] + (part - starts[i]) * PIECE;
        int64_t size = std::min(PIECE, sizes[i] - (part - starts[i]) * PIECE);
        float sum = 0;
        for (int64_t c = 0; c < size; c++) sum += x[c] * x[c];
        parts[part] = sum;
    }
    for (int64_t i = 0; i < count; i++) {
        sums[i] = 0;
        for (int64_t part = starts[i]; part < starts[i + 1]; part++) sums[i] += parts[part];
    }
}

// ---- attention -------------------------------------------------------------------------------------------------

struct Range {  // of keys, in whole vectors
    int64_t from, to;
    int64_t size() const { return to - from; }
};
inline Range joined(Range a, Range b) {
    if (a.to == 0) return b;
    return b.to == 0 ? a : Range{std::min(a.from, b.from), std::max(a.to, b.to)};
}

#ifdef __AVX512F__
constexpr int64_t ROWS = 8, COLS = 2;  // as many sums as there are registers for
#else
constexpr int64_t ROWS = 4, COLS = 2;
#endif
inline int64_t rounded(int64_t rows) { return (rows + ROWS - 1) / ROWS * ROWS; }

// ROWS x WIDTH vectors of C = A B, or C += A B, held in registers while k goes over [0, inner).
template <int WIDTH>
inline void tile(float* c, const float* a, const float* b, int64_t inner, int64_t c_row, int64_t a_row, int64_t a_col,
                 int64_t b_row, bool add) {
    vector sum[ROWS][WIDTH] = {};
    for (int64_t k = 0; k < inner; k++) {
        vector right[WIDTH];
        for (int i = 0; i < WIDTH; i++) right[i] = read(b + k * b_row + i * LANES);
        for (int r = 0; r < ROWS; r++) {
            vector left = vector{} + a[r * a_row + k * a_col];
            for (int i = 0; i < WIDTH; i++) sum[r][i] += left * right[i];
        }
    }
    for (int r = 0; r < ROWS; r++)
        for (int i = 0; i < WIDTH; i++) {
            float* to = c + r * c_row + i * LANES;
            write(to, add ? read(to) + sum[r][i] : sum[r][i]);
        }
}

// C = A B, or C += A B; the rows of C rounded up. A is read one number at a time, wherever it lies, C and B by whole vectors,
// `cols` numbers of them.
void product(float* c, const float* a, const float* b, int64_t rows, int64_t inner, int64_t cols, int64_t c_row, int64_t a_row,
             int64_t a_col, int64_t b_row, bool add = false) {
    for (int64_t r = 0; r < rows; r += ROWS) {
        float* to = c + r * c_row;
        const float* left = a + r * a_row;
        int64_t col = 0;
        for (; col + COLS * LANES <= cols; col += COLS * LANES)
            tile<COLS>(to + col, left, b + col, inner, c_row, a_row, a_col, b_row, add);
        for (; col < cols; col += LANES) tile<1>(to + col, left, b + col, inner, c_row, a_row, a_col, b_row, add);
    }
}

}  // namespace

extern "C" {

// A tensor of (B, H, L, d_k), each d_k in one piece; strides in numbers.
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

// What one head of one row works on, as float32: made anew in each thread. Keys, values and what is added up over queries are
// there whole; of what has a number per query and key, a block of queries at a time, so that it stays in the cache. Lengths
// and widths are those of whole vectors; what is beyond the real ones is zero.
struct Workspace {
    static constexpr int64_t BLOCK = 16;  // queries
    const Sizes& s;
    int64_t keys, width, mask_of = -1, hidden_step;
    std::vector<float> key, value, key_across, value_across, grad_key, grad_value;
    std::vector<float> query, grad_context, context, weights, dropped, grad_scores;
    std::vector<float> hidden;  // per query and key what to add to its score: nothing, or what leaves no weight
    std::vector<Range> visible;  // per query the keys that it may see: from first to last

    Workspace(const Sizes& s, const Mask& m, bool backward) : s(s), keys(padded(s.keys)), width(padded(s.width)) {
        bool alike = !m.data || m.query == 0;
        hidden_step = alike ? 0 : keys;
        hidden.resize((alike ? 1 : s.queries) * keys), visible.resize(s.queries);
        for (auto* x : {&key, &value, &key_across}) x->resize(keys * width);
        for (auto* x : {&query, &context}) x->resize(BLOCK * width);
        weights.resize(BLOCK * keys);
        if (!backward) return;
        for (auto* x : {&value_across, &grad_key, &grad_value}) x->resize(keys * width);
        grad_context.resize(BLOCK * width);
        for (auto* x : {&dropped, &grad_scores}) x->resize(BLOCK * keys);
    }
};

template <typename T>
T* head_of(const Heads& x, int64_t b, int64_t h) {
    return (T*)x.data + b * x.batch + h * x.head;
}

// Rotary positions: of each head the i-th numbers of both halves, turned by the angle of their position, or back.
template <typename T>
void rotated(const Heads& x, const Heads& out, const Sizes& s, const float* cosine, const float* sine, double way) {
    int64_t half = s.width / 2;
#pragma omp parallel for collapse(2) if (s.batch * s.heads * s.queries * s.width > SOME)
    for (int64_t b = 0; b < s.batch; b++)
        for (int64_t l = 0; l < s.queries; l++)
            for (int64_t h = 0; h < s.heads; h++) {
                const T* __restrict from = head_of<T>(x, b, h) + l * x.position;
                T* __restrict to = head_of<T>(out, b, h) + l * out.position;
                const float *cosines = cosine + l * half, *sines = sine + l * half;
                for (int64_t i = 0; i < half; i++) {
                    float first = to_float(from[i]), second = to_float(from[half + i]);
                    float c = cosines[i], turn = float(way) * sines[i];
                    store(to + i, first * c - second * turn);
                    store(to + half + i, second * c + first * turn);
                }
            }
}

template <typename T>
void read_rows(const T* from, int64_t stride, int64_t rows, int64_t width, float* to, int64_t wide, float scale = 1.0f) {
    for (int64_t r = 0; r < rows; r++)
        for (int64_t c = 0; c < width; c++) to[r * wide + c] = scale * to_float(from[r * stride + c]);
}

// The rows that read_rows has made, as columns.
void transpose_rows(const float* from, int64_t rows, int64_t width, float* to) {
    for (int64_t r = 0; r < rows; r += LANES)
        for (int64_t c = 0; c < width; c += LANES) {
            alignas(BYTES) vector block[LANES];
            for (int64_t i = 0; i < LANES; i++) block[i] = *(const vector*)(from + (r + i) * width + c);
            transpose_block(block);
            for (int64_t i = 0; i < LANES; i++) *(vector*)(to + (c + i) * rows + r) = block[i];
        }
}

template <typename T>
void write_rows(T* to, int64_t stride, int64_t rows, int64_t width, const float* from, int64_t wide, float scale = 1.0f) {
    for (int64_t r = 0; r < rows; r++)
        for (int64_t c = 0; c < width; c++) store(to + r * stride + c, scale * from[r * wide + c]);
}

// f(gate) times inner, with an activation f; both in rows `stride` numbers apart.
template <typename T>
void gated(const T* gate, const T* inner, T* out, int64_t rows, int64_t cols, int64_t stride, int64_t activation) {
    refuse_unknown(activation);
    Memory memory;
#pragma omp parallel for if (rows * cols > SOME)
    for (int64_t r = 0; r < rows; r++) {
        float* x = own_numbers(2 * padded(cols), memory);
        if (!x) continue;
        float* y = x + padded(cols);
        read_rows(gate + r * stride, 0, 1, cols, x, 0);
        read_rows(inner + r * stride, 0, 1, cols, y, 0);
        for (int64_t c = 0; c < cols; c += LANES) {
            Activated at = activated_with_grad(read(x + c), activation);
            write(y + c, read(y + c) * at.value);
        }
        write_rows(out + r * cols, 0, 1, cols, y, 0);
    }
    memory.check();
}

// The backward pass: the gradients of both, row beside row, the inner one's first.
template <typename T>
void gated_backward(const T* gradient, const T* gate, const T* inner, T* to, int64_t rows, int64_t cols, int64_t stride,
                    int64_t activation) {
    refuse_unknown(activation);
    Memory memory;
#pragma omp parallel for if (rows * cols > SOME)
    for (int64_t r = 0; r < rows; r++) {
        float* x = own_numbers(3 * padded(cols), memory);
        if (!x) continue;
        float *y = x + padded(cols), *g = y + padded(cols);
        read_rows(gate + r * stride, 0, 1, cols, x, 0);
        read_rows(inner + r * stride, 0, 1, cols, y, 0);
        read_rows(gradient + r * cols, 0, 1, cols, g, 0);
        for (int64_t c = 0; c < cols; c += LANES) {
            Activated at = activated_with_grad(read(x + c), activation);
            vector grad = read(g + c);
            write(x + c, grad * read(y + c) * at.grad);
            write(y + c, grad * at.value);
        }
        write_rows(to + 2 * r * cols, 0, 1, cols, y, 0);
        write_rows(to + 2 * r * cols + cols, 0, 1, cols, x, 0);
    }
    memory.check();
}

void read_mask(Workspace& work, const Mask& m, int64_t b, int64_t h) {
    int64_t mask_of = m.data ? b * m.batch + h * m.head : 0;
    if (work.mask_of == mask_of) return;
    work.mask_of = mask_of;
    std::fill(work.hidden.begin(), work.hidden.end(), -INFINITY);
    for (int64_t i = 0; i < work.s.queries; i++) {
        if (i > 0 && work.hidden_step == 0) {
            work.visible[i] = work.visible[0];
            continue;
        }
        const bool* mask = m.data ? m.data + mask_of + i * m.query : nullptr;
        float* hidden = work.hidden.data() + i * work.hidden_step;
        int64_t first = 0, end = work.s.keys;
        while (mask && first < end && !mask[first]) first++;
        while (mask && first < end && !mask[end - 1]) end--;
        for (int64_t j = first; j < end; j++) hidden[j] = mask && !mask[j] ? -INFINITY : 0.0f;
        work.visible[i] = first < end ? Range{first / LANES * LANES, padded(end)} : Range{0, 0};
    }
}

// The softmax of a row of scores over the keys that its query may see, `w`, and the same after dropout, `dropped`. Both may
// be one place, which then has the latter. What is hidden has no weight in either.
void softmax_row(float* w, float* dropped, Range of, Range visible, const float* hidden, const Dropout& dropout, uint64_t row) {
    auto clear = [&](int64_t from, int64_t to) {
        if (from < to) std::fill(w + from, w + to, 0.0f), std::fill(dropped + from, dropped + to, 0.0f);
    };
    clear(of.from, visible.to ? visible.from : of.to), clear(visible.to ? visible.to : of.to, of.to);
    if (visible.to == 0) return;
    vector most = vector{} - INFINITY, sum = {};
    for (int64_t j = visible.from; j < visible.to; j += LANES) {
        vector score = *(vector*)(w + j) + *(const vector*)(hidden + j);
        *(vector*)(w + j) = score;
        most = greater_of(score, most);
    }
    float top = across(most, greater_of);
    for (int64_t j = visible.from; j < visible.to; j += LANES) {
        vector weight = exponential(*(vector*)(w + j) - top);
        *(vector*)(w + j) = weight;
        sum += weight;
    }
    float share = 1.0f / across(sum, sum_of);
    RowKey key = row_key(dropout.seed, row);
    for (int64_t j = visible.from; j < visible.to; j += LANES) {
        vector weight = *(vector*)(w + j) * share;
        *(vector*)(w + j) = weight;
        *(vector*)(dropped + j) = weight * factors(key, j, dropout);
    }
}

// From the gradient of a row's weights after dropout to that of its scores.
void softmax_backward(float* grad, const float* w, Range of, const Dropout& dropout, uint64_t row) {
    RowKey key = row_key(dropout.seed, row);
    vector sums = {};
    for (int64_t j = of.from; j < of.to; j += LANES) {
        vector passed = *(vector*)(grad + j) * factors(key, j, dropout);
        *(vector*)(grad + j) = passed;
        sums += passed * *(const vector*)(w + j);
    }
    float sum = across(sums, sum_of);
    for (int64_t j = of.from; j < of.to; j += LANES)
        *(vector*)(grad + j) = *(const vector*)(w + j) * (*(vector*)(grad + j) - sum);
}

struct Block {  // of queries, and the keys that they may see
    int64_t first, rows;
    Range visible;
};
Block block_at(const Workspace& work, int64_t first) {
    Block block = {first, std::min(Workspace::BLOCK, work.s.queries - first), {0, 0}};
    for (int64_t i = 0; i < block.rows; i++) block.visible = joined(block.visible, work.visible[first + i]);
    return block;
}

template <typename T>
void read_head(Workspace& work, const Heads& k, const Heads& v, const Mask& m, int64_t b, int64_t h) {
    const Sizes& s = work.s;
    read_mask(work, m, b, h);
    read_rows(head_of<T>(k, b, h), k.position, s.keys, s.width, work.key.data(), work.width);
    transpose_rows(work.key.data(), work.keys, work.width, work.key_across.data());
    read_rows(head_of<T>(v, b, h), v.position, s.keys, s.width, work.value.data(), work.width);
}

// The weights of a block of queries: `weights` before, `dropped` after dropout.
template <typename T>
void softmax_block(Workspace& work, const Block& block, const T* query, int64_t stride, const Dropout& dropout,
                   uint64_t first_row, float* dropped) {
    const Sizes& s = work.s;
    float *weights = work.weights.data(), scale = 1.0f / std::sqrt(float(s.width));
    read_rows(query + block.first * stride, stride, block.rows, s.width, work.query.data(), work.width, scale);
    int64_t from = block.visible.from;
    product(weights + from, work.query.data(), work.key_across.data() + from, block.rows, s.width, block.visible.size(),
            work.keys, work.width, 1, work.keys);
    for (int64_t r = 0; r < rounded(block.rows); r++) {
        int64_t i = block.first + r;
        bool real = r < block.rows;
        softmax_row(weights + r * work.keys, dropped + r * work.keys, block.visible, real ? work.visible[i] : Range{0, 0},
              work.hidden.data() + (real ? i * work.hidden_step : 0), dropout, first_row + i);
    }
}

// Each head's softmax(q k / sqrt(width)) v, with dropout of the softmax (Vaswani et al. 2017, equation 1).
template <typename T>
void attention(const Heads& q, const Heads& k, const Heads& v, const Mask& m, const Heads& out, const Sizes& s, double p,
               uint64_t seed) {
    Dropout dropout(p, seed);
    Memory memory;
#pragma omp parallel
    {
        std::optional<Workspace> own;
        memory.make([&] { own.emplace(s, m, false); });
#pragma omp for
        for (int64_t i = 0; i < s.batch * s.heads; i++) {
            if (!own) continue;
            Workspace& work = *own;
            float *weights = work.weights.data(), *context = work.context.data();
            int64_t b = i / s.heads, h = i % s.heads;
            read_head<T>(work, k, v, m, b, h);
            for (int64_t first = 0; first < s.queries; first += Workspace::BLOCK) {
                Block block = block_at(work, first);
                Range visible = block.visible;
                softmax_block(work, block, head_of<T>(q, b, h), q.position, dropout, uint64_t(i) * s.queries, weights);
                const float* values = work.value.data() + visible.from * work.width;
                product(context, weights + visible.from, values, block.rows, visible.size(), work.width, work.width, work.keys,
                        1, work.width);
                T* to = head_of<T>(out, b, h) + first * out.position;
                write_rows(to, out.position, block.rows, s.width, context, work.width);
            }
        }
    }
    memory.check();
}

// The weights are made again from queries and keys: that costs less than to keep them.
template <typename T>
void attention_backward(const Heads& q, const Heads& k, const Heads& v, const Mask& m, const Heads& grad, const Heads& grad_q,
                        const Heads& grad_k, const Heads& grad_v, const Sizes& s, double p, uint64_t seed) {
    Dropout dropout(p, seed);
    float scale = 1.0f / std::sqrt(float(s.width));
    Memory memory;
#pragma omp parallel
    {
        std::optional<Workspace> own;
        memory.make([&] { own.emplace(s, m, true); });
#pragma omp for
        for (int64_t i = 0; i < s.batch * s.heads; i++) {
            if (!own) continue;
            Workspace& work = *own;
            const int64_t keys = work.keys, width = work.width;
            float *context = work.context.data(), *dropped = work.dropped.data(), *grad_scores = work.grad_scores.data();
            int64_t b = i / s.heads, h = i % s.heads;
            read_head<T>(work, k, v, m, b, h);
            transpose_rows(work.value.data(), keys, width, work.value_across.data());
            std::fill(work.grad_key.begin(), work.grad_key.end(), 0.0f);
            std::fill(work.grad_value.begin(), work.grad_value.end(), 0.0f);
            for (int64_t first = 0; first < s.queries; first += Workspace::BLOCK) {
                Block block = block_at(work, first);
                int64_t from = block.visible.from, size = block.visible.size(), rows = block.rows;
                const uint64_t first_row = uint64_t(i) * s.queries;
                const float *query = work.query.data(), *grad_context = work.grad_context.data();
                const float *visible_keys = work.key.data() + from * width, *values_across = work.value_across.data() + from;
                float *to_key = work.grad_key.data() + from * width, *to_value = work.grad_value.data() + from * width;
                softmax_block(work, block, head_of<T>(q, b, h), q.position, dropout, first_row, dropped);
                const T* grad_rows = head_of<T>(grad, b, h) + first * grad.position;
                read_rows(grad_rows, grad.position, rows, s.width, work.grad_context.data(), width);
                product(to_value, dropped + from, grad_context, size, rows, width, width, 1, keys, width, true);
                product(grad_scores + from, grad_context, values_across, rows, s.width, size, keys, width, 1, keys);
                for (int64_t r = 0; r < rows; r++) {
                    const float* weights = work.weights.data() + r * keys;
                    softmax_backward(grad_scores + r * keys, weights, block.visible, dropout, first_row + first + r);
                }
                product(context, grad_scores + from, visible_keys, rows, size, width, width, keys, 1, width);
                T* to_query = head_of<T>(grad_q, b, h) + first * grad_q.position;
                write_rows(to_query, grad_q.position, rows, s.width, context, width, scale);
                product(to_key, grad_scores + from, query, size, rows, width, width, 1, keys, width, true);
            }
            write_rows(head_of<T>(grad_k, b, h), grad_k.position, s.keys, s.width, work.grad_key.data(), width);
            write_rows(head_of<T>(grad_v, b, h), grad_v.position, s.keys, s.width, work.grad_value.data(), width);
        }
    }
    memory.check();
}

// ---- cross-entropy ---------------------------------------------------------------------------------------------

// One row of logits, and their exponentials, which times `part` are probabilities.
struct Row {
    std::vector<float> logits, e;  // whole registers long; beyond the row -infinity and 0
    float part, log_total, others, truth;

    explicit Row(int64_t cols) : logits(padded(cols), -INFINITY), e(padded(cols)) {}

    template <typename T>
    void softmax(const T* products, const float* bias, int64_t label, int64_t pad, int64_t cols) {
        float *x = logits.data(), sum = 0;
#pragma GCC ivdep
        for (int64_t c = 0; c < cols; c++) sum += x[c] = to_float(products[c]) + bias[c];
        truth = x[label];
        others = sum - (truth + x[pad]);
        vector most = vector{} - INFINITY, sums = {};
        for (int64_t c = 0; c < cols; c += LANES) most = greater_of(read(x + c), most);
        float top = across(most, greater_of);
        for (int64_t c = 0; c < cols; c += LANES) {
            vector some = exponential(read(x + c) - top);
            write(e.data() + c, some);
            sums += some;
        }
        float total = across(sums, sum_of);
        part = 1.0f / total;
        log_total = std::log(total) + top;
    }
    float plain_loss() const { return log_total - truth; }
    float loss(float sure, float share, int64_t cols) const {
        return sure * plain_loss() - share * (others - (cols - 2) * log_total);
    }
};

// Per row of products, which lack a bias, the smoothed and the plain loss; the gradient of the first takes their place. Padded
// rows have neither.
template <typename T>
void cross_entropy(T* products, const float* bias, const int64_t* labels, float* losses, int64_t rows, int64_t cols,
                   double smoothing, int64_t pad) {
    float share = float(smoothing / (cols - 2)), sure = float(1.0 - smoothing);
    Memory memory;
#pragma omp parallel if (rows * cols > SOME)
    {
        std::vector<float> none;
        std::optional<Row> own;
        memory.make([&] { none.resize(bias ? 0 : cols), own.emplace(cols); });
#pragma omp for
        for (int64_t r = 0; r < rows; r++) {
            if (!own) continue;
            Row& row = *own;
            const float* e = row.e.data();
            T* x = products + r * cols;
            int64_t label = labels[r];
            losses[2 * r] = losses[2 * r + 1] = 0.0f;
            if (label == pad) {
                std::memset((void*)x, 0, cols * sizeof(T));
                continue;
            }
            row.softmax(x, bias ? bias : none.data(), label, pad, cols);
            losses[2 * r] = row.loss(sure, share, cols);
            losses[2 * r + 1] = row.plain_loss();
#pragma GCC ivdep
            for (int64_t c = 0; c < cols; c++) store(x + c, e[c] * row.part - share);
            store(x + pad, e[pad] * row.part);
            store(x + label, e[label] * row.part - sure);
        }
    }
    memory.check();
}

// The same of rows that are there twice, `twins` behind `products`: the mean of both losses, and weight / 4 times the
// Kullback-Leibler divergences of either from the other.
template <typename T>
void cross_entropy_twice(T* products, T* twins, const float* bias, const int64_t* labels, float* losses, int64_t rows,
                         int64_t cols, double smoothing, int64_t pad, double weight) {
    float share = float(smoothing / (cols - 2)), sure = float(1.0 - smoothing), w = float(weight / 4);
    Memory memory;
#pragma omp parallel if (rows * cols > SOME)
    {
        std::vector<float> none;
        std::optional<Row> row, twin;
        memory.make([&] { none.resize(bias ? 0 : cols), row.emplace(cols), twin.emplace(cols); });
#pragma omp for
        for (int64_t r = 0; r < rows; r++) {
            if (!twin) continue;
            Row &first = *row, &second = *twin;
            const float *a = first.logits.data(), *b = second.logits.data(), *e = first.e.data(), *f = second.e.data();
            T *x = products + r * cols, *y = twins + r * cols;
            int64_t label = labels[r];
            losses[2 * r] = losses[2 * r + 1] = 0.0f;
            if (label == pad) {
                std::memset((void*)x, 0, cols * sizeof(T));
                std::memset((void*)y, 0, cols * sizeof(T));
                continue;
            }
            first.softmax(x, bias ? bias : none.data(), label, pad, cols);
            second.softmax(y, bias ? bias : none.data(), label, pad, cols);
            float shift = first.log_total - second.log_total, of_first = 0, of_second = 0;
#pragma GCC ivdep
            for (int64_t c = 0; c < cols; c++) {
                float apart = a[c] - b[c] - shift;  // of the logarithms of p and q
                of_first += e[c] * apart;
                of_second -= f[c] * apart;
            }
            of_first *= first.part;
            of_second *= second.part;
            losses[2 * r] = (first.loss(sure, share, cols) + second.loss(sure, share, cols)) / 2 + w * (of_first + of_second);
            losses[2 * r + 1] = (first.plain_loss() + second.plain_loss()) / 2;
            auto write_grads = [&](int64_t c, float target) {
                float p = e[c] * first.part, q = f[c] * second.part, apart = a[c] - b[c] - shift;
                store(x + c, (p - target) / 2 + w * (p * (apart - of_first) + p - q));
                store(y + c, (q - target) / 2 - w * (q * (apart + of_second) + p - q));
            };
#pragma GCC ivdep
            for (int64_t c = 0; c < cols; c++) write_grads(c, share);
            write_grads(pad, 0.0f);
            write_grads(label, sure);
        }
    }
    memory.check();
}

}  // namespace

typedef float LANES_OF_float32 __attribute__((vector_size(BYTES)));
typedef uint16_t LANES_OF_bfloat16 __attribute__((vector_size(BYTES / 2)));

#define FOR(T, NAME)                                                                                                          \
    int add_dropped_##NAME(const float* x, const T* y, float* out, int64_t rows, int64_t cols, double p, uint64_t seed) {     \
        return guarded([&] { add_dropped(x, y, out, rows, cols, p, seed); });                                                 \
    }                                                                                                                         \
    int drop_##NAME(const float* y, T* out, int64_t rows, int64_t cols, double p, uint64_t seed) {                            \
        return guarded([&] { add_dropped<float, T>(nullptr, y, out, rows, cols, p, seed); });                                 \
    }                                                                                                                         \
    int relu_dropped_##NAME(T* x, int64_t rows, int64_t cols, double p, uint64_t seed, int64_t squared) {                     \
        return guarded([&] { relu_dropped(x, rows, cols, p, seed, squared); });                                               \
    }                                                                                                                         \
    int gated_##NAME(const T* gate, const T* inner, T* out, int64_t rows, int64_t cols, int64_t stride, int64_t activation) { \
        return guarded([&] { gated(gate, inner, out, rows, cols, stride, activation); });                                     \
    }                                                                                                                         \
    int gated_backward_##NAME(const T* gradient, const T* gate, const T* inner, T* to, int64_t rows, int64_t cols,            \
                              int64_t stride, int64_t activation) {                                                           \
        return guarded([&] { gated_backward(gradient, gate, inner, to, rows, cols, stride, activation); });                   \
    }                                                                                                                         \
    int rotated_##NAME(const Heads* x, const Heads* out, const Sizes* s, const float* cosine, const float* sine,              \
                       double way) {                                                                                          \
        return guarded([&] { rotated<T>(*x, *out, *s, cosine, sine, way); });                                                 \
    }                                                                                                                         \
    int layer_norm_##NAME(const float* x, const float* weight, const float* bias, T* out, float* mean, float* inverse,        \
                          int64_t rows, int64_t cols, double eps) {                                                           \
        return guarded([&] { layer_norm(x, weight, bias, out, mean, inverse, rows, cols, eps); });                            \
    }                                                                                                                         \
    int layer_norm_backward_##NAME(const T* gradient, const float* x, const float* weight, const float* mean,                 \
                                   const float* inverse, float* to, float* weight_gradient, float* bias_gradient,             \
                                   int64_t rows, int64_t cols) {                                                              \
        return guarded([&] {                                                                                                  \
            layer_norm_backward(gradient, x, weight, mean, inverse, to, weight_gradient, bias_gradient, rows, cols);          \
        });                                                                                                                   \
    }                                                                                                                         \
    int transposed_##NAME(const T* x, T* out, int64_t rows, int64_t cols, int64_t stride) {                                   \
        return guarded([&] { transposed<T, LANES_OF_##NAME, T>(x, out, rows, cols, stride); });                               \
    }                                                                                                                         \
    int transposed_to_float_##NAME(const T* x, float* out, int64_t rows, int64_t cols, int64_t stride) {                      \
        return guarded([&] { transposed<T, LANES_OF_##NAME, float>(x, out, rows, cols, stride); });                           \
    }                                                                                                                         \
    int column_sums_##NAME(T* x, const T* gate, double p, int64_t squared, float* sums, int64_t rows, int64_t cols,           \
                           int64_t stride) {                                                                                  \
        return guarded([&] { column_sums(x, gate, p, squared, sums, rows, cols, stride); });                                  \
    }                                                                                                                         \
    int attention_##NAME(const Heads* q, const Heads* k, const Heads* v, const Mask* m, const Heads* out, const Sizes* s,     \
                         double p, uint64_t seed) {                                                                           \
        return guarded([&] { attention<T>(*q, *k, *v, *m, *out, *s, p, seed); });                                             \
    }                                                                                                                         \
    int attention_backward_##NAME(const Heads* q, const Heads* k, const Heads* v, const Mask* m, const Heads* grad,           \
                                  const Heads* grad_q, const Heads* grad_k, const Heads* grad_v, const Sizes* s, double p,    \
                                  uint64_t seed) {                                                                            \
        return guarded([&] { attention_backward<T>(*q, *k, *v, *m, *grad, *grad_q, *grad_k, *grad_v, *s, p, seed); });        \
    }                                                                                                                         \
    int cross_entropy_##NAME(T* products, const float* bias, const int64_t* labels, float* losses, int64_t rows,              \
                             int64_t cols, double smoothing, int64_t pad) {                                                   \
        return guarded([&] { cross_entropy(products, bias, labels, losses, rows, cols, smoothing, pad); });                   \
    }                                                                                                                         \
    int cross_entropy_twice_##NAME(T* products, T* twins, const float* bias, const int64_t* labels, float* losses,            \
                                   int64_t rows, int64_t cols, double smoothing, int64_t pad, double weight) {                \
        return guarded([&] {                                                                                                  \
            cross_entropy_twice(products, twins, bias, labels, losses, rows, cols, smoothing, pad, weight);                   \
        });                                                                                                                   \
    }

extern "C" {
// Whether loops run on several threads: Clang takes none from GNU's OpenMP.
int has_threads() {
#ifdef _OPENMP
    return 1;
#else
    return 0;
#endif
}
int sums_of_squares_float32(const float* const* pieces, const int64_t* sizes, int64_t count, double* sums) {
    return guarded([&] { sums_of_squares(pieces, sizes, count, sums); });
}
FOR(float, float32)
FOR(bfloat16, bfloat16)
}
