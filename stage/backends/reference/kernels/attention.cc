// Multi-head attention (operations/attention/attention.h), one (sequence, head) unit at a time, the
// whole score matrix in double.
#include "stage/backends/reference/kernels/attention.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "base/threads/progress.h"
#include "stage/backends/reference/kernel_list.h"

namespace stagecoach::reference {
namespace {

using Inputs = AttentionParts<const float>;

// One head of one sequence: strided views into the arrays.
struct Unit {
  const AttentionForm& form;
  const AttentionExtent extent;
  int64_t sequence, head;

  int64_t Query(int64_t row) const {
    return (sequence * form.rows + row) * form.query_stride() + head * form.head_width;
  }
  int64_t Key(int64_t column) const {  // of keys and of values
    return (sequence * form.columns + column) * form.key_stride() +
           head / form.group() * form.head_width;
  }
  int64_t Output(int64_t row) const {
    return (sequence * form.rows + row) * form.width() + head * form.head_width;
  }
  int64_t Statistic(int64_t row) const { return (sequence * form.heads + head) * form.rows + row; }
  // What a probability is multiplied by: 1 without dropout, else 0 or 1 / (1 - rate).
  double Keep(int64_t row, int64_t column) const {
    if (form.dropout <= 0.0) return 1.0;
    const uint64_t element = static_cast<uint64_t>(Statistic(row) * form.columns + column);
    if (RandomBits(form.stream, element) < DropoutThreshold(form.dropout)) return 0.0;
    return static_cast<float>(1.0 / (1.0 - form.dropout));
  }
  double Score(const Inputs& in, int64_t row, int64_t column) const {
    double sum = 0;
    for (int64_t i = 0; i < form.head_width; ++i) {
      sum += double{in.queries[Query(row) + i]} * in.keys[Key(column) + i];
    }
    return sum / std::sqrt(static_cast<double>(form.head_width));
  }
};

void ForwardUnit(const Unit& unit, const Inputs& in, float* out, float* log_sum_exp) {
  const int64_t width = unit.form.head_width;
  std::vector<double> probability(unit.form.columns), sums(width);
  for (int64_t row = 0; row < unit.extent.rows; ++row) {
    TickProgress();
    double largest = -INFINITY, total = 0;
    const int64_t first = unit.extent.first(row), end = unit.extent.end(row);
    for (int64_t c = first; c < end; ++c) {
      probability[c] = unit.Score(in, row, c);
      largest = std::max(largest, probability[c]);
    }
    for (int64_t c = first; c < end; ++c) total += std::exp(probability[c] - largest);
    const double normalizer = largest + std::log(total);
    log_sum_exp[unit.Statistic(row)] = static_cast<float>(normalizer);
    std::fill(sums.begin(), sums.end(), 0.0);
    for (int64_t c = first; c < end; ++c) {
      const double p = std::exp(probability[c] - normalizer) * unit.Keep(row, c);
      for (int64_t i = 0; i < width; ++i) sums[i] += p * in.values[unit.Key(c) + i];
    }
    for (int64_t i = 0; i < width; ++i) out[unit.Output(row) + i] = static_cast<float>(sums[i]);
  }
  for (int64_t row = unit.extent.rows; row < unit.form.rows; ++row) {
    std::fill_n(out + unit.Output(row), width, 0.0f);
    log_sum_exp[unit.Statistic(row)] = 0.0f;
  }
}

struct Gradients {
  const float *d_out, *out, *log_sum_exp;
  AttentionParts<float> d;
};

// With P the probabilities, Z their dropout factors: dV = (P Z)^T dO; dP = Z * (dO V^T);
// dS = P * (dP - rowsum(P * dP)), and rowsum(P * dP) = rowsum(dO * O); dQ = dS K, dK = dS^T Q,
// scaled. dk and dv add, so that the heads that share a key head add up.
void BackwardUnit(const Unit& unit, const Inputs& in, const Gradients& g, double* dk, double* dv) {
  const int64_t width = unit.form.head_width;
  const double scale = 1.0 / std::sqrt(static_cast<double>(width));
  std::vector<double> dq(width);
  for (int64_t row = 0; row < unit.form.rows; ++row) {
    TickProgress();
    std::fill(dq.begin(), dq.end(), 0.0);
    const bool exists = row < unit.extent.rows;
    double delta = 0;
    for (int64_t i = 0; exists && i < width; ++i) {
      delta += double{g.d_out[unit.Output(row) + i]} * g.out[unit.Output(row) + i];
    }
    const int64_t end = exists ? unit.extent.end(row) : 0;
    for (int64_t c = exists ? unit.extent.first(row) : 0; c < end; ++c) {
      const double p = std::exp(unit.Score(in, row, c) - g.log_sum_exp[unit.Statistic(row)]);
      const double keep = unit.Keep(row, c);
      double dp = 0;
      for (int64_t i = 0; i < width; ++i) {
        dp += double{g.d_out[unit.Output(row) + i]} * in.values[unit.Key(c) + i];
      }
      const double ds = p * (dp * keep - delta) * scale;
      for (int64_t i = 0; i < width; ++i) {
        dv[c * width + i] += p * keep * g.d_out[unit.Output(row) + i];
        dq[i] += ds * in.keys[unit.Key(c) + i];
        dk[c * width + i] += ds * in.queries[unit.Query(row) + i];
      }
    }
    float* const target = g.d.queries + unit.Query(row);
    for (int64_t i = 0; i < width; ++i) target[i] = static_cast<float>(dq[i]);
  }
}

// All heads that read one key head. Columns that do not exist keep their zeros.
void BackwardGroup(const AttentionForm& form, const AttentionExtent& extent, const Inputs& in,
                   const Gradients& g, int64_t sequence, int64_t key_head) {
  const int64_t width = form.head_width, group = form.group();
  std::vector<double> dk(form.columns * width, 0.0), dv(form.columns * width, 0.0);
  for (int64_t head = key_head * group; head < (key_head + 1) * group; ++head) {
    BackwardUnit(Unit{form, extent, sequence, head}, in, g, dk.data(), dv.data());
  }
  const Unit any{form, extent, sequence, key_head * group};
  for (int64_t column = 0; column < form.columns; ++column) {
    for (int64_t i = 0; i < width; ++i) {
      g.d.keys[any.Key(column) + i] = static_cast<float>(dk[column * width + i]);
      g.d.values[any.Key(column) + i] = static_cast<float>(dv[column * width + i]);
    }
  }
}

absl::StatusOr<Kernel> Forward(ReferenceBackend&, const Call& call, const CallTypes& types, DType) {
  const auto attributes = AttributesOf<AttentionAttributes>(call);
  return Kernel(
      [attributes, qkv = types.inputs[0]](const KernelContext& context, const KernelArguments& a) {
        RunAttention(FormOfAttention(attributes, qkv, context),
                     {a.inputs[0], a.inputs[0], a.inputs.size() > 1 ? &a.inputs[1] : nullptr},
                     a.outputs[0], a.outputs[1]);
      });
}

absl::StatusOr<Kernel> Gradient(ReferenceBackend&, const Call& call, const CallTypes& types,
                                DType) {
  const auto attributes = AttributesOf<AttentionAttributes>(call);
  return Kernel([attributes, qkv = types.inputs[1]](const KernelContext& context,
                                                    const KernelArguments& a) {
    RunAttentionGradient(FormOfAttention(attributes, qkv, context),
                         {a.inputs[1], a.inputs[1], a.inputs.size() > 4 ? &a.inputs[4] : nullptr},
                         {a.inputs[0], a.inputs[2], a.inputs[3], a.outputs[0], a.outputs[0]});
  });
}

}  // namespace

void RunAttention(const AttentionForm& form, const AttentionInputs& inputs, const Tensor& out,
                  const Tensor& log_sum_exp) {
  const auto in = PartsOf<const float>(form, inputs.q, inputs.kv);
  for (int64_t s = 0; s < form.sequences; ++s) {
    for (int64_t h = 0; h < form.heads; ++h) {
      ForwardUnit(Unit{form, ExtentOf(form, inputs.ids(), s), s, h}, in, out.data<float>(),
                  log_sum_exp.data<float>());
    }
  }
}

void RunAttentionGradient(const AttentionForm& form, const AttentionInputs& inputs,
                          const AttentionGradientTensors& tensors) {
  const auto in = PartsOf<const float>(form, inputs.q, inputs.kv);
  const Gradients g = {tensors.d_out.data<float>(), tensors.out.data<float>(),
                       tensors.log_sum_exp.data<float>(),
                       PartsOf<float>(form, tensors.d_q, tensors.d_kv)};
  for (int64_t s = 0; s < form.sequences; ++s) {
    const AttentionExtent extent = ExtentOf(form, inputs.ids(), s);
    for (int64_t h = 0; h < form.key_heads; ++h) BackwardGroup(form, extent, in, g, s, h);
  }
}

KernelList AttentionKernels() { return {{"attention", Forward}, {"attention_gradient", Gradient}}; }

}  // namespace stagecoach::reference
