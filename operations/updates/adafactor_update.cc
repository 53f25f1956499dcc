#include "operations/updates/adafactor_update.h"

#include <algorithm>
#include <cmath>

#include "operations/catalogue.h"

namespace stagecoach {
namespace {

Shape Without(const Shape& shape, int from_the_end) {
  std::vector<int64_t> extents = shape.extents();
  extents.erase(extents.end() - from_the_end);
  return Shape(std::move(extents));
}

double RootMeanSquare(double squares, int64_t elements) {
  return elements == 0 ? 0 : std::sqrt(squares / static_cast<double>(elements));
}

class AdafactorUpdate final : public UpdateOf<AdafactorUpdateAttributes> {
 public:
  std::string_view name() const override { return "adafactor_update"; }

 private:
  std::vector<UpdateState> StatesOf(const AdafactorUpdateAttributes& attributes,
                                    const Shape& value) const override {
    return AdafactorStates(attributes.beta1 != 0, value);
  }
  int64_t FlopsOfElement() const override { return 20; }
};

}  // namespace

std::vector<UpdateState> AdafactorStates(bool momentum, const Shape& parameter) {
  std::vector<UpdateState> states;
  const bool factored = FactoredShape(parameter).factored;
  if (factored) states.push_back({"column", Without(parameter, 2)});
  if (momentum) states.push_back({"m", parameter});
  states.push_back(factored ? UpdateState{"row", Without(parameter, 1)}
                            : UpdateState{"square", parameter});
  return states;
}

FactoredShape::FactoredShape(const Shape& parameter) : factored(parameter.rank() >= 2) {
  if (!factored) return;
  const std::vector<int64_t>& extents = parameter.extents();
  columns = extents.back();
  rows = extents[extents.size() - 2];
  matrices = 1;
  for (size_t i = 0; i + 2 < extents.size(); ++i) matrices *= extents[i];
}

AdafactorNumbers NumbersOf(const AdafactorUpdateAttributes& attributes, const UpdateNumbers& step) {
  const double rest = std::pow(step.t(), -attributes.decay_power);
  const double rate = attributes.relative_step
                          ? std::min(step.learning_rate, 1.0 / std::sqrt(step.t()))
                          : step.learning_rate;
  return {.gradient_scale = static_cast<float>(step.gradient_scale),
          .learning_rate = static_cast<float>(rate),
          .decay = static_cast<float>(1.0 - rest),
          .rest = static_cast<float>(rest),
          .beta1 = static_cast<float>(attributes.beta1),
          .epsilon1 = static_cast<float>(attributes.epsilon1),
          .epsilon2 = static_cast<float>(attributes.epsilon2),
          .clip = static_cast<float>(attributes.clip),
          .weight_decay = static_cast<float>(attributes.weight_decay),
          .scale_by_parameter = attributes.scale_by_parameter};
}

float AdafactorNumbers::ClipOf(double squares_of_direction, int64_t elements) const {
  const double rms = RootMeanSquare(squares_of_direction, elements);
  return clip > 0 && rms > clip ? static_cast<float>(clip / rms) : 1.0f;
}

float AdafactorNumbers::ScaleOf(double squares_of_value, int64_t elements) const {
  if (!scale_by_parameter) return 1.0f;
  return std::max(epsilon2, static_cast<float>(RootMeanSquare(squares_of_value, elements)));
}

OperationList AdafactorUpdateOperations() {
  static const AdafactorUpdate update;
  return {&update};
}

}  // namespace stagecoach
