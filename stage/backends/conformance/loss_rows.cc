#include "absl/strings/str_cat.h"
#include "stage/backends/conformance/harness.h"
#include "stage/backends/loss_testing.h"

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

}  // namespace

void AddLossRows(std::vector<ConformanceRow>& rows) {
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
