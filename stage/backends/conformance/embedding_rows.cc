#include "absl/strings/str_cat.h"
#include "stage/backends/conformance/harness.h"

namespace stagecoach::conformance {
namespace {

struct Size {
  int64_t sequences, context, vocabulary, width;
};
// Vocabularies smaller than the number of rows: tokens repeat, so the order of additions shows.
constexpr Size kSizes[] = {
    {1, 1, 7, 1}, {2, 7, 7, 5}, {3, 64, 256, 17}, {4, 256, 256, 130}, {1, 100, 1000, 33}};

Outputs ForwardAndBackward(Bench& bench, const Size& size) {
  const int64_t n = size.sequences * size.context;
  const Tensor ids = bench.Indices(n, size.vocabulary);
  EmbeddingForwardArgs forward = {.ids = ids,
                                  .token = bench.Activation({size.vocabulary, size.width}),
                                  .position = bench.Activation({size.context, size.width}),
                                  .context = size.context,
                                  .y = bench.BlankActivation({n, size.width})};
  bench.backend().EmbeddingForward(forward);
  EmbeddingBackwardArgs backward = {.ids = ids,
                                    .dy = bench.Activation({n, size.width}),
                                    .context = size.context,
                                    .d_token = bench.Normal({size.vocabulary, size.width}),
                                    .d_position = bench.Normal({size.context, size.width})};
  bench.backend().EmbeddingBackward(backward);
  return {bench.Read("y", forward.y), bench.Read("d_token", backward.d_token),
          bench.Read("d_position", backward.d_position)};
}

}  // namespace

void AddEmbeddingRows(std::vector<ConformanceRow>& rows) {
  for (const Size& size : kSizes) {
    rows.push_back({absl::StrCat("Embedding_", size.sequences, "x", size.context, "_",
                                 size.vocabulary, "x", size.width),
                    0.0, [=](Bench& b) { return ForwardAndBackward(b, size); }});
  }
}

}  // namespace stagecoach::conformance
