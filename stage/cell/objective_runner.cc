#include "stage/cell/objective_runner.h"

#include <algorithm>
#include <span>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/errors/check.h"
#include "base/errors/status.h"
#include "operations/losses/loss_types.h"
#include "stage/backends/bound_kernel.h"

namespace stagecoach {
namespace {

// Numbers of the table of sums that the host has at a time: a job decides how many classes and
// micro-batches there are.
constexpr size_t kHostSums = size_t{1} << 16;

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
    : objective_(network.objective), dtype_(ComputeDType(network.precision)), backend_(backend) {
  for (const WireId id : objective_.outputs()) {
    compared_.push_back({.weight = id == objective_.auxiliary ? objective_.auxiliary_weight : 1.0,
                         .has_gradient = network.wire(id).gradient,
                         .overwrites = !BackwardReads(network, id)});
  }
}

absl::StatusOr<ObjectiveRunner::Form> ObjectiveRunner::Prepare(const LossCall& loss) const {
  Form form{.kernel = {},
            .gradient = loss.types.outputs.front(),
            .sums = loss.types.outputs.back().shape.elements()};
  ASSIGN_OR_RETURN(form.kernel, PrepareBound(backend_, loss.call, loss.types, dtype_));
  return form;
}

absl::StatusOr<std::unique_ptr<ObjectiveRunner>> ObjectiveRunner::Create(const Network& network,
                                                                         Backend& backend) {
  auto runner = std::unique_ptr<ObjectiveRunner>(new ObjectiveRunner(network, backend));
  ASSIGN_OR_RETURN(runner->training_, runner->Prepare(LossCallOf(network, true)));
  ASSIGN_OR_RETURN(runner->evaluation_, runner->Prepare(LossCallOf(network, false)));
  for (Compared& compared : runner->compared_) {
    ASSIGN_OR_RETURN(compared.scale, MakeTensor(backend.allocator(), MemoryKind::kWorkspace,
                                                DType::kF32, RuntimeShape(ScaleType(), 1)));
    backend.Fill(compared.scale, 0.0f);
  }
  return runner;
}

void ObjectiveRunner::Begin(int micro_batches, double scale) {
  Drop();
  micro_batches_ = micro_batches;
  if (scale == scale_value_) return;
  for (const Compared& compared : compared_) {
    backend_.Fill(compared.scale, static_cast<float>(scale * compared.weight));
  }
  scale_value_ = scale;
}

absl::StatusOr<Tensor> ObjectiveRunner::NextSums(const Form& form, MicroBatchId id, Part part,
                                                 Compared* compared) {
  if (parts_ == 0) {
    parts_ = part.count;
    has_sums_.assign(static_cast<size_t>(micro_batches_ * parts_), false);
  }
  if (part.count > parts_) {
    return absl::FailedPreconditionError(
        absl::StrCat("micro-batch ", id.value, " has ", part.count, " parts, the first one ",
                     parts_, ": no micro-batch may have more samples than the first"));
  }
  if (!compared->sums.valid()) {
    ASSIGN_OR_RETURN(compared->sums,
                     MakeTensor(backend_.allocator(), MemoryKind::kWorkspace, DType::kF64,
                                Shape{static_cast<int64_t>(has_sums_.size()) * form.sums}));
  }
  const int64_t place = id.value * parts_ + part.index;
  has_sums_.at(static_cast<size_t>(place)) = true;
  return compared->sums.Slice(place * form.sums, Shape{form.sums});
}

std::vector<Tensor*> ObjectiveRunner::Inputs(Tensor* output, Targets* targets) const {
  CHECK_EQ(targets->weights.valid(), objective_.weighted()) << "weights of targets";
  std::vector<Tensor*> inputs = {output, &targets->values};
  if (objective_.weighted()) inputs.push_back(&targets->weights);
  return inputs;
}

absl::StatusOr<Tensor> ObjectiveRunner::TrainOne(Compared& compared, const ForwardContext& context,
                                                 Tensor output, Targets* targets, Part part) {
  ASSIGN_OR_RETURN(Tensor sums, NextSums(training_, context.micro_batch, part, &compared));
  Tensor gradient = output;
  if (!compared.overwrites) {
    const Shape shape = RuntimeShape(training_.gradient, context.binding());
    const int64_t stride = output.padded() ? output.row_stride() : shape.back();
    ASSIGN_OR_RETURN(gradient, MakePaddedTensor(backend_.allocator(), MemoryKind::kActivations,
                                                ElementDType(training_.gradient.element, dtype_),
                                                shape, stride));
  }
  std::vector<Tensor*> inputs = Inputs(&output, targets);
  inputs.push_back(&compared.scale);
  training_.kernel({context}, {Operands(inputs), Operands({&gradient, &sums}), Operands()});
  return gradient;
}

absl::StatusOr<Tensors> ObjectiveRunner::Train(const ForwardContext& context, Tensors outputs,
                                               Targets targets, Part part) {
  CHECK_EQ(outputs.size(), compared_.size()) << "outputs";
  Tensors gradients;
  for (size_t i = 0; i < compared_.size(); ++i) {
    ASSIGN_OR_RETURN(Tensor gradient,
                     TrainOne(compared_[i], context, std::move(outputs[i]), &targets, part));
    if (compared_[i].has_gradient) gradients.push_back(std::move(gradient));
  }
  return gradients;
}

absl::Status ObjectiveRunner::Evaluate(const ForwardContext& context, Tensor output,
                                       Targets targets, Part part) {
  Compared& compared = compared_[objective_.output_place()];
  ASSIGN_OR_RETURN(Tensor sums, NextSums(evaluation_, context.micro_batch, part, &compared));
  const std::vector<Tensor*> inputs = Inputs(&output, &targets);
  evaluation_.kernel({context}, {Operands(inputs), Operands({&sums}), Operands()});
  return absl::OkStatus();
}

std::vector<double> ObjectiveRunner::Total(const Compared& compared) const {
  if (!compared.sums.valid()) return {};
  const size_t places = has_sums_.size();
  const size_t count = static_cast<size_t>(compared.sums.elements()) / places;
  const size_t block =
      std::min(places, std::max<size_t>(1, kHostSums / std::max<size_t>(1, count)));
  std::vector<double> total(count, 0.0), table(block * count);
  for (size_t first = 0; first < places; first += block) {
    const size_t some = std::min(block, places - first);
    const std::span<double> sums = std::span(table).first(some * count);
    const Tensor part = some == places
                            ? compared.sums
                            : compared.sums.Slice(static_cast<int64_t>(first * count),
                                                  Shape{static_cast<int64_t>(sums.size())});
    backend_.CopyToHost(part, std::as_writable_bytes(sums));
    for (size_t i = 0; i < some; ++i) {
      for (size_t k = 0; has_sums_[first + i] && k < count; ++k) total[k] += sums[i * count + k];
    }
  }
  return total;
}

ObjectiveRunner::Sums ObjectiveRunner::TakeSums() {
  const size_t names = objective_.sums.size();
  Sums sums;
  for (size_t place = 0; place < compared_.size(); ++place) {
    std::vector<double> total = Total(compared_[place]);
    if (place != objective_.output_place()) {
      if (!total.empty()) sums.auxiliary = total[0];
      continue;
    }
    if (total.empty()) total.assign(names, 0.0);
    sums.named.assign(total.begin(), total.begin() + static_cast<ptrdiff_t>(names));
    for (size_t i = names; i < total.size(); i += kClassCounts) {
      sums.classes.push_back({total[i], total[i + 1], total[i + 2]});
    }
  }
  Drop();
  return sums;
}

void ObjectiveRunner::Drop() {
  has_sums_.clear();
  parts_ = 0;
  for (Compared& compared : compared_) compared.sums.Reset();
}

}  // namespace stagecoach
