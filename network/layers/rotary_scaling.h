// RotaryScalingFields: how a job scales the angles of rotary positions; fields of layer attention
// and of network llama.
// Errors: CheckRotaryScaling answers INVALID_ARGUMENT with the field's path, its value and the
//         remedy. It refuses a field that the form of scaling lacks, or does not read.
#ifndef STAGECOACH_NETWORK_LAYERS_ROTARY_SCALING_H_
#define STAGECOACH_NETWORK_LAYERS_ROTARY_SCALING_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "operations/attention/rotary.h"
#include "operations/attributes.h"

namespace stagecoach {

enum class RotaryScalingForm { kNone, kLinear, kLlama3 };

struct RotaryScalingFields {
  RotaryScalingForm form = RotaryScalingForm::kNone;
  double factor = 0;                                           // 0: not given, as below
  double low_frequency_factor = 0, high_frequency_factor = 0;  // with llama3 only
  int64_t original_context = 0;                                // with llama3 only
  template <typename Visitor>
  void Visit(Visitor& visit) {
    visit.Choice("rotary_scaling", form, {"none", "linear", "llama3"});
    visit.ZeroOrBetween("rotary_factor", factor, 1, kMaxRotaryFactor);
    visit.ZeroOrBetween("rotary_low_frequency_factor", low_frequency_factor, kMinTurns, kMaxTurns);
    visit.ZeroOrBetween("rotary_high_frequency_factor", high_frequency_factor, kMinTurns,
                        kMaxTurns);
    visit.Count("rotary_original_context", original_context, 0);
  }
};

// The fields are in their ranges. `prefix`: of their paths, "model.llama."; `theta`: 0 if there are
// no rotary positions.
absl::Status CheckRotaryScaling(const RotaryScalingFields& fields, double theta,
                                const std::string& prefix);

// Of fields that were checked.
RotaryScaling ScalingOf(const RotaryScalingFields& fields);

// ":llama3=8,1,4,8192", for the text that weights belong to; empty without scaling.
std::string ScalingText(const RotaryScalingFields& fields);

}  // namespace stagecoach

#endif  // STAGECOACH_NETWORK_LAYERS_ROTARY_SCALING_H_
