#include "network/passes/later_rows.h"

#include <algorithm>
#include <array>
#include <string_view>

#include "absl/strings/str_cat.h"
#include "operations/attention/attention.h"

namespace stagecoach {
namespace {

using std::string_view_literals::operator""sv;

// Their evaluation gives each row of what they make by the same row of what they read. Any other
// operation counts as one that looks ahead.
constexpr std::array kRowByRow = {"add"sv,
                                  "add_sinusoids"sv,
                                  "batch_norm"sv,
                                  "batch_norm_fixed"sv,
                                  "clip"sv,
                                  "concatenate"sv,
                                  "dropout"sv,
                                  "drop_path"sv,
                                  "embedding"sv,
                                  "gelu"sv,
                                  "gelu_erf"sv,
                                  "head_norm"sv,
                                  "layer_norm"sv,
                                  "linear"sv,
                                  "relu"sv,
                                  "rms_norm"sv,
                                  "rotary"sv,
                                  "scale"sv,
                                  "silu"sv,
                                  "slice"sv,
                                  "slice_gradient"sv,
                                  "swiglu"sv};

std::string LooksAhead(const Call& call) {
  if (call.operation == "attention") {
    const bool full = FromAttributes<AttentionAttributes>(call.attributes).value().full;
    return full ? "attention without a causal mask" : "";
  }
  return IsRowByRow(call.operation) ? "" : call.operation;
}

}  // namespace

bool IsRowByRow(std::string_view operation) {
  return std::find(kRowByRow.begin(), kRowByRow.end(), operation) != kRowByRow.end();
}

std::string ReaderOfLaterRows(const Network& network) {
  for (const NetworkLayer& layer : network.layers) {
    for (const Call& call : layer.graph->calls) {
      const std::string by = LooksAhead(call);
      if (by.empty()) continue;
      return absl::StrCat("layer ", layer.index, ", ", layer.label, ", by ", by);
    }
  }
  return "";
}

}  // namespace stagecoach
