#include "stage/backends/conformance/attention_alone.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "operations/attention/attention.h"
#include "operations/attention/cross_attention.h"
#include "stage/backends/conformance/case_calls.h"
#include "stage/backends/operation_testing.h"

namespace stagecoach::conformance {
namespace {

// Beyond one block of queries of the cpu, and beyond three tiles of a card.
constexpr int64_t kContext = 131, kRows = 37;
constexpr int64_t kHeads = 4, kKeyHeads = 2, kHeadWidth = 9, kWidth = kHeads * kHeadWidth;
constexpr int64_t kPacked = (kHeads + 2 * kKeyHeads) * kHeadWidth;
constexpr int64_t kKeysAndValues = 2 * kKeyHeads * kHeadWidth;

// Rows of `width` numbers, [sequences, rows, width].
struct Matrix {
  int64_t rows, width;
  std::vector<float> values;

  static Matrix Of(int64_t sequences, int64_t rows, int64_t width, uint32_t stream) {
    return {rows, width, FillNormal(sequences * rows * width, stream)};
  }
  // Rows [first, first + count) of a sequence.
  Matrix Part(int64_t sequence, int64_t first, int64_t count) const {
    const auto begin = values.begin() + (sequence * rows + first) * width;
    return {count, width, {begin, begin + count * width}};
  }
  void Spoil(int64_t sequence, int64_t first) {
    std::fill(values.begin() + (sequence * rows + first) * width,
              values.begin() + (sequence + 1) * rows * width, NAN);
  }
};

// log_sum_exp is turned to [sequences, rows, heads].
struct Result {
  Matrix out, log_sum_exp, d_q, d_kv;
  bool packed = false;  // d_kv is empty

  Outputs Part(int64_t sequence, int64_t rows_from, int64_t rows, int64_t columns) const {
    Outputs outputs;
    const auto add = [&](const char* name, const Matrix& part) {
      outputs.push_back({name, {part.values.begin(), part.values.end()}});
    };
    add("out", out.Part(sequence, rows_from, rows));
    add("log_sum_exp", log_sum_exp.Part(sequence, rows_from, rows));
    add("d_q", d_q.Part(sequence, rows_from, rows));
    if (!packed) add("d_kv", d_kv.Part(sequence, 0, columns));
    return outputs;
  }
};

Matrix ReadMatrix(Bench& bench, const Tensor& tensor, int64_t rows, int64_t width) {
  const Output output = bench.Read("", tensor);
  return {rows, width, {output.values.begin(), output.values.end()}};
}

Matrix ReadStatistics(Bench& bench, const Tensor& tensor, int64_t sequences, int64_t rows) {
  const Output output = bench.Read("", tensor);
  Matrix turned{rows, kHeads, {}};
  for (int64_t s = 0; s < sequences; ++s) {
    for (int64_t r = 0; r < rows; ++r) {
      for (int64_t h = 0; h < kHeads; ++h) {
        turned.values.push_back(
            static_cast<float>(output.values[static_cast<size_t>((s * kHeads + h) * rows + r)]));
      }
    }
  }
  return turned;
}

struct Keys {
  std::vector<int32_t> ids;
  Shape shape;
};

class Attending {
 public:
  Attending(Backend& backend, Elements elements) : bench_(backend, elements) {}

  Result Packed(int64_t sequences, bool full, const Matrix& qkv, const Matrix& d_out,
                const std::optional<Keys>& keys) {
    const Attributes attributes =
        ToAttributes(AttentionAttributes{.heads = kHeads, .key_heads = kKeyHeads, .full = full});
    const int64_t n = sequences * qkv.rows;
    const Tensor packed = Of(sequences, qkv), out = bench_.BlankActivation({n, kWidth});
    const Tensor statistics = bench_.Blank({sequences, kHeads, qkv.rows});
    const Tensor d_qkv = bench_.BlankActivation({n, kPacked});
    std::vector<OperandTensor> reads = {packed};
    std::vector<OperandTensor> gradient_reads = {Of(sequences, d_out), packed, out, statistics};
    if (keys.has_value()) {
      reads.emplace_back(bench_.IdsFrom(keys->ids, keys->shape));
      gradient_reads.push_back(reads.back());
    }
    Run("attention", attributes, sequences, reads, {out, statistics});
    Run("attention_gradient", attributes, sequences, gradient_reads, {d_qkv});
    return {ReadMatrix(bench_, out, qkv.rows, kWidth),
            ReadStatistics(bench_, statistics, sequences, qkv.rows),
            ReadMatrix(bench_, d_qkv, qkv.rows, kPacked),
            {},
            true};
  }

  Result Cross(int64_t sequences, const Matrix& q, const Matrix& kv, const Matrix& d_out,
               const std::vector<int32_t>& lengths) {
    const Attributes attributes =
        ToAttributes(CrossAttentionAttributes{.heads = kHeads, .key_heads = kKeyHeads});
    const Tensor queries = Of(sequences, q), keys_and_values = Of(sequences, kv);
    const Tensor keys = bench_.IdsFrom(lengths, {sequences});
    const Tensor out = bench_.BlankActivation({sequences * q.rows, kWidth});
    const Tensor statistics = bench_.Blank({sequences, kHeads, q.rows});
    const Tensor d_q = bench_.BlankActivation({sequences * q.rows, kWidth});
    const Tensor d_kv = bench_.BlankActivation({sequences * kv.rows, kKeysAndValues});
    Run("cross_attention", attributes, sequences, {queries, keys_and_values, keys},
        {out, statistics});
    Run("cross_attention_gradient", attributes, sequences,
        {Of(sequences, d_out), queries, keys_and_values, keys, out, statistics}, {d_q, d_kv});
    return {ReadMatrix(bench_, out, q.rows, kWidth),
            ReadStatistics(bench_, statistics, sequences, q.rows),
            ReadMatrix(bench_, d_q, q.rows, kWidth),
            ReadMatrix(bench_, d_kv, kv.rows, kKeysAndValues)};
  }

 private:
  Tensor Of(int64_t sequences, const Matrix& matrix) {
    return bench_.ActivationFrom(matrix.values, {sequences * matrix.rows, matrix.width});
  }
  void Run(const char* operation, const Attributes& attributes, int64_t sequences,
           const std::vector<OperandTensor>& inputs, const Tensors& outputs) {
    RunOn(bench_.backend(), {.operation = operation,
                             .attributes = attributes,
                             .inputs = inputs,
                             .outputs = outputs,
                             .samples = sequences});
    CHECK_OK(bench_.backend().Synchronize());  // the inputs end with the caller
  }

  Bench bench_;
};

std::string Compare(const std::string& what, const Outputs& actual, const Outputs& expected,
                    double tolerance) {
  const std::string why = Disagreement(actual, expected, tolerance);
  return why.empty() ? "" : absl::StrCat(what, ": ", why);
}

// Empty if all are zeros.
std::string Zeros(const std::string& what, const Outputs& outputs) {
  Outputs zeros = outputs;
  for (Output& output : zeros) output.values.assign(output.values.size(), 0.0);
  return Compare(what, outputs, zeros, 0.0);
}

}  // namespace

std::string PaddingChanges(Backend& backend, Elements elements) {
  Attending attending(backend, elements);
  const std::vector<int32_t> lengths = {1, 64, kContext, 97, 7};
  const auto sequences = static_cast<int64_t>(lengths.size());
  Matrix qkv = Matrix::Of(sequences, kContext, kPacked, 1);
  Matrix d_out = Matrix::Of(sequences, kContext, kWidth, 2);
  for (int64_t s = 0; s < sequences; ++s) {
    qkv.Spoil(s, lengths[static_cast<size_t>(s)]);
    d_out.Spoil(s, lengths[static_cast<size_t>(s)]);
  }
  const Result all = attending.Packed(sequences, true, qkv, d_out, Keys{lengths, {sequences}});
  for (int64_t s = 0; s < sequences; ++s) {
    const int64_t length = lengths[static_cast<size_t>(s)];
    const std::string what = absl::StrCat("a sample of ", length);
    const Result alone =
        attending.Packed(1, true, qkv.Part(s, 0, length), d_out.Part(s, 0, length), {});
    std::string why = Compare(what, all.Part(s, 0, length, 0), alone.Part(0, 0, length, 0), 0.0);
    if (why.empty()) why = Zeros(what, all.Part(s, length, kContext - length, 0));
    if (!why.empty()) return why;
  }
  return "";
}

std::string CrossPaddingChanges(Backend& backend, Elements elements) {
  Attending attending(backend, elements);
  const std::vector<int32_t> lengths = {64, 1, kContext, 97, 7};
  const auto sequences = static_cast<int64_t>(lengths.size());
  const Matrix q = Matrix::Of(sequences, kRows, kWidth, 1);
  const Matrix d_out = Matrix::Of(sequences, kRows, kWidth, 2);
  Matrix kv = Matrix::Of(sequences, kContext, kKeysAndValues, 3);
  for (int64_t s = 0; s < sequences; ++s) kv.Spoil(s, lengths[static_cast<size_t>(s)]);
  const Result all = attending.Cross(sequences, q, kv, d_out, lengths);
  for (int64_t s = 0; s < sequences; ++s) {
    const int32_t length = lengths[static_cast<size_t>(s)];
    const std::string what = absl::StrCat(length, " columns");
    const Result alone = attending.Cross(1, q.Part(s, 0, kRows), kv.Part(s, 0, length),
                                         d_out.Part(s, 0, kRows), {length});
    std::string why =
        Compare(what, all.Part(s, 0, kRows, length), alone.Part(0, 0, kRows, length), 0.0);
    const Matrix rest = all.d_kv.Part(s, length, kContext - length);
    if (why.empty()) why = Zeros(what, {{"d_kv", {rest.values.begin(), rest.values.end()}}});
    if (!why.empty()) return why;
  }
  return "";
}

std::string OtherDocumentsChange(Backend& backend, Elements elements, double tolerance) {
  Attending attending(backend, elements);
  // Where documents begin, by sample.
  const std::vector<std::vector<int32_t>> documents = {
      {0}, {0, 1, 8, 72}, {0, 96}, {0, 130}, {0, 5, 101, 102}};
  const auto sequences = static_cast<int64_t>(documents.size());
  const Matrix qkv = Matrix::Of(sequences, kContext, kPacked, 1);
  const Matrix d_out = Matrix::Of(sequences, kContext, kWidth, 2);
  Keys keys{{}, {sequences * kContext}};
  for (const std::vector<int32_t>& begins : documents) {
    int32_t begin = 0;
    for (int32_t row = 0; row < kContext; ++row) {
      if (std::find(begins.begin(), begins.end(), row) != begins.end()) begin = row;
      keys.ids.push_back(begin);
    }
  }
  const Result all = attending.Packed(sequences, false, qkv, d_out, keys);
  for (int64_t s = 0; s < sequences; ++s) {
    std::vector<int32_t> begins = documents[static_cast<size_t>(s)];
    const bool whole = begins.size() == 1;
    begins.push_back(kContext);
    for (size_t i = 0; i + 1 < begins.size(); ++i) {
      const int64_t first = begins[i], rows = begins[i + 1] - first;
      const Result alone =
          attending.Packed(1, false, qkv.Part(s, first, rows), d_out.Part(s, first, rows), {});
      const std::string why =
          Compare(absl::StrCat("rows ", first, " on of sample ", s), all.Part(s, first, rows, 0),
                  alone.Part(0, 0, rows, 0), whole ? 0.0 : tolerance);
      if (!why.empty()) return why;
    }
  }
  return "";
}

}  // namespace stagecoach::conformance
