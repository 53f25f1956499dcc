// Flash attention for one (sequence, head): query blocks of kQueryRows rows against all their keys;
// the scores of a block never leave the cache, and the backward computes them again from the kept
// log-sum-exp. Scores that no row of a strip of kTileRows rows sees are skipped: those above the
// diagonal of causal attention, and those of other documents. The order of sums follows from the
// rows and columns of a document or a sample alone, not from the context around it.
//
// With Q, K, V the head's queries (scaled), keys and values, and Z the dropout factors:
//   forward   S = Q K^T        P = exp(S - max) / sum      O = (P Z) V
//   backward  P = exp(S - lse) dV += (P Z)^T dO            dP = Z (dO V^T)
//             dS = P (dP - rowsum(dO O))                   dQ = dS K       dK += dS^T Q
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "stage/backends/cpu/attention_units.cc"
#include "hwy/foreach_target.h"
// Highway's own header must come after foreach_target.h.
#include <algorithm>
#include <cmath>

#include "hwy/contrib/math/math-inl.h"
#include "operations/attention/attention_scratch.h"
#include "stage/backends/cpu/attention_units.h"
#include "stage/backends/cpu/vector/philox-inl.h"
#include "stage/backends/cpu/vector/softmax-inl.h"
#include "stage/backends/cpu/vector/tile-inl.h"
#include "stage/backends/cpu/vector/vector-inl.h"

#ifndef STAGECOACH_STAGE_BACKENDS_CPU_ATTENTION_UNITS_ONCE_
#define STAGECOACH_STAGE_BACKENDS_CPU_ATTENTION_UNITS_ONCE_
namespace stagecoach::cpu {

constexpr int64_t kPad = AttentionScratch::kPad, kQueryRows = AttentionScratch::kQueryRows;
inline int64_t Padded(int64_t n) { return AttentionScratch::Padded(n); }
inline int64_t ScoreStride(int64_t columns) { return AttentionScratch::ScoreStride(columns); }

}  // namespace stagecoach::cpu
#endif

HWY_BEFORE_NAMESPACE();
namespace stagecoach::cpu {
namespace HWY_NAMESPACE {

static_assert(kRandomSlack <= AttentionScratch::kWordsSlack);

// Hands out pieces of the caller's scratch.
struct Scratch {
  float* next;
  float* Take(int64_t floats) {
    float* piece = next;
    next += Padded(floats);
    return piece;
  }
};

struct Dimensions {
  AttentionExtent extent;
  int64_t rows, columns, head_width;
  int64_t padded_width, score_stride;
  float scale;
  template <typename T>
  explicit Dimensions(const AttentionUnit<T>& unit)
      : extent(unit.extent),
        rows(unit.extent.rows),
        columns(unit.extent.columns),
        head_width(unit.head_width),
        padded_width(Padded(unit.head_width)),
        score_stride(ScoreStride(unit.extent.columns)),
        scale(1.0f / std::sqrt(static_cast<float>(unit.head_width))) {}
  // The columns that rows [first, end) have between them begin and end here.
  int64_t Begin(int64_t first, int64_t end) const {
    if (extent.starts == nullptr) return 0;
    int64_t begin = extent.first(first);
    for (int64_t row = first + 1; row < end; ++row) begin = HWY_MIN(begin, extent.first(row));
    return begin;
  }
  int64_t End(int64_t end) const { return extent.end(end - 1); }
};

// target[rows, padded] = source[rows, width] * scale, zeros beyond the width.
template <typename T>
void CopyRows(const T* source, int64_t stride, int64_t rows, int64_t width, float scale,
              float* target, int64_t padded) {
  const F32 d;
  const auto factor = hn::Set(d, scale);
  for (int64_t r = 0; r < rows; ++r, source += stride, target += padded) {
    for (int64_t i = Padded(width) - kPad; i < padded; ++i) target[i] = 0.0f;
    ForEachVector(width, [=](int64_t i, auto at) HWY_ATTR {
      at.Store(hn::Mul(at.Load(source + i), factor), target + i);
    });
  }
}

// The other way: target[rows, width] = source[rows, padded] * scale.
template <typename T>
void CopyRowsOut(const float* source, int64_t padded, int64_t rows, int64_t width, float scale,
                 T* target, int64_t stride) {
  const auto factor = hn::Set(F32(), scale);
  for (int64_t r = 0; r < rows; ++r, source += padded, target += stride) {
    ForEachVector(width, [=](int64_t i, auto at) HWY_ATTR {
      at.Store(hn::Mul(at.Load(source + i), factor), target + i);
    });
  }
}

// target[width, stride] = source[rows, padded]^T, zeros beyond the rows. Four rows at a time.
void Transpose(const float* source, int64_t rows, int64_t width, int64_t padded, float* target,
               int64_t stride) {
  const F32 d;
  const int64_t lanes = FloatLanes();
  HWY_ALIGN float mixed[4 * hn::MaxLanes(F32())];
  int64_t r = 0;
  for (; r + 4 <= rows; r += 4) {
    const float* p = source + r * padded;
    for (int64_t i = 0; i < padded; i += lanes) {
      hn::StoreInterleaved4(hn::LoadU(d, p + i), hn::LoadU(d, p + padded + i),
                            hn::LoadU(d, p + 2 * padded + i), hn::LoadU(d, p + 3 * padded + i), d,
                            mixed);
      const int64_t count = HWY_MIN(lanes, width - i);
      for (int64_t c = 0; c < count; ++c) {
        std::memcpy(target + (i + c) * stride + r, mixed + 4 * c, 4 * sizeof(float));
      }
    }
  }
  for (int64_t c = 0; c < width; ++c) {
    for (int64_t rest = r; rest < rows; ++rest)
      target[c * stride + rest] = source[rest * padded + c];
    std::memset(target + c * stride + rows, 0, static_cast<size_t>(stride - rows) * sizeof(float));
  }
}

// scores[rows, ...] = queries[rows, width] keys^T for query rows first ... first + rows, in the
// columns that a strip's rows see.
void Scores(const float* queries, int64_t query_stride, const Dimensions& dim,
            const float* transposed, int64_t first, int64_t rows, float* scores) {
  for (int64_t r = 0; r < rows; r += kTileRows) {
    const int64_t count = HWY_MIN(int64_t{kTileRows}, rows - r);
    const int64_t end = first + r + count, begin = dim.Begin(first + r, end);
    Strip(count, {queries + r * query_stride, query_stride, 1},
          {transposed + begin, dim.score_stride}, scores + r * dim.score_stride + begin,
          dim.score_stride, dim.head_width, dim.End(end) - begin, false);
  }
}

// c[rows, padded_width] = scores[rows, columns that a strip's rows see] values.
void TimesValues(const float* scores, const Dimensions& dim, const float* values, int64_t first,
                 int64_t rows, float* c) {
  for (int64_t r = 0; r < rows; r += kTileRows) {
    const int64_t count = HWY_MIN(int64_t{kTileRows}, rows - r);
    const int64_t end = first + r + count, begin = dim.Begin(first + r, end);
    Strip(count, {scores + r * dim.score_stride + begin, dim.score_stride, 1},
          {values + begin * dim.padded_width, dim.padded_width}, c + r * dim.padded_width,
          dim.padded_width, dim.End(end) - begin, dim.padded_width, false);
  }
}

// c[columns of the block, padded_width] += scores^T values, where scores and values hold the rows
// of one query block; scores that a row does not see are zero and mostly skipped.
void AddTransposedTimes(const float* scores, const Dimensions& dim, const float* values,
                        int64_t first, int64_t rows, float* c) {
  const int64_t columns = dim.End(first + rows);
  for (int64_t j = dim.Begin(first, first + rows); j < columns; j += kTileRows) {
    const int64_t count = HWY_MIN(int64_t{kTileRows}, columns - j);
    const int64_t skip = dim.extent.full ? 0 : HWY_MAX(int64_t{0}, j - first);
    int64_t end = rows;  // rows of later documents see none of these columns
    while (end > skip && dim.extent.first(first + end - 1) >= j + count) --end;
    Strip(count, {scores + skip * dim.score_stride + j, 1, dim.score_stride},
          {values + skip * dim.padded_width, dim.padded_width}, c + j * dim.padded_width,
          dim.padded_width, end - skip, dim.padded_width, true);
  }
}

// The scores of a row, at the first column that it sees. Puts zeros in front of it, where strips
// read that begin at column `begin`.
HWY_INLINE float* SeenScores(const Dimensions& dim, int64_t row, int64_t begin, float* scores) {
  const int64_t first = dim.extent.first(row);
  std::fill(scores + begin, scores + first, 0.0f);
  return scores + first;
}

// The dropout words of the columns that a row sees.
template <typename T>
const uint32_t* RowWords(const AttentionUnit<T>& unit, int64_t row, uint32_t* buffer) {
  const int64_t first = unit.extent.first(row);
  const int64_t element = unit.first_element + row * unit.row_elements + first;
  return RandomWords(unit.stream, static_cast<uint64_t>(element), unit.extent.end(row) - first,
                     buffer);
}
HWY_INLINE F32Vec DropoutScale(double rate) {
  return hn::Set(F32(), static_cast<float>(1.0 / (1.0 - rate)));
}

void DropRow(int64_t visible, const uint32_t* words, double rate, float* row) {
  const F32 d;
  const uint32_t threshold = DropoutThreshold(rate);
  const auto scale = DropoutScale(rate);
  for (int64_t i = 0; i < visible; i += FloatLanes()) {
    const auto kept = KeepMask(words + i, threshold);
    hn::StoreU(hn::IfThenElseZero(kept, hn::Mul(hn::LoadU(d, row + i), scale)), d, row + i);
  }
}

template <typename T>
HWY_INLINE void ForwardUnit(const AttentionUnit<T>& unit, T* out, float* log_sum_exp,
                            float* scratch) {
  const F32 d;
  const Dimensions dim(unit);
  const int64_t width = dim.padded_width;
  Scratch take{scratch};
  float* keys = take.Take(dim.columns * width);
  float* values = take.Take(dim.columns * width);
  float* transposed = take.Take(dim.head_width * dim.score_stride);
  float* queries = take.Take(kQueryRows * width);
  float* scores = take.Take(kQueryRows * dim.score_stride);
  float* sums = take.Take(kQueryRows * width);
  auto* buffer = reinterpret_cast<uint32_t*>(take.Take(dim.score_stride + kRandomSlack));
  CopyRows(unit.keys, unit.key_stride, dim.columns, dim.head_width, 1.0f, keys, width);
  CopyRows(unit.values, unit.key_stride, dim.columns, dim.head_width, 1.0f, values, width);
  Transpose(keys, dim.columns, dim.head_width, width, transposed, dim.score_stride);
  for (int64_t first = 0; first < dim.rows; first += kQueryRows) {
    const int64_t rows = HWY_MIN(kQueryRows, dim.rows - first);
    CopyRows(unit.queries + first * unit.query_stride, unit.query_stride, rows, dim.head_width,
             dim.scale, queries, width);
    Scores(queries, width, dim, transposed, first, rows, scores);
    const int64_t begin = dim.Begin(first, first + rows);
    float inverse[kQueryRows];
    for (int64_t r = 0; r < rows; ++r) {
      float* row = SeenScores(dim, first + r, begin, scores + r * dim.score_stride);
      const int64_t visible = dim.extent.end(first + r) - dim.extent.first(first + r);
      const RowStatistics statistics = SoftmaxRow(visible, row);
      inverse[r] = 1.0f / statistics.sum;
      log_sum_exp[first + r] =
          statistics.largest + hn::GetLane(hn::Log(d, hn::Set(d, statistics.sum)));
      if (unit.dropout > 0.0) {
        DropRow(visible, RowWords(unit, first + r, buffer), unit.dropout, row);
      }
    }
    TimesValues(scores, dim, values, first, rows, sums);
    for (int64_t r = 0; r < rows; ++r) {
      CopyRowsOut(sums + r * width, width, 1, dim.head_width, inverse[r],
                  out + (first + r) * unit.out_stride, unit.out_stride);
    }
  }
}

template <typename T>
float DotRow(const float* a, const T* b, int64_t n) {
  auto sum = hn::Zero(F32());
  ForEachVector(n, [&](int64_t i, auto at)
                       HWY_ATTR { sum = hn::MulAdd(at.Load(a + i), at.Load(b + i), sum); });
  return Sum(sum);
}

// From scores and dP: scores = P Z and d_scores = P (Z dP - delta). words may be null: Z = 1.
void SoftmaxBackwardRow(int64_t visible, float log_sum_exp, float delta, const uint32_t* words,
                        double rate, float* scores, float* d_scores) {
  const F32 d;
  const auto shift = hn::Set(d, log_sum_exp), rest = hn::Set(d, delta);
  const uint32_t threshold = DropoutThreshold(rate);
  const auto scale = DropoutScale(rate);
  ForEachVisible(visible, scores, [&](int64_t i, auto mask) HWY_ATTR {
    const auto p = hn::IfThenElseZero(mask, Exp(d, hn::Sub(hn::LoadU(d, scores + i), shift)));
    const auto z = words == nullptr ? hn::Set(d, 1.0f)
                                    : hn::IfThenElseZero(KeepMask(words + i, threshold), scale);
    const auto dp = hn::Mul(z, hn::LoadU(d, d_scores + i));
    hn::StoreU(hn::Mul(p, z), d, scores + i);
    hn::StoreU(hn::IfThenElseZero(mask, hn::Mul(p, hn::Sub(dp, rest))), d, d_scores + i);
  });
  ForEachVisible(visible, d_scores, [](int64_t, auto) HWY_ATTR {});
}

// What the backward of a unit works on, all in the caller's scratch.
struct BackwardState {
  const Dimensions dim;
  float *keys, *values, *keys_transposed, *values_transposed, *d_keys, *d_values;
  float *queries, *d_out, *d_queries, *scores, *d_scores;
  uint32_t* buffer;

  template <typename T>
  BackwardState(const AttentionUnit<T>& unit, Scratch take) : dim(unit) {
    const int64_t all = dim.columns * dim.padded_width, block = kQueryRows * dim.padded_width;
    for (float** piece : {&keys, &values, &d_keys, &d_values}) *piece = take.Take(all);
    for (float** piece : {&keys_transposed, &values_transposed}) {
      *piece = take.Take(dim.head_width * dim.score_stride);
    }
    for (float** piece : {&queries, &d_out, &d_queries}) *piece = take.Take(block);
    for (float** piece : {&scores, &d_scores}) *piece = take.Take(kQueryRows * dim.score_stride);
    buffer = reinterpret_cast<uint32_t*>(take.Take(dim.score_stride + kRandomSlack));
    CopyRows(unit.keys, unit.key_stride, dim.columns, dim.head_width, 1.0f, keys, dim.padded_width);
    CopyRows(unit.values, unit.key_stride, dim.columns, dim.head_width, 1.0f, values,
             dim.padded_width);
    Transpose(keys, dim.columns, dim.head_width, dim.padded_width, keys_transposed,
              dim.score_stride);
    Transpose(values, dim.columns, dim.head_width, dim.padded_width, values_transposed,
              dim.score_stride);
    std::memset(d_keys, 0, static_cast<size_t>(all) * sizeof(float));
    std::memset(d_values, 0, static_cast<size_t>(all) * sizeof(float));
  }
};

// d_out, out and d_queries stand at the block's first row.
template <typename T>
void BackwardBlock(const AttentionUnit<T>& unit, const BackwardState& s, int64_t first,
                   int64_t rows, const T* d_out, const T* out, const float* log_sum_exp,
                   T* d_queries) {
  const Dimensions& dim = s.dim;
  const int64_t width = dim.padded_width;
  CopyRows(unit.queries + first * unit.query_stride, unit.query_stride, rows, dim.head_width,
           dim.scale, s.queries, width);
  CopyRows(d_out, unit.out_stride, rows, dim.head_width, 1.0f, s.d_out, width);
  Scores(s.queries, width, dim, s.keys_transposed, first, rows, s.scores);
  Scores(s.d_out, width, dim, s.values_transposed, first, rows, s.d_scores);
  const int64_t begin = dim.Begin(first, first + rows);
  for (int64_t r = 0; r < rows; ++r) {
    const float delta = DotRow(s.d_out + r * width, out + r * unit.out_stride, dim.head_width);
    const uint32_t* words = unit.dropout > 0.0 ? RowWords(unit, first + r, s.buffer) : nullptr;
    const int64_t visible = dim.extent.end(first + r) - dim.extent.first(first + r);
    SoftmaxBackwardRow(visible, log_sum_exp[first + r], delta, words, unit.dropout,
                       SeenScores(dim, first + r, begin, s.scores + r * dim.score_stride),
                       SeenScores(dim, first + r, begin, s.d_scores + r * dim.score_stride));
  }
  AddTransposedTimes(s.scores, dim, s.d_out, first, rows, s.d_values);
  AddTransposedTimes(s.d_scores, dim, s.queries, first, rows, s.d_keys);
  TimesValues(s.d_scores, dim, s.keys, first, rows, s.d_queries);
  CopyRowsOut(s.d_queries, width, rows, dim.head_width, dim.scale, d_queries, unit.query_stride);
}

template <typename T>
HWY_INLINE void BackwardUnit(const AttentionUnit<T>& unit, const T* d_out, const T* out,
                             const float* log_sum_exp, const AttentionParts<T>& d, float* scratch) {
  const BackwardState state(unit, Scratch{scratch});
  const Dimensions& dim = state.dim;
  AttentionUnit<T> head = unit;
  for (int64_t h = 0; h < unit.group; ++h) {  // keys and values stay
    const int64_t columns = h * dim.head_width;
    head.queries = unit.queries + columns;
    head.first_element = unit.first_element + h * unit.statistics * unit.row_elements;
    for (int64_t first = 0; first < dim.rows; first += kQueryRows) {
      BackwardBlock(head, state, first, HWY_MIN(kQueryRows, dim.rows - first),
                    d_out + first * unit.out_stride + columns,
                    out + first * unit.out_stride + columns, log_sum_exp + h * unit.statistics,
                    d.queries + first * unit.query_stride + columns);
    }
  }
  CopyRowsOut(state.d_keys, dim.padded_width, dim.columns, dim.head_width, 1.0f, d.keys,
              unit.key_stride);
  CopyRowsOut(state.d_values, dim.padded_width, dim.columns, dim.head_width, 1.0f, d.values,
              unit.key_stride);
}

void ForwardFloat(const AttentionUnit<float>& unit, float* out, float* log_sum_exp,
                  float* scratch) {
  ForwardUnit(unit, out, log_sum_exp, scratch);
}
void ForwardBfloat16(const AttentionUnit<Bfloat16>& unit, Bfloat16* out, float* log_sum_exp,
                     float* scratch) {
  ForwardUnit(unit, out, log_sum_exp, scratch);
}
void BackwardFloat(const AttentionUnit<float>& unit, const float* d_out, const float* out,
                   const float* log_sum_exp, const AttentionParts<float>& d, float* scratch) {
  BackwardUnit(unit, d_out, out, log_sum_exp, d, scratch);
}
void BackwardBfloat16(const AttentionUnit<Bfloat16>& unit, const Bfloat16* d_out,
                      const Bfloat16* out, const float* log_sum_exp,
                      const AttentionParts<Bfloat16>& d, float* scratch) {
  BackwardUnit(unit, d_out, out, log_sum_exp, d, scratch);
}

}  // namespace HWY_NAMESPACE
}  // namespace stagecoach::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace stagecoach::cpu {

HWY_EXPORT(ForwardFloat);
HWY_EXPORT(ForwardBfloat16);
HWY_EXPORT(BackwardFloat);
HWY_EXPORT(BackwardBfloat16);

void AttentionForwardUnit(const AttentionUnit<float>& unit, float* out, float* log_sum_exp,
                          float* scratch) {
  HWY_DYNAMIC_DISPATCH(ForwardFloat)(unit, out, log_sum_exp, scratch);
}
void AttentionForwardUnit(const AttentionUnit<Bfloat16>& unit, Bfloat16* out, float* log_sum_exp,
                          float* scratch) {
  HWY_DYNAMIC_DISPATCH(ForwardBfloat16)(unit, out, log_sum_exp, scratch);
}
void AttentionBackwardUnit(const AttentionUnit<float>& unit, const float* d_out, const float* out,
                           const float* log_sum_exp, const AttentionParts<float>& d,
                           float* scratch) {
  HWY_DYNAMIC_DISPATCH(BackwardFloat)(unit, d_out, out, log_sum_exp, d, scratch);
}
void AttentionBackwardUnit(const AttentionUnit<Bfloat16>& unit, const Bfloat16* d_out,
                           const Bfloat16* out, const float* log_sum_exp,
                           const AttentionParts<Bfloat16>& d, float* scratch) {
  HWY_DYNAMIC_DISPATCH(BackwardBfloat16)(unit, d_out, out, log_sum_exp, d, scratch);
}

}  // namespace stagecoach::cpu
#endif  // HWY_ONCE
