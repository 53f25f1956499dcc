#include "devices/card/describe.h"

#include <algorithm>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "absl/strings/str_cat.h"
#include "devices/card/attention_slices.h"
#include "operations/attention/attention.h"
#include "operations/attention/packed_heads.h"
#include "operations/attributes.h"

namespace stagecoach {
namespace {

struct CardCall {
  const CardProfile& card;
  const Call& call;
  const CallTypes& types;
  int64_t samples = 0;
  Precision precision = Precision::kFloat32;
};

// Self-attention of a card call: its heads, and whether lengths or documents say which columns
// exist.
struct CardAttention {
  AttentionAttributes attributes;
  PackedHeads heads;
  bool keys = false;
};
// Place of queries, keys and values among the inputs, and number of inputs without keys.
CardAttention AttentionOf(const CardCall& of, size_t qkv, size_t inputs) {
  const auto attributes = *FromAttributes<AttentionAttributes>(of.call.attributes);
  return {attributes, PackedHeadsOf(of.types.inputs[qkv], attributes.heads, attributes.key_heads),
          of.types.inputs.size() > inputs};
}

// Empty: the library may be asked; else the reason, for people: "the context, 100, is no multiple
// of 128".
std::string WhyNot(const AttentionKernels& kernels, const CardAttention& attention,
                   Precision precision) {
  const int64_t context = attention.heads.context, head_width = attention.heads.head_width;
  const std::vector<Precision>& precisions = kernels.precisions;
  if (std::find(precisions.begin(), precisions.end(), precision) == precisions.end()) {
    return absl::StrCat("the precision is ", PrecisionName(precision));
  }
  if (attention.attributes.dropout != 0.0) return "it has dropout";
  if (attention.heads.key_heads != attention.heads.heads) return "heads share key heads";
  if (attention.keys) return "samples have lengths or documents";
  if (attention.attributes.full) return "it has no causal mask";
  if (context <= 0 || context % kernels.tile != 0) {
    return absl::StrCat("the context, ", context, ", is no multiple of ", kernels.tile);
  }
  if (head_width > kernels.widest_head || head_width % kernels.head_multiple != 0) {
    return absl::StrCat("heads are ", head_width, " wide: over ", kernels.widest_head,
                        " or no multiple of ", kernels.head_multiple);
  }
  return "";
}

CallDescription DescribeBy(const CardCall& of, const CardAttention& attention) {
  if (!of.card.attention.has_value()) return {};
  std::string why = WhyNot(*of.card.attention, attention, of.precision);
  if (!why.empty()) return {.way = "own kernels", .why = std::move(why)};
  return {.way = of.card.attention->name};
}

CallDescription AttentionOnCard(const CardCall& of) {
  return DescribeBy(of, AttentionOf(of, 0, 1));
}

// The score matrices of the largest slice, if the standing workspace is too small for them.
CallDescription AttentionGradientOnCard(const CardCall& of) {
  const CardAttention attention = AttentionOf(of, 1, 4);
  CallDescription description = DescribeBy(of, attention);
  if (description.way.empty() || !description.why.empty()) return description;
  const int64_t context = attention.heads.context;
  const int64_t bytes =
      ScoreBytesOf(LargestAttentionSlice(of.samples, context, attention.heads.heads,
                                         of.card.attention->score_bytes),
                   context);
  if (bytes > kCardWorkspaceBytes) description.shared = bytes;
  return description;
}

using CardFunction = CallDescription (*)(const CardCall& of);

}  // namespace

CallDescription DescribeOnCard(const CardProfile& card, const Call& call, const CallTypes& types,
                               int64_t samples, Precision precision) {
  static const auto* const table = new std::map<std::string_view, CardFunction>{
      {"attention", AttentionOnCard}, {"attention_gradient", AttentionGradientOnCard}};
  const auto found = table->find(call.operation);
  return found == table->end() ? CallDescription()
                               : found->second({card, call, types, samples, precision});
}

}  // namespace stagecoach
