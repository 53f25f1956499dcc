#include "operations/attention/add_sinusoids.h"

#include "operations/catalogue.h"
#include "operations/elementwise_flops.h"
#include "operations/type_check.h"

namespace stagecoach {
namespace {

class AddSinusoids final : public OperationOf<AddSinusoidsAttributes> {
 public:
  std::string_view name() const override { return "add_sinusoids"; }
  std::vector<int> MayOverwrite(const Attributes&) const override { return {0}; }
  std::vector<CallCase> Cases() const override {
    const auto of = [](std::string name, int64_t samples, int64_t context, int64_t width) {
      return CallCase{.name = std::move(name),
                      .inputs = {Samples({context, width})},
                      .samples = samples,
                      .tolerance = 0};
    };
    CallCase decoding = of("positions", 3, 5, 6);
    decoding.attributes = ToAttributes(AddSinusoidsAttributes{.positions = 9});
    decoding.inputs.push_back({{Element::kIds, Leading::kSamples, {5}}, Fill::kAnyIds, 11});
    return {decoding, of("one_pair", 3, 1, 2), of("odd", 2, 7, 22), of("wide", 3, 67, 130)};
  }

 private:
  absl::StatusOr<std::vector<ValueType>> TypesOf(const AddSinusoidsAttributes& attributes,
                                                 std::span<const ValueType> inputs,
                                                 std::span<const ValueType>) const override {
    const bool positions = attributes.positions > 0;
    absl::Status status = positions ? CheckOperands(name(), inputs, {"x", "positions"})
                                    : CheckOperands(name(), inputs, {"x"});
    if (status.ok()) status = CheckActivation("x", inputs[0], 2);
    if (!status.ok()) return status;
    if (inputs[0].shape.rank() != 2 || inputs[0].shape[1] % 2 != 0) {
      return absl::InvalidArgumentError("x is " + FormatType(inputs[0]) +
                                        "; must be [context, width] with an even width");
    }
    if (positions) {
      status =
          CheckType("positions", inputs[1],
                    {Element::kIds, Leading::kSamples, Shape::Of({inputs[0].shape.extent(0)})});
    }
    if (!status.ok()) return status;
    return std::vector<ValueType>{inputs[0]};
  }
  Cost CostOfCall(const AddSinusoidsAttributes&, const CallTypes& types,
                  int64_t samples) const override {
    return {.flops = kAddFlops.forward * TypeElements(types.outputs[0], samples)};
  }
  void WriteGradient(const AddSinusoidsAttributes&, GradientWriter& writer) const override {
    if (writer.Wants(0)) writer.Contribute(0, writer.OutputGradient(0));
  }
};

}  // namespace

OperationList AddSinusoidsOperations() {
  static const AddSinusoids add;
  return {&add};
}

}  // namespace stagecoach
