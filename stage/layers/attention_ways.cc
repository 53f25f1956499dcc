#include "stage/layers/attention_ways.h"

#include <cstdint>
#include <set>

#include "absl/strings/str_cat.h"
#include "base/errors/status.h"
#include "network/lists/attention_calls.h"

namespace stagecoach {
namespace {

class Asker {
 public:
  Asker(const Network& network, const AskWay& ask) : network_(network), ask_(ask) {}

  absl::Status Ask(const AttentionCall& attention, int64_t sequences) {
    if (attention.keys) return absl::OkStatus();  // there is one way only
    const AttentionShape shape = {.sequences = sequences,
                                  .context = attention.context,
                                  .heads = attention.heads,
                                  .width = attention.width,
                                  .dropout = attention.dropout,
                                  .key_heads = attention.key_heads,
                                  .full = attention.full};
    const std::string text = absl::StrCat(sequences, "x", attention.context, " attention of ",
                                          attention.heads, " heads");
    // Blocks of a network are alike.
    const bool is_new =
        asked_
            .insert(absl::StrCat(text, " ", attention.width, " ", attention.dropout, " ",
                                 attention.key_heads, attention.full ? " full" : ""))
            .second;
    if (!is_new) {
      return absl::OkStatus();
    }
    ASSIGN_OR_RETURN(const AttentionWay way, ask_(shape, ComputeDType(network_.precision)));
    if (way.way.empty()) return absl::OkStatus();
    absl::StrAppend(&ways.fingerprint, ", ", text, ": ", way.way);
    absl::StrAppend(&ways.note, ways.note.empty() ? "" : "; ", text, " by ", way.way,
                    way.why.empty() ? "" : ", as ", way.why);
    return absl::OkStatus();
  }

  AttentionWays ways;

 private:
  const Network& network_;
  const AskWay& ask_;
  std::set<std::string> asked_;
};

}  // namespace

absl::StatusOr<AttentionWays> AskAttentionWays(const Network& network, const TrainingSpec& training,
                                               const AskWay& ask) {
  Asker asker(network, ask);
  for (const int64_t i : {int64_t{0}, training.micro_batches - 1}) {  // both sizes that there are
    const int64_t sequences = MicroBatchSize(training.batch_size, training.micro_batches, i);
    for (const NetworkLayer& layer : network.layers) {
      for (const AttentionCall& call : AttentionCallsOf(*layer.lists)) {
        RETURN_IF_ERROR(asker.Ask(call, sequences));
      }
    }
  }
  return asker.ways;
}

}  // namespace stagecoach
