#include "network/zoo/pair_inputs.h"

#include <utility>

namespace stagecoach {

PairInputs AddPairInputs(int64_t vocabulary, int64_t source_context, int64_t target_context,
                         NetworkBuilder* builder) {
  const auto ids = [](Shape shape) {
    return ValueType{Element::kIds, Leading::kSamples, std::move(shape)};
  };
  const Shape of_source = Shape::Of({{source_context, Length::kSource}});
  const Shape of_target = Shape::Of({{target_context, Length::kTarget}});
  PairInputs inputs;
  inputs.source = builder->Input("source", ids(of_source), vocabulary);
  inputs.source_length = builder->Input("source_length", ids({}), source_context + 1);
  inputs.tokens = builder->Input("tokens", ids(of_target), vocabulary);
  inputs.targets = builder->Input("targets", ids(of_target), vocabulary);
  return inputs;
}

}  // namespace stagecoach
