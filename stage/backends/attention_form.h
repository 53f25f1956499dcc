// AttentionForm: attention of either operation as kernels compute it, packed in one tensor
// (operations/attention/attention.h) or across two (cross_attention.h).
// Ownership: AttentionInputs and AttentionGradientTensors borrow tensors.
// Threads:   pure functions.
// Units and shapes: elements. Row r of sequence s has its queries at (s * rows + r) *
//            query_stride(), column c its keys and values at (s * columns + c) * key_stride().
#ifndef STAGECOACH_STAGE_BACKENDS_ATTENTION_FORM_H_
#define STAGECOACH_STAGE_BACKENDS_ATTENTION_FORM_H_

#include <cstdint>

#include "base/errors/check.h"
#include "base/numbers/random.h"
#include "operations/attention/attention.h"
#include "operations/attention/attention_keys.h"
#include "operations/attention/cross_attention.h"
#include "operations/attention/packed_heads.h"
#include "stage/backends/kernel.h"
#include "stage/tensor/tensor.h"

namespace stagecoach {

// Query head h reads key head h / group(). Dropout (rate > 0) acts on the probabilities.
struct AttentionForm {
  int64_t sequences = 0, rows = 0, columns = 0;  // of the types
  int64_t heads = 1, key_heads = 1, head_width = 0;
  double dropout = 0.0;
  RandomStream stream;
  bool full = false;   // no causal mask
  bool cross = false;  // keys and values have a tensor of their own

  int64_t group() const { return heads / key_heads; }
  int64_t width() const { return heads * head_width; }
  int64_t query_stride() const { return (heads + (cross ? 0 : 2 * key_heads)) * head_width; }
  int64_t key_stride() const { return ((cross ? 0 : heads) + 2 * key_heads) * head_width; }
};

inline AttentionForm FormOfAttention(const AttentionAttributes& attributes, const ValueType& qkv,
                                     const KernelContext& context) {
  const PackedHeads packed = PackedHeadsOf(qkv, attributes.heads, attributes.key_heads);
  return {.sequences = context.run.sequences,
          .rows = packed.context,
          .columns = packed.context,
          .heads = packed.heads,
          .key_heads = packed.key_heads,
          .head_width = packed.head_width,
          .dropout = attributes.dropout,
          .stream = context.Stream(attributes.draw),
          .full = attributes.full};
}

inline AttentionForm FormOfCrossAttention(const CrossAttentionAttributes& attributes,
                                          const ValueType& q, const ValueType& kv,
                                          const KernelContext& context) {
  const CrossHeads heads = CrossHeadsOf(attributes, q, kv);
  return {.sequences = context.run.sequences,
          .rows = heads.rows,
          .columns = heads.columns,
          .heads = heads.heads,
          .key_heads = heads.key_heads,
          .head_width = heads.head_width,
          .dropout = attributes.dropout,
          .stream = context.Stream(attributes.draw),
          .full = true,
          .cross = true};
}

// Packed: `q` and `kv` are both qkv, or both d_qkv. `keys` is null if every column exists.
struct AttentionInputs {
  const Tensor &q, &kv;
  const Tensor* keys = nullptr;

  const int32_t* ids() const { return keys == nullptr ? nullptr : keys->data<int32_t>(); }
};

// What else a gradient reads, and what it gives. Packed: `d_q` and `d_kv` are both d_qkv.
struct AttentionGradientTensors {
  const Tensor &d_out, &out, &log_sum_exp;
  const Tensor &d_q, &d_kv;
};

// The first of all queries, keys and values in these tensors.
template <typename T>
struct AttentionParts {
  T *queries, *keys, *values;
};
template <typename T>
AttentionParts<T> PartsOf(const AttentionForm& form, const Tensor& q, const Tensor& kv) {
  CHECK_EQ(q.elements(), form.sequences * form.rows * form.query_stride()) << "attention";
  CHECK_EQ(kv.elements(), form.sequences * form.columns * form.key_stride()) << "attention";
  T* const keys = kv.data<T>() + (form.cross ? 0 : form.width());
  return {q.data<T>(), keys, keys + form.key_heads * form.head_width};
}

// Rows and columns that exist in a sample. Row r attends to columns [first(r), end(r)).
struct AttentionExtent {
  int64_t rows, columns;
  bool full;
  const int32_t* starts;  // by row; null: rows begin at column 0

  int64_t first(int64_t row) const { return starts == nullptr ? 0 : FirstColumn(starts[row], row); }
  int64_t end(int64_t row) const { return full ? columns : row + 1; }
};
// `ids`: the operand `keys` of all samples, or null.
inline AttentionExtent ExtentOf(const AttentionForm& form, const int32_t* ids, int64_t sequence) {
  if (ids == nullptr) return {form.rows, form.columns, form.full, nullptr};
  if (!form.full) return {form.rows, form.columns, false, ids + sequence * form.rows};
  const int64_t columns = ColumnsThatExist(ids[sequence], form.columns);
  return {form.cross ? form.rows : columns, columns, true, nullptr};
}

}  // namespace stagecoach

#endif  // STAGECOACH_STAGE_BACKENDS_ATTENTION_FORM_H_
