#include "absl/strings/str_cat.h"
#include "stage/backends/conformance/harness.h"
#include "stage/backends/loss_testing.h"
#include "stage/backends/operation_testing.h"

namespace stagecoach::conformance {
namespace {

enum class Gradient { kNone, kApart, kInPlace };

Outputs Loss(Bench& bench, int64_t n, int64_t vocabulary, float spread, Gradient gradient) {
  LossTensors t = {.logits = bench.Activation({n, vocabulary}, spread),
                   .targets = bench.Indices(n, vocabulary),
                   .sums = bench.Blank({2}, DType::kF64)};
  if (gradient != Gradient::kNone) t.scale = bench.From({0.125f}, {1});
  if (gradient == Gradient::kApart) t.d_logits = bench.BlankActivation({n, vocabulary});
  if (gradient == Gradient::kInPlace) t.d_logits = t.logits;
  RunLoss(bench.backend(), t);
  Outputs outputs = {bench.Read("sums", t.sums)};
  if (t.d_logits.valid()) outputs.push_back(bench.Read("d_logits", t.d_logits));
  return outputs;
}

// A head, its loss in the place of the logits and both gradients of the head, with rows of logits
// as far apart as the back end wants them in training.
Outputs PaddedHead(Bench& bench, int64_t n, int64_t in, int64_t vocabulary) {
  Backend& backend = bench.backend();
  const Tensor x = bench.Activation({n, in}), weight = bench.Activation({vocabulary, in}, 0.3f);
  const auto logits =
      MakePaddedTensor(backend.allocator(), MemoryKind::kActivations, x.dtype(), {n, vocabulary},
                       backend.LogitsStride(vocabulary, x.dtype()));
  CHECK_OK(logits.status());
  RunOn(backend, {.operation = "linear", .inputs = {x, Whole(weight)}, .outputs = {*logits}});
  const LossTensors loss = {.logits = *logits,
                            .targets = bench.Indices(n, vocabulary),
                            .sums = bench.Blank({2}, DType::kF64),
                            .scale = bench.From({0.125f}, {1}),
                            .d_logits = *logits};
  RunLoss(backend, loss);
  const Tensor dx = bench.BlankActivation({n, in}), d_weight = bench.Blank({vocabulary, in});
  backend.Fill(d_weight, 0.0f);
  RunOn(
      backend,
      {.operation = "linear_input_gradient", .inputs = {*logits, Whole(weight)}, .outputs = {dx}});
  RunOn(backend,
        {.operation = "linear_weight_gradient", .inputs = {*logits, x}, .adds = {d_weight}});
  return {bench.Read("sums", loss.sums), bench.Read("dx", dx), bench.Read("d_weight", d_weight)};
}

}  // namespace

void AddLossRows(std::vector<ConformanceRow>& rows) {
  using Types = ConformanceRow::Types;
  // In bfloat16 logits are rounded, and so is their gradient.
  constexpr double kRoundedLogits = 6e-2;
  for (const int64_t vocabulary : {3, 17, 1001}) {
    const auto head = [=](Bench& b) { return PaddedHead(b, 37, 24, vocabulary); };
    const std::string name = absl::StrCat("PaddedHead_", vocabulary);
    rows.push_back({name, 1e-4, head, kRoundedOnce, Types::kFloat32});
    rows.push_back({name, kRoundedLogits, head, kRoundedLogits, Types::kBfloat16});
  }
  for (const int64_t vocabulary : {2, 7, 256, 1000}) {
    for (const int64_t n : {1, 65, 1001}) {
      const std::string shape = absl::StrCat("_", n, "x", vocabulary);
      rows.push_back({absl::StrCat("CrossEntropy", shape), 1e-5,
                      [=](Bench& b) { return Loss(b, n, vocabulary, 2.0f, Gradient::kApart); }});
    }
    rows.push_back({absl::StrCat("CrossEntropyLossOnly_", vocabulary), 1e-5,
                    [=](Bench& b) { return Loss(b, 40, vocabulary, 2.0f, Gradient::kNone); }});
    // Logits so far apart that most exponentials vanish.
    rows.push_back({absl::StrCat("CrossEntropyInPlaceFarApart_", vocabulary), 1e-5,
                    [=](Bench& b) { return Loss(b, 40, vocabulary, 60.0f, Gradient::kInPlace); }});
  }
}

}  // namespace stagecoach::conformance
