#include "absl/strings/str_cat.h"
#include "stage/backends/conformance/harness.h"

namespace stagecoach::conformance {
namespace {

enum class Gradient { kNone, kApart, kInPlace };

Outputs Loss(Bench& bench, int64_t n, int64_t vocabulary, float spread, Gradient gradient) {
  CrossEntropyArgs args = {.logits = bench.Activation({n, vocabulary}, spread),
                           .targets = bench.Indices(n, vocabulary),
                           .scale = 0.125f,
                           .loss = bench.Blank({1}, DType::kF64)};
  if (gradient == Gradient::kApart) args.d_logits = bench.BlankActivation({n, vocabulary});
  if (gradient == Gradient::kInPlace) args.d_logits = args.logits;
  bench.backend().CrossEntropy(args);
  Outputs outputs = {bench.Read("loss", args.loss)};
  if (args.d_logits.valid()) outputs.push_back(bench.Read("d_logits", args.d_logits));
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
