#include "operations/concatenate.h"

#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "operations/catalogue.h"
#include "operations/elementwise_flops.h"
#include "operations/row_types.h"
#include "operations/type_check.h"

namespace stagecoach {
namespace {

class Concatenate final : public OperationOf<NoAttributes> {
 public:
  std::string_view name() const override { return "concatenate"; }
  std::vector<CallCase> Cases() const override {
    return {{.name = "rows",
             .inputs = {Samples({5, 3}), Samples({5, 7})},
             .tolerance = 0,
             .bfloat16_tolerance = 0},
            {.name = "images",
             .inputs = {Samples({3, 4, 5}), Samples({3, 4, 1}), Samples({3, 4, 16})},
             .samples = 3,
             .tolerance = 0,
             .bfloat16_tolerance = 0},
            {.name = "one", .inputs = {Samples({4})}, .tolerance = 0, .bfloat16_tolerance = 0}};
  }

 private:
  absl::StatusOr<std::vector<ValueType>> TypesOf(const NoAttributes&,
                                                 std::span<const ValueType> inputs,
                                                 std::span<const ValueType>) const override {
    if (inputs.empty()) {
      return absl::InvalidArgumentError("concatenate has no operands; it takes one or more");
    }
    int64_t extent = 0;
    for (size_t i = 0; i < inputs.size(); ++i) {
      const std::string operand = absl::StrCat("operand ", i);
      absl::Status status = CheckActivation(operand, inputs[i], 1);
      if (!status.ok()) return status;
      const int64_t own = inputs[i].shape.back();
      status = CheckType(operand, inputs[i], WithLastExtent(inputs[0], own));
      if (!status.ok()) return status;
      if (own > kMaxExtent - extent) {
        return absl::InvalidArgumentError(absl::StrCat(operand, " is ", FormatType(inputs[i]),
                                                       "; with it the last extent is over ",
                                                       kMaxExtent, ", the most that one may be"));
      }
      extent += own;
    }
    return std::vector<ValueType>{WithLastExtent(inputs[0], extent)};
  }
  Cost CostOfCall(const NoAttributes&, const CallTypes& types, int64_t samples) const override {
    return {.flops = kMoveFlops * TypeElements(types.outputs[0], samples)};
  }
  void WriteGradient(const NoAttributes&, GradientWriter& writer) const override {
    int64_t begin = 0;
    for (int i = 0; i < writer.inputs(); ++i) {
      const int64_t extent = writer.input_type(i).shape.back();
      if (writer.Wants(i)) {
        writer.Contribute(i, writer.Emit("slice", ToAttributes(SliceAttributes{begin, extent}),
                                         {writer.OutputGradient(0)})[0]);
      }
      begin += extent;
    }
  }
};

class Slice final : public OperationOf<SliceAttributes> {
 public:
  std::string_view name() const override { return "slice"; }
  std::vector<CallCase> Cases() const override {
    return {{.name = "middle",
             .attributes = ToAttributes(SliceAttributes{3, 5}),
             .inputs = {Samples({7, 11})},
             .tolerance = 0,
             .bfloat16_tolerance = 0},
            {.name = "end_of_an_image",
             .attributes = ToAttributes(SliceAttributes{16, 1}),
             .inputs = {Samples({3, 4, 17})},
             .tolerance = 0,
             .bfloat16_tolerance = 0}};
  }

 private:
  absl::StatusOr<std::vector<ValueType>> TypesOf(const SliceAttributes& attributes,
                                                 std::span<const ValueType> inputs,
                                                 std::span<const ValueType>) const override {
    absl::Status status = CheckOperands(name(), inputs, {"x"});
    if (status.ok()) status = CheckActivation("x", inputs[0], 1);
    if (!status.ok()) return status;
    const int64_t end = attributes.begin + attributes.extent, whole = inputs[0].shape.back();
    if (whole > kMaxExtent) {
      return absl::InvalidArgumentError(absl::StrCat(
          "x is ", FormatType(inputs[0]), "; its last extent must be at most ", kMaxExtent));
    }
    if (whole < end) {
      return absl::InvalidArgumentError(absl::StrCat("x is ", FormatType(inputs[0]),
                                                     "; its last extent must be at least ", end,
                                                     ", the slice's end"));
    }
    return std::vector<ValueType>{WithLastExtent(inputs[0], attributes.extent)};
  }
  Cost CostOfCall(const SliceAttributes&, const CallTypes& types, int64_t samples) const override {
    return {.flops = kMoveFlops * TypeElements(types.outputs[0], samples)};
  }
  void WriteGradient(const SliceAttributes& attributes, GradientWriter& writer) const override {
    if (!writer.Wants(0)) return;
    const SliceGradientAttributes gradient{attributes.begin, writer.input_type(0).shape.back()};
    writer.Contribute(
        0, writer.Emit("slice_gradient", ToAttributes(gradient), {writer.OutputGradient(0)})[0]);
  }
};

class SliceGradient final : public OperationOf<SliceGradientAttributes> {
 public:
  std::string_view name() const override { return "slice_gradient"; }
  std::vector<CallCase> Cases() const override {
    return {{.name = "middle",
             .attributes = ToAttributes(SliceGradientAttributes{3, 11}),
             .inputs = {Samples({7, 5})},
             .tolerance = 0,
             .bfloat16_tolerance = 0}};
  }

 private:
  absl::StatusOr<std::vector<ValueType>> TypesOf(const SliceGradientAttributes& attributes,
                                                 std::span<const ValueType> inputs,
                                                 std::span<const ValueType>) const override {
    absl::Status status = CheckOperands(name(), inputs, {"dy"});
    if (status.ok()) status = CheckActivation("dy", inputs[0], 1);
    if (!status.ok()) return status;
    const int64_t extent = inputs[0].shape.back();
    if (extent > kMaxExtent) {
      return absl::InvalidArgumentError(absl::StrCat(
          "dy is ", FormatType(inputs[0]), "; its last extent must be at most ", kMaxExtent));
    }
    if (const int64_t end = attributes.begin + extent; attributes.whole < end) {
      return absl::InvalidArgumentError(absl::StrCat(
          "attribute whole: ", attributes.whole, "; must be at least ", end, ", the slice's end"));
    }
    return std::vector<ValueType>{WithLastExtent(inputs[0], attributes.whole)};
  }
  Cost CostOfCall(const SliceGradientAttributes&, const CallTypes& types,
                  int64_t samples) const override {
    return {.flops = kMoveFlops * TypeElements(types.outputs[0], samples)};
  }
  void WriteGradient(const SliceGradientAttributes& attributes,
                     GradientWriter& writer) const override {
    if (!writer.Wants(0)) return;
    const SliceAttributes slice{attributes.begin, writer.input_type(0).shape.back()};
    writer.Contribute(0, writer.Emit("slice", ToAttributes(slice), {writer.OutputGradient(0)})[0]);
  }
};

}  // namespace

OperationList ConcatenateOperations() {
  static const Concatenate concatenate;
  static const Slice slice;
  static const SliceGradient gradient;
  return {&concatenate, &slice, &gradient};
}

}  // namespace stagecoach
