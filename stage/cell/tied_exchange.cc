#include "stage/cell/tied_exchange.h"

#include <algorithm>

#include "base/errors/check.h"
#include "base/errors/status.h"

namespace stagecoach {

namespace {

// Gradients are float32 in every precision.
absl::StatusOr<Kernel> PrepareAdd(Backend& backend, const Shape& shape) {
  const ValueType type = ActivationType(shape);
  return backend.Prepare({.operation = "add"}, {{type, type}, {type}, {}}, DType::kF32);
}

}  // namespace

absl::StatusOr<std::unique_ptr<TiedExchange>> TiedExchange::Create(const Network& network,
                                                                   int first_layer, int last_layer,
                                                                   Parameters parameters,
                                                                   Backend& backend) {
  auto exchange = std::unique_ptr<TiedExchange>(new TiedExchange(
      TiesOfCell(network, first_layer, last_layer), std::move(parameters), backend));
  TiedExchange& made = *exchange;
  const auto here = [&](const ParameterUse& use) {
    return first_layer <= use.layer && use.layer < last_layer;
  };
  for (const TiedParameter& tied : TiedParameters(network)) {
    if (here(tied.owner)) {
      made.values_[tied.owner] =
          ReadByOperations(*made.parameters_.at(tied.owner), TypeOf(network, tied.owner));
      continue;
    }
    const auto use = std::find_if(tied.users.begin(), tied.users.end(), here);
    if (use == tied.users.end()) continue;
    const Tensor& value = made.parameters_.at(*use)->value;  // that of all its users here
    made.values_[tied.owner] = value;
    made.copies_.push_back({SpecOf(network, tied.owner), tied.owner.layer, value});
  }
  for (const TiedParameter& tied : made.ties_.owned) {
    ASSIGN_OR_RETURN(made.adds_.emplace_back(),
                     PrepareAdd(backend, SpecOf(network, tied.owner).shape));
  }
  return exchange;
}

void TiedExchange::TakeValues(Tensors values) {
  CHECK_EQ(values.size(), ties_.received_values.size()) << "values of tied parameters";
  for (size_t i = 0; i < values.size(); ++i) {
    const ParameterUse& owner = ties_.received_values[i];
    if (const auto copy = values_.find(owner); copy != values_.end()) {
      backend_.Convert(values[i], copy->second);
    } else {
      arrived_values_[owner] = std::move(values[i]);
    }
  }
}

Tensors TiedExchange::ValuesToSend() const {
  Tensors values;
  for (const ParameterUse& owner : ties_.sent_values) {
    const auto here = values_.find(owner);
    values.push_back(here != values_.end() ? here->second : arrived_values_.at(owner));
  }
  return values;
}

void TiedExchange::TakeGradients(Tensors gradients) {
  CHECK_EQ(gradients.size(), ties_.received_gradients.size()) << "gradients of tied parameters";
  for (size_t i = 0; i < gradients.size(); ++i) {
    arrived_gradients_[ties_.received_gradients[i]] = std::move(gradients[i]);
  }
}

Tensor TiedExchange::GradientOf(const ParameterUse& user) const {
  const auto here = parameters_.find(user);
  return here != parameters_.end() ? here->second->gradient : arrived_gradients_.at(user);
}

void TiedExchange::AddGradients() {
  const ForwardContext once = {.sequences = 1};
  for (size_t i = 0; i < ties_.owned.size(); ++i) {
    for (const ParameterUse& user : ties_.owned[i].users) {
      Tensors both = {parameters_.at(ties_.owned[i].owner)->gradient, GradientOf(user)};
      Tensors sum = {both[0]};
      adds_[i]({once}, {PlacesOf(both), PlacesOf(sum), Operands()});
    }
  }
}

Tensors TiedExchange::GradientsToSend() const {
  Tensors gradients;
  for (const ParameterUse& user : ties_.sent_gradients) gradients.push_back(GradientOf(user));
  return gradients;
}

absl::Status SetCopy(const TiedExchange::Copy& copy, Backend& backend,
                     const std::function<absl::Status(const Tensor& wide)>& set) {
  if (copy.value.dtype() == DType::kF32) return set(copy.value);
  ASSIGN_OR_RETURN(const Tensor wide, MakeTensor(backend.allocator(), MemoryKind::kWorkspace,
                                                 DType::kF32, copy.value.shape()));
  RETURN_IF_ERROR(set(wide));
  backend.Convert(wide, copy.value);
  return backend.Synchronize();
}

void TiedExchange::DropArrived() {
  arrived_values_.clear();
  arrived_gradients_.clear();
}

}  // namespace stagecoach
