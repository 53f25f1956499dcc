#include "stage/runtime/attention_ways.h"

#include <cstdint>
#include <set>
#include <variant>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "network/layer_kinds.h"

namespace stagecoach {
namespace {

class Asker {
 public:
  Asker(const ExpandedModel& model, const AskWay& ask) : model_(model), ask_(ask) {}

  absl::Status Ask(const LayerSpec& layer, int64_t width, int64_t sequences) {
    if (const auto* attention = std::get_if<AttentionSpec>(&layer.kind)) {
      return AskOf(*attention, width, sequences);
    }
    if (const auto* residual = std::get_if<ResidualSpec>(&layer.kind)) {
      for (const LayerSpec& inner : residual->layers) {
        RETURN_IF_ERROR(Ask(inner, width, sequences));
        width = LayerWidthOut(inner, width);
      }
    }
    return absl::OkStatus();
  }

  AttentionWays ways;

 private:
  absl::Status AskOf(const AttentionSpec& attention, int64_t width, int64_t sequences) {
    const AttentionShape shape = {.sequences = sequences,
                                  .context = model_.context,
                                  .heads = attention.heads,
                                  .width = width,
                                  .dropout = attention.dropout};
    const std::string text =
        absl::StrCat(sequences, "x", model_.context, " attention of ", attention.heads, " heads");
    // Blocks of a network are alike.
    if (!asked_.insert(absl::StrCat(text, " ", width, " ", attention.dropout)).second) {
      return absl::OkStatus();
    }
    ASSIGN_OR_RETURN(const AttentionWay way, ask_(shape, ComputeDType(model_.precision)));
    if (way.way.empty()) return absl::OkStatus();
    absl::StrAppend(&ways.fingerprint, ", ", text, ": ", way.way);
    absl::StrAppend(&ways.note, ways.note.empty() ? "" : "; ", text, " by ", way.way,
                    way.why.empty() ? "" : ", as ", way.why);
    return absl::OkStatus();
  }

  const ExpandedModel& model_;
  const AskWay& ask_;
  std::set<std::string> asked_;
};

}  // namespace

absl::StatusOr<AttentionWays> AskAttentionWays(const ExpandedModel& model,
                                               const TrainingSpec& training, const AskWay& ask) {
  Asker asker(model, ask);
  for (const int64_t i : {int64_t{0}, training.micro_batches - 1}) {  // both sizes that there are
    const int64_t sequences = MicroBatchSize(training.batch_size, training.micro_batches, i);
    for (const ExpandedLayer& layer : model.layers) {
      RETURN_IF_ERROR(asker.Ask(layer.spec, layer.width_in, sequences));
    }
  }
  return asker.ways;
}

}  // namespace stagecoach
