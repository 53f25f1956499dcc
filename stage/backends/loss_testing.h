// For tests and benchmarks: cross_entropy of given tensors, on any back end.
#ifndef STAGECOACH_STAGE_BACKENDS_LOSS_TESTING_H_
#define STAGECOACH_STAGE_BACKENDS_LOSS_TESTING_H_

#include <vector>

#include "base/errors/check.h"
#include "operations/catalogue.h"
#include "operations/losses/cross_entropy.h"
#include "operations/losses/loss_types.h"
#include "stage/backends/backend.h"

namespace stagecoach {

struct LossTensors {
  Tensor logits, targets;  // [rows, classes]; I32 [rows]
  Tensor sums;             // F64 [2]: loss, terms
  Tensor scale;            // F32 [1]; without it no gradient is made
  Tensor d_logits;         // may be logits
};

inline void RunLoss(Backend& backend, LossTensors t, CrossEntropyAttributes attributes = {}) {
  attributes.gradient = t.scale.valid();
  const int64_t rows = t.targets.elements();
  Call call{.operation = "cross_entropy", .attributes = ToAttributes(attributes)};
  CallTypes types;
  types.inputs = {ActivationType({t.logits.shape().back()}),
                  {Element::kIds, Leading::kSamples, {}}};
  std::vector<Tensor*> inputs = {&t.logits, &t.targets}, outputs = {&t.sums};
  if (attributes.gradient) {
    types.inputs.push_back(ScaleType());
    inputs.push_back(&t.scale);
    outputs.insert(outputs.begin(), &t.d_logits);
  }
  types.outputs = *OperationNamed(call.operation).Types(call.attributes, types.inputs, {});
  absl::StatusOr<Kernel> kernel = backend.Prepare(call, types, t.logits.dtype());
  CHECK_OK(kernel.status());
  const ForwardContext context{.sequences = rows};
  (*kernel)({context}, {Operands(inputs), Operands(outputs), Operands()});
}

}  // namespace stagecoach

#endif  // STAGECOACH_STAGE_BACKENDS_LOSS_TESTING_H_
