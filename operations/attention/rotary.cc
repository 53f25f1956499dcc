#include "operations/attention/rotary.h"

#include <cmath>
#include <numbers>

#include "absl/strings/str_cat.h"
#include "base/errors/field_check.h"
#include "base/errors/status.h"
#include "base/threads/progress.h"
#include "operations/attention/packed_heads.h"
#include "operations/catalogue.h"
#include "operations/elementwise_flops.h"
#include "operations/type_check.h"

namespace stagecoach {
namespace {

double Scaled(double frequency, const RotaryScaling& scaling) {
  if (scaling.factor == 0) return frequency;
  const double divided = frequency / scaling.factor;
  if (scaling.original_context == 0) return divided;
  const double low = scaling.low_frequency_factor, high = scaling.high_frequency_factor;
  const double turns =
      static_cast<double>(scaling.original_context) * frequency / (2 * std::numbers::pi);
  if (turns < low) return divided;
  if (turns > high) return frequency;
  const double share = (turns - low) / (high - low);
  return (1 - share) * divided + share * frequency;
}

// All of a form or nothing.
absl::Status CheckScaling(const RotaryScaling& s) {
  const bool llama3 = s.original_context > 0;
  if (llama3 && s.factor == 0) {
    return FieldError("attribute factor", "0", "must be given with original_context");
  }
  if (llama3 && s.low_frequency_factor == 0) {
    return FieldError("attribute low_frequency_factor", "0", "must be given with original_context");
  }
  if (llama3 && !(s.high_frequency_factor > s.low_frequency_factor)) {
    return FieldError("attribute high_frequency_factor", absl::StrCat(s.high_frequency_factor),
                      absl::StrCat("must be above low_frequency_factor ", s.low_frequency_factor));
  }
  if (!llama3 && (s.low_frequency_factor != 0 || s.high_frequency_factor != 0)) {
    return FieldError("attribute original_context", "0",
                      "must be given with low_frequency_factor or high_frequency_factor");
  }
  return absl::OkStatus();
}

class Rotary final : public OperationOf<RotaryAttributes> {
 public:
  std::string_view name() const override { return "rotary"; }
  std::vector<int> MayOverwrite(const Attributes&) const override { return {0}; }
  std::vector<CallCase> Cases() const override {
    const auto with = [](std::string name, const RotaryAttributes& attributes, int64_t context,
                         int64_t head_width) {
      const int64_t keys = attributes.key_heads == 0 ? attributes.heads : attributes.key_heads;
      return CallCase{.name = std::move(name),
                      .attributes = ToAttributes(attributes),
                      .inputs = {Samples({context, (attributes.heads + 2 * keys) * head_width})},
                      .tolerance = 1e-6};
    };
    // Of eight pairs, with theta 100, two stay, two lie between and four are divided.
    constexpr RotaryScaling kEveryPart{
        .factor = 8, .low_frequency_factor = 1, .high_frequency_factor = 4, .original_context = 60};
    CallCase decoding = with("positions", {.heads = 4, .key_heads = 2, .positions = 9}, 5, 6);
    decoding.inputs.push_back({{Element::kIds, Leading::kSamples, {5}}, Fill::kAnyIds, 11});
    decoding.samples = 3;
    decoding.differentiable = false;
    CallCase neighbours = decoding;
    neighbours.name = "interleaved_positions";
    neighbours.attributes.Set("interleaved", true);
    CallCase scaled = decoding;
    scaled.name = "llama3_positions";
    scaled.attributes = ToAttributes(RotaryAttributes{
        .heads = 4, .key_heads = 2, .theta = 100, .positions = 9, .scaling = kEveryPart});
    return {decoding,
            neighbours,
            scaled,
            with("halves", {.heads = 3}, 7, 6),
            with("interleaved", {.heads = 2, .interleaved = true}, 9, 10),
            with("grouped", {.heads = 4, .key_heads = 2, .theta = 1e6}, 33, 16),
            with("one_pair", {.heads = 1, .inverse = true}, 5, 2),
            with("linear", {.heads = 2, .key_heads = 1, .scaling = {.factor = 4}}, 11, 8),
            with("llama3", {.heads = 3, .theta = 100, .scaling = kEveryPart}, 13, 16),
            with("llama3_interleaved",
                 {.heads = 1, .theta = 100, .interleaved = true, .scaling = kEveryPart}, 7, 16)};
  }

 private:
  absl::StatusOr<std::vector<ValueType>> TypesOf(const RotaryAttributes& attributes,
                                                 std::span<const ValueType> inputs,
                                                 std::span<const ValueType>) const override {
    RETURN_IF_ERROR(CheckScaling(attributes.scaling));
    const bool positions = attributes.positions > 0;
    absl::Status status = positions ? CheckOperands("rotary", inputs, {"qkv", "positions"})
                                    : CheckOperands("rotary", inputs, {"qkv"});
    if (!status.ok()) return status;
    const absl::StatusOr<PackedHeads> packed =
        CheckPackedHeads("qkv", inputs[0], attributes.heads, attributes.key_heads);
    if (!packed.ok()) return packed.status();
    if (packed->head_width % 2 != 0) {
      return absl::InvalidArgumentError(absl::StrCat("rotary turns pairs; heads are ",
                                                     packed->head_width, " wide, must be even"));
    }
    if (positions) {
      status = CheckType("positions", inputs[1],
                         {Element::kIds, Leading::kSamples, Shape::Of({packed->rows()})});
    }
    if (!status.ok()) return status;
    return std::vector<ValueType>{inputs[0]};
  }
  Cost CostOfCall(const RotaryAttributes&, const CallTypes& types, int64_t samples) const override {
    return {.flops = kRotaryFlops.forward * TypeElements(types.outputs[0], samples)};
  }
  void WriteGradient(const RotaryAttributes& attributes, GradientWriter& writer) const override {
    if (!writer.Wants(0)) return;
    if (attributes.positions > 0) return writer.Refuse("with positions has no gradient");
    RotaryAttributes back = attributes;
    back.inverse = !attributes.inverse;
    writer.Contribute(0, writer.Emit("rotary", ToAttributes(back), {writer.OutputGradient(0)})[0]);
  }
};

}  // namespace

std::vector<double> RotaryFrequencies(double theta, const RotaryScaling& scaling,
                                      int64_t head_width) {
  const int64_t pairs = head_width / 2;
  std::vector<double> frequencies;
  frequencies.reserve(static_cast<size_t>(pairs));
  for (int64_t pair = 0; pair < pairs; ++pair) {
    const double exponent = -2.0 * static_cast<double>(pair) / static_cast<double>(head_width);
    frequencies.push_back(Scaled(std::pow(theta, exponent), scaling));
  }
  return frequencies;
}

RotaryTables MakeRotaryTables(const RotaryAttributes& attributes, int64_t context,
                              int64_t head_width) {
  const int64_t pairs = head_width / 2;
  const double sign = attributes.inverse ? -1 : 1;
  const std::vector<double> steps =
      RotaryFrequencies(attributes.theta, attributes.scaling, head_width);
  RotaryTables tables;
  tables.cosines.reserve(static_cast<size_t>(context * pairs));
  tables.sines.reserve(static_cast<size_t>(context * pairs));
  for (int64_t position = 0; position < context; ++position) {
    for (const double step : steps) {
      const double angle = static_cast<double>(position) * step;
      tables.cosines.push_back(static_cast<float>(std::cos(angle)));
      tables.sines.push_back(static_cast<float>(sign * std::sin(angle)));
    }
    TickProgress();
  }
  return tables;
}

OperationList RotaryOperations() {
  static const Rotary rotary;
  return {&rotary};
}

}  // namespace stagecoach
