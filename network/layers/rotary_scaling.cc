#include "network/layers/rotary_scaling.h"

#include <variant>

#include "absl/strings/str_cat.h"
#include "base/errors/field_check.h"
#include "network/layer_kind.h"

namespace stagecoach {
namespace {

struct ScalingField {
  const char* name;
  double value;
  bool of_llama3;
};

std::string FormName(const RotaryScalingFields& fields) {
  return std::get<std::string>(*ToAttributes(fields).Find("rotary_scaling"));
}

}  // namespace

absl::Status CheckRotaryScaling(const RotaryScalingFields& fields, double theta,
                                const std::string& prefix) {
  const bool scales = fields.form != RotaryScalingForm::kNone;
  const bool llama3 = fields.form == RotaryScalingForm::kLlama3;
  if (scales && theta == 0) {
    return FieldError(prefix + "rotary_scaling", FormName(fields),
                      "there are no rotary positions to scale: give rotary_theta");
  }
  const ScalingField all[] = {
      {"rotary_factor", fields.factor, false},
      {"rotary_low_frequency_factor", fields.low_frequency_factor, true},
      {"rotary_high_frequency_factor", fields.high_frequency_factor, true},
      {"rotary_original_context", static_cast<double>(fields.original_context), true}};
  for (const ScalingField& field : all) {
    const bool read = field.of_llama3 ? llama3 : scales, given = field.value != 0;
    if (read && !given) {
      return FieldError(prefix + field.name, "0",
                        absl::StrCat("must be given with rotary_scaling: ", FormName(fields)));
    }
    if (given && !read) {
      return FieldError(prefix + field.name, absl::StrCat(field.value),
                        absl::StrCat("must be left out with rotary_scaling: ", FormName(fields)));
    }
  }
  if (llama3 && fields.high_frequency_factor <= fields.low_frequency_factor) {
    return FieldError(
        prefix + "rotary_high_frequency_factor", absl::StrCat(fields.high_frequency_factor),
        absl::StrCat("must be above rotary_low_frequency_factor ", fields.low_frequency_factor));
  }
  return absl::OkStatus();
}

RotaryScaling ScalingOf(const RotaryScalingFields& fields) {
  return {.factor = fields.factor,
          .low_frequency_factor = fields.low_frequency_factor,
          .high_frequency_factor = fields.high_frequency_factor,
          .original_context = fields.original_context};
}

std::string ScalingText(const RotaryScalingFields& fields) {
  if (fields.form == RotaryScalingForm::kNone) return "";
  std::string text = absl::StrCat(":", FormName(fields), "=", ExactText(fields.factor));
  if (fields.form == RotaryScalingForm::kLlama3) {
    absl::StrAppend(&text, ",", ExactText(fields.low_frequency_factor), ",",
                    ExactText(fields.high_frequency_factor), ",", fields.original_context);
  }
  return text;
}

}  // namespace stagecoach
