#include "stage/cell/objective_runner.h"

#include <algorithm>
#include <span>
#include <utility>

#include "base/check.h"
#include "base/status.h"
#include "operations/catalogue.h"
#include "operations/loss_types.h"

namespace stagecoach {
namespace {

// Does a backward read what the wire holds, so that its gradient may not take its place?
bool BackwardReads(const Network& network, WireId wire) {
  for (const NetworkLayer& layer : network.layers) {
    const LayerLists& lists = *layer.lists;
    for (size_t i = 0; i < layer.outputs.size(); ++i) {
      const bool kept = std::count(lists.stash.begin(), lists.stash.end(), lists.outputs[i]) > 0;
      if (layer.outputs[i] == wire && kept) return true;
    }
    if (std::count(layer.inputs.begin(), layer.inputs.end(), wire) > 0) return true;
  }
  return false;
}

}  // namespace

ObjectiveRunner::ObjectiveRunner(const Network& network, Backend& backend)
    : output_(network.wire(network.objective.output).type),
      objective_(network.objective),
      dtype_(ComputeDType(network.precision)),
      overwrites_(!BackwardReads(network, network.objective.output)),
      backend_(backend) {}

absl::StatusOr<ObjectiveRunner::Form> ObjectiveRunner::Prepare(bool gradient) const {
  Call call{.operation = objective_.operation, .attributes = objective_.attributes};
  call.attributes.Set("gradient", gradient);
  CallTypes types{.inputs = {output_}, .outputs = {}, .adds = {}};
  for (const ValueType& type : objective_.loaded()) types.inputs.push_back(type);
  if (gradient) types.inputs.push_back(ScaleType());
  absl::StatusOr<std::vector<ValueType>> outputs =
      OperationNamed(call.operation).Types(call.attributes, types.inputs, {});
  CHECK_OK(outputs.status());  // it was asked when the network was built
  types.outputs = *std::move(outputs);
  for (int i = 0; i < static_cast<int>(types.inputs.size()); ++i) call.inputs.emplace_back(i);
  for (size_t i = 0; i < types.outputs.size(); ++i) {
    call.outputs.emplace_back(static_cast<int>(types.inputs.size() + i));
  }
  Form form{.kernel = {},
            .gradient = types.outputs.front(),
            .sums = types.outputs.back().shape.elements()};
  ASSIGN_OR_RETURN(form.kernel, backend_.Prepare(call, types, dtype_));
  return form;
}

absl::StatusOr<std::unique_ptr<ObjectiveRunner>> ObjectiveRunner::Create(const Network& network,
                                                                         Backend& backend) {
  auto runner = std::unique_ptr<ObjectiveRunner>(new ObjectiveRunner(network, backend));
  ASSIGN_OR_RETURN(runner->training_, runner->Prepare(true));
  ASSIGN_OR_RETURN(runner->evaluation_, runner->Prepare(false));
  ASSIGN_OR_RETURN(runner->scale_, MakeTensor(backend.allocator(), MemoryKind::kWorkspace,
                                              DType::kF32, RuntimeShape(ScaleType(), 1)));
  backend.Fill(runner->scale_, 0.0f);
  return runner;
}

void ObjectiveRunner::Begin(int micro_batches, double scale) {
  Drop();
  has_sums_.assign(static_cast<size_t>(micro_batches), false);
  if (scale == scale_value_) return;
  backend_.Fill(scale_, static_cast<float>(scale));
  scale_value_ = scale;
}

absl::StatusOr<Tensor> ObjectiveRunner::NextSums(const Form& form, MicroBatchId id) {
  if (!sums_.valid()) {
    ASSIGN_OR_RETURN(sums_, MakeTensor(backend_.allocator(), MemoryKind::kWorkspace, DType::kF64,
                                       Shape{static_cast<int64_t>(has_sums_.size()) * form.sums}));
  }
  has_sums_.at(static_cast<size_t>(id.value)) = true;
  return sums_.Slice(id.value * form.sums, Shape{form.sums});
}

std::vector<Tensor*> ObjectiveRunner::Inputs(Tensor* output, Targets* targets) const {
  CHECK_EQ(targets->weights.valid(), objective_.weighted()) << "weights of targets";
  std::vector<Tensor*> inputs = {output, &targets->values};
  if (objective_.weighted()) inputs.push_back(&targets->weights);
  return inputs;
}

absl::StatusOr<Tensor> ObjectiveRunner::Train(const ForwardContext& context, Tensor output,
                                              Targets targets) {
  ASSIGN_OR_RETURN(Tensor sums, NextSums(training_, context.micro_batch));
  Tensor gradient = output;
  if (!overwrites_) {
    ASSIGN_OR_RETURN(gradient, MakeTensor(backend_.allocator(), MemoryKind::kActivations,
                                          ElementDType(training_.gradient.element, dtype_),
                                          RuntimeShape(training_.gradient, context.sequences)));
  }
  std::vector<Tensor*> inputs = Inputs(&output, &targets);
  inputs.push_back(&scale_);
  training_.kernel({context}, {Operands(inputs), Operands({&gradient, &sums}), Operands()});
  return gradient;
}

absl::Status ObjectiveRunner::Evaluate(const ForwardContext& context, Tensor output,
                                       Targets targets) {
  ASSIGN_OR_RETURN(Tensor sums, NextSums(evaluation_, context.micro_batch));
  const std::vector<Tensor*> inputs = Inputs(&output, &targets);
  evaluation_.kernel({context}, {Operands(inputs), Operands({&sums}), Operands()});
  return absl::OkStatus();
}

ObjectiveRunner::Sums ObjectiveRunner::TakeSums() {
  const size_t names = objective_.sums.size();
  size_t count = names;
  if (sums_.valid()) count = static_cast<size_t>(sums_.elements()) / has_sums_.size();
  std::vector<double> total(count, 0.0), table(has_sums_.size() * count);
  if (sums_.valid()) backend_.CopyToHost(sums_, std::as_writable_bytes(std::span(table)));
  for (size_t i = 0; i < has_sums_.size(); ++i) {
    for (size_t k = 0; has_sums_[i] && k < count; ++k) total[k] += table[i * count + k];
  }
  Drop();
  Sums sums;
  sums.named.assign(total.begin(), total.begin() + static_cast<ptrdiff_t>(names));
  for (size_t i = names; i < count; i += kClassCounts) {
    sums.classes.push_back({total[i], total[i + 1], total[i + 2]});
  }
  return sums;
}

void ObjectiveRunner::Drop() {
  has_sums_.clear();
  sums_.Reset();
}

}  // namespace stagecoach
