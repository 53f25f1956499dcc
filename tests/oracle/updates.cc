// Each optimizer's updates of a matrix and a vector over steps with gradients of their own.
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/errors/status.h"
#include "base/numbers/random.h"
#include "plan/optimizers/adafactor.h"
#include "plan/optimizers/lamb.h"
#include "plan/optimizers/rmsprop.h"
#include "plan/optimizers/sgd.h"
#include "stage/cell/optimizer.h"
#include "tests/oracle/oracle.h"

namespace stagecoach {
namespace {

constexpr int kUpdates = 8;

struct Updated {
  std::string name;
  OptimizerSpec spec;
};

std::vector<Updated> Optimizers() {
  using Form = RmsPropSpec::Form;
  return {
      {"nesterov", SgdSpec{.momentum = 0.9, .nesterov = true}},
      {"rmsprop_tensorflow", RmsPropSpec{.weight_decay = 0.04}},
      {"rmsprop_tensorflow_plain", RmsPropSpec{.decay = 0.95, .momentum = 0, .epsilon = 1e-3}},
      {"rmsprop_pytorch",
       RmsPropSpec{.decay = 0.95, .epsilon = 1e-3, .weight_decay = 0.04, .form = Form::kPyTorch}},
      {"rmsprop_pytorch_plain",
       RmsPropSpec{.decay = 0.95, .momentum = 0, .epsilon = 1e-3, .form = Form::kPyTorch}},
      {"adafactor", AdafactorSpec{}},
      {"adafactor_all", AdafactorSpec{.beta1 = 0.9,
                                      .clip = 0.5,
                                      .weight_decay = 0.04,
                                      .relative_step = true,
                                      .scale_by_parameter = true}},
      {"lamb", LambSpec{.beta2 = 0.99, .weight_decay = 0.04}},
      {"lamb_all", LambSpec{.beta2 = 0.99, .weight_decay = 0.04, .adapt_all = true}},
  };
}

absl::Status Fill(Backend& backend, const Tensor& tensor, const RandomStream& stream) {
  std::vector<float> values(static_cast<size_t>(tensor.elements()));
  for (size_t i = 0; i < values.size(); ++i) values[i] = RandomNormal(stream, i);
  backend.CopyFromHost(std::as_bytes(std::span(values)), tensor);
  return backend.Synchronize();
}

absl::StatusOr<Parameter> MakeParameter(Backend& backend, const std::string& name,
                                        const Shape& shape, bool decay) {
  Parameter parameter;
  parameter.spec = {name, shape, ParameterSpec::Init::kZeros, 0.0, 0, decay};
  ASSIGN_OR_RETURN(parameter.value,
                   MakeTensor(backend.allocator(), MemoryKind::kParameters, DType::kF32, shape));
  ASSIGN_OR_RETURN(parameter.gradient,
                   MakeTensor(backend.allocator(), MemoryKind::kGradients, DType::kF32, shape));
  parameter.compute = parameter.value;
  return parameter;
}

// What all of them begin with and are given is recorded once.
absl::Status RecordOne(const Updated& updated, bool inputs, Backend& backend, Recorder* recorder) {
  ASSIGN_OR_RETURN(Parameter matrix, MakeParameter(backend, "model/0000/matrix", {19, 23}, true));
  ASSIGN_OR_RETURN(Parameter vector, MakeParameter(backend, "model/0000/vector", {23}, false));
  const std::vector<Parameter*> parameters = {&matrix, &vector};
  ASSIGN_OR_RETURN(const std::unique_ptr<Optimizer> optimizer,
                   MakeOptimizer(updated.spec, parameters, backend));
  for (uint32_t p = 0; p < 2; ++p) {
    RETURN_IF_ERROR(Fill(backend, parameters[p]->value, {.seed = 77, .operation = p}));
    if (inputs) recorder->Add(absl::StrCat("updates/start/", p), backend, parameters[p]->value);
  }
  for (uint32_t step = 0; step < kUpdates; ++step) {
    for (uint32_t p = 0; p < 2; ++p) {
      RETURN_IF_ERROR(
          Fill(backend, parameters[p]->gradient, {.seed = 78, .step = step, .operation = p}));
      if (!inputs) continue;
      recorder->Add(absl::StrCat("updates/gradient/", step, "/", p), backend,
                    parameters[p]->gradient);
    }
    optimizer->Apply(step, 0.01 * (step + 1), 0.5);
  }
  for (int p = 0; p < 2; ++p) {
    recorder->Add(absl::StrCat("updates/end/", updated.name, "/", p), backend,
                  parameters[p]->value);
  }
  return backend.Synchronize();
}

}  // namespace

absl::Status RecordUpdates(Backend& backend, Recorder* recorder) {
  bool inputs = true;
  for (const Updated& updated : Optimizers()) {
    RETURN_IF_ERROR(Annotate(RecordOne(updated, inputs, backend, recorder), updated.name));
    inputs = false;
  }
  recorder->Note("updates/steps", absl::StrCat(kUpdates));
  return absl::OkStatus();
}

}  // namespace stagecoach
