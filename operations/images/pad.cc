#include "operations/images/pad.h"

#include "absl/strings/str_cat.h"
#include "operations/catalogue.h"
#include "operations/elementwise_flops.h"
#include "operations/images/window.h"
#include "operations/type_check.h"

namespace stagecoach {
namespace {

// What is left of an extent.
absl::StatusOr<int64_t> PaddedExtent(const char* name, int64_t extent, int64_t before,
                                     int64_t after) {
  const int64_t padded = extent + before + after;
  if (1 <= padded && padded <= kMaxExtent) return padded;
  return absl::InvalidArgumentError(absl::StrCat("the image's ", name, " is ", extent, " and ",
                                                 padded, " with ", before, " and ", after,
                                                 " more; must be 1 to ", kMaxExtent));
}

class Pad final : public OperationOf<PadAttributes> {
 public:
  std::string_view name() const override { return "pad"; }
  std::vector<CallCase> Cases() const override {
    const auto of = [](const char* name, PadAttributes by, Shape image) {
      return CallCase{.name = name,
                      .attributes = ToAttributes(by),
                      .inputs = {Samples(std::move(image))},
                      .samples = 3,
                      .tolerance = 0,
                      .bfloat16_tolerance = 0};
    };
    return {of("shifted", {.top = -1, .bottom = 1, .left = -1, .right = 1}, {6, 5, 3}),
            of("larger", {.top = 2, .bottom = 1, .left = 3, .right = 0}, {3, 4, 7}),
            of("smaller", {.top = -1, .bottom = -2, .left = 0, .right = -3}, {7, 5, 2}),
            of("nothing_of_it", {.top = 4, .bottom = -5, .left = -3, .right = 3}, {4, 2, 1})};
  }

 private:
  absl::StatusOr<std::vector<ValueType>> TypesOf(const PadAttributes& by,
                                                 std::span<const ValueType> inputs,
                                                 std::span<const ValueType>) const override {
    absl::Status status = CheckOperands(name(), inputs, {"x"});
    if (status.ok()) status = CheckImage("x", inputs[0]);
    if (!status.ok()) return status;
    const Plane image = PlaneOf(inputs[0]);
    const auto height = PaddedExtent("height", image.height, by.top, by.bottom);
    if (!height.ok()) return height.status();
    const auto width = PaddedExtent("width", image.width, by.left, by.right);
    if (!width.ok()) return width.status();
    return std::vector<ValueType>{ActivationType({*height, *width, inputs[0].shape.back()})};
  }
  Cost CostOfCall(const PadAttributes&, const CallTypes& types, int64_t samples) const override {
    return {.flops = kMoveFlops * TypeElements(types.outputs[0], samples)};
  }
  void WriteGradient(const PadAttributes& by, GradientWriter& writer) const override {
    if (!writer.Wants(0)) return;
    const PadAttributes back{-by.top, -by.bottom, -by.left, -by.right};
    writer.Contribute(0, writer.Emit("pad", ToAttributes(back), {writer.OutputGradient(0)})[0]);
  }
};

}  // namespace

OperationList PadOperations() {
  static const Pad pad;
  return {&pad};
}

}  // namespace stagecoach
