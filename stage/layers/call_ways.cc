#include "stage/layers/call_ways.h"

#include <cstdint>
#include <set>
#include <variant>

#include "absl/strings/str_cat.h"
#include "base/errors/status.h"

namespace stagecoach {
namespace {

// "4x1024 attention of 12 heads"
std::string TextOf(const Call& call, const CallTypes& types, int64_t samples) {
  std::string text = absl::StrCat(samples);
  if (!types.outputs.empty() && types.outputs[0].shape.rank() > 0) {
    absl::StrAppend(&text, "x", types.outputs[0].shape[0]);
  }
  absl::StrAppend(&text, " ", call.operation);
  const AttributeValue* const heads = call.attributes.Find("heads");
  if (heads != nullptr) absl::StrAppend(&text, " of ", std::get<int64_t>(*heads), " heads");
  return text;
}

// Equal for calls that differ in nothing but their values and random numbers.
std::string KeyOf(const Call& call, const CallTypes& types, int64_t samples) {
  Attributes attributes = call.attributes;
  if (attributes.Find("draw") != nullptr) attributes.Set("draw", int64_t{0});
  std::string key = absl::StrCat(samples, " ", call.operation, " ", FormatAttributes(attributes));
  for (const auto* side : {&types.inputs, &types.outputs, &types.adds}) {
    absl::StrAppend(&key, ";");
    for (const ValueType& type : *side) absl::StrAppend(&key, " ", FormatType(type));
  }
  return key;
}

class Asker {
 public:
  Asker(Backend& backend, DType activation) : backend_(backend), activation_(activation) {}

  absl::Status Ask(const Call& call, const CallTypes& types, int64_t samples) {
    // Blocks of a network are alike.
    if (!asked_.insert(KeyOf(call, types, samples)).second) return absl::OkStatus();
    const absl::StatusOr<CallDescription> described =
        backend_.Describe(call, types, samples, activation_);
    if (absl::IsUnimplemented(described.status())) return absl::OkStatus();
    RETURN_IF_ERROR(described.status());
    if (!described->way_varies) return absl::OkStatus();
    const std::string text = TextOf(call, types, samples);
    absl::StrAppend(&ways.fingerprint, ", ", text, ": ", described->way);
    absl::StrAppend(&ways.note, ways.note.empty() ? "" : "; ", text, " by ", described->way,
                    described->why.empty() ? "" : ", as ", described->why);
    return absl::OkStatus();
  }

  CallWays ways;

 private:
  Backend& backend_;
  const DType activation_;
  std::set<std::string> asked_;
};

}  // namespace

absl::StatusOr<CallWays> AskCallWays(const Network& network, const TrainingSpec& training,
                                     Backend& backend) {
  Asker asker(backend, ComputeDType(network.precision));
  for (const int64_t i : {int64_t{0}, training.micro_batches - 1}) {  // both sizes that there are
    const int64_t samples = MicroBatchSize(training.batch_size, training.micro_batches, i);
    std::set<const LayerLists*> seen;  // equal layers share their lists
    for (const NetworkLayer& layer : network.layers) {
      const LayerLists& lists = *layer.lists;
      if (!seen.insert(&lists).second) continue;
      for (const CallList* list : {&lists.forward, &lists.backward}) {
        for (const ListedCall& listed : list->calls) {
          RETURN_IF_ERROR(asker.Ask(listed.call, lists.TypesOf(listed.call), samples));
        }
      }
    }
  }
  return asker.ways;
}

}  // namespace stagecoach
