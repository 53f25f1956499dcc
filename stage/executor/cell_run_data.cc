// What a cell reads of the data source: inputs, targets and their weights.
#include <algorithm>
#include <cstring>
#include <span>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/errors/check.h"
#include "base/errors/status.h"
#include "base/threads/current_work.h"
#include "stage/executor/cell_run.h"

namespace stagecoach {

absl::StatusOr<Tensor> CellRun::ToDevice(std::span<const std::byte> array,
                                                      const ValueType& type,
                                                      const Binding& binding) const {
  const DType source = type.element == Element::kIds ? DType::kI32 : DType::kF32;
  Backend& backend = *parts_.backend;
  ASSIGN_OR_RETURN(Tensor tensor, MakeTensor(backend.link_allocator(), MemoryKind::kActivations,
                                             source, RuntimeShape(type, binding)));
  CHECK_EQ(static_cast<int64_t>(array.size()), tensor.bytes()) << "bytes of " << FormatType(type);
  if (CopiesForLinks(backend)) {
    // The back end holds them until they have been copied, so nobody waits.
    std::memcpy(tensor.raw(), array.data(), array.size());
    ASSIGN_OR_RETURN(tensor, backend.CopyFromLink(tensor));
  } else {
    backend.CopyFromHost(array, tensor);
    RETURN_IF_ERROR(backend.Synchronize());
  }
  const DType wanted = ElementDType(type.element, dtype_);
  if (wanted == source) return tensor;
  ASSIGN_OR_RETURN(Tensor converted, MakeTensor(backend.allocator(), MemoryKind::kActivations,
                                                wanted, tensor.shape()));
  backend.Convert(tensor, converted);
  return converted;
}

absl::StatusOr<HostBatch> CellRun::Read(MicroBatchId id,
                                                     std::span<const std::string> names) const {
  absl::StatusOr<HostBatch> batch = work_->training
                                        ? parts_.data->Train(work_->fence.step, id, names)
                                        : parts_.data->Evaluation(work_->evaluation_batch, id, names);
  if (!batch.ok()) return DataError(batch.status());
  return batch;
}

absl::StatusOr<Tensors> CellRun::Load(MicroBatchId id,
                                                   std::span<const std::string> names,
                                                   const std::vector<ValueType>& types) {
  ASSIGN_OR_RETURN(const HostBatch batch, Read(id, names));
  return Take(id, batch, 0, types);
}

// The scale of the loss is that of the first micro-batch's lengths.
absl::Status CellRun::CheckLengths(MicroBatchId id) const {
  const Binding &first = in_flight_.front().binding, &binding = in_flight_[id.value].binding;
  if (first.samples <= 0 || binding.samples <= 0) return absl::OkStatus();
  for (const Length length : kNamedLengths) {
    const int64_t wanted = first.lengths.of(length), found = binding.lengths.of(length);
    if (wanted == found) continue;
    return absl::FailedPreconditionError(
        absl::StrCat("micro-batch ", id.value, " has ", LengthName(length), " ", found,
                     ", the first one ", wanted, ": they must be alike in a mini-batch"));
  }
  return absl::OkStatus();
}

absl::Status CellRun::Bind(MicroBatchId id, const HostBatch& batch) {
  Binding& binding = At(id).binding;
  const auto check = [this](int64_t arrived, int64_t read, const char* what) {
    if (arrived == read) return absl::OkStatus();
    return absl::FailedPreconditionError(
        absl::StrCat(arrived, " ", what, " arrived, the data set of stage ", parts_.stage.value,
                     " has ", read, "; all stages must read the same file"));
  };
  if (binding.samples < 0) binding.samples = batch.samples;
  At(id).padding = batch.padding;
  RETURN_IF_ERROR(check(binding.samples, batch.samples, "samples"));
  for (const Length length : kNamedLengths) {
    const int64_t arrived = binding.lengths.of(length), read = batch.lengths.of(length);
    if (arrived == 0) binding.lengths.Set(length, read);
    if (arrived == 0 || batch.samples == 0) continue;
    RETURN_IF_ERROR(check(arrived, read, LengthName(length)));
  }
  return absl::OkStatus();
}

absl::StatusOr<Tensors> CellRun::Take(MicroBatchId id, const HostBatch& batch,
                                                   int first, const std::vector<ValueType>& types) {
  RETURN_IF_ERROR(Bind(id, batch));
  const Binding& binding = At(id).binding;
  Tensors tuple;
  for (size_t i = 0; i < types.size() && binding.samples > 0; ++i) {
    const auto& array = batch.arrays[static_cast<size_t>(first) + i];
    ASSIGN_OR_RETURN(Tensor tensor, ToDevice(array, types[i], binding));
    tuple.push_back(std::move(tensor));
  }
  return tuple;
}

absl::Status CellRun::LoadInput(MicroBatchId id) {
  ASSIGN_OR_RETURN(Tensors loaded, Load(id, loaded_names_, Types(wires_.loaded)));
  At(id).loaded = std::move(loaded);
  return absl::OkStatus();
}

absl::Status CellRun::LoadTarget(MicroBatchId id) {
  ASSIGN_OR_RETURN(Tensors loaded, LoadTargets(id));
  RETURN_IF_ERROR(CheckLengths(id));
  if (!objective_begun_) {
    ASSIGN_OR_RETURN(const double scale, LossScale(At(id).binding.lengths));
    own_.cell->objective()->Begin(static_cast<int>(in_flight_.size()), scale);
    objective_begun_ = true;
  }
  if (!loaded.empty()) {
    At(id).target = std::move(loaded.front());
    if (parts_.network->objective.weighted()) {
      ASSIGN_OR_RETURN(At(id).weights, LoadWeights(id));
    }
  }
  At(id).weighed.reset();
  return absl::OkStatus();
}

absl::StatusOr<Tensors> CellRun::LoadTargets(MicroBatchId id) {
  const std::vector types{parts_.network->objective.target_type};
  const std::vector<std::string>& names = target_weights_.names();
  const auto found = std::find(names.begin(), names.end(), target_name_.front());
  if (found == names.end()) return Load(id, target_name_, types);
  ASSIGN_OR_RETURN(const HostBatch* const batch, Weighed(id));
  return Take(id, *batch, static_cast<int>(found - names.begin()), types);
}

absl::StatusOr<Tensor> CellRun::LoadWeights(MicroBatchId id) {
  ASSIGN_OR_RETURN(const HostBatch* const batch, Weighed(id));
  const std::vector<float> weights = target_weights_.Of(*batch);
  return ToDevice(std::as_bytes(std::span(weights)), parts_.network->objective.loaded().back(),
                  {batch->samples, batch->lengths});
}

absl::StatusOr<const HostBatch*> CellRun::Weighed(MicroBatchId id) {
  std::optional<HostBatch>& batch = At(id).weighed;
  if (!batch.has_value()) {
    ASSIGN_OR_RETURN(batch, Read(id, target_weights_.names()));
  }
  return &*batch;
}

// The gradient is that of the mean over the mini-batch, for every M: its weights are added target
// after target, as if M were 1. The work's scale is for the largest lengths; all micro-batches of a
// mini-batch have the same.
absl::StatusOr<double> CellRun::LossScale(const Lengths& lengths) {
  if (!work_->training) return work_->loss_scale;
  if (target_weights_.names().empty()) {
    const ValueType& type = parts_.network->objective.target_type;
    if (!type.shape.has_lengths()) return work_->loss_scale;
    return work_->loss_scale * static_cast<double>(TypeElements(type, 1)) /
           static_cast<double>(TypeElements(type, {1, lengths}));
  }
  double total = 0;
  for (size_t i = 0; i < in_flight_.size(); ++i) {
    const MicroBatchId id(static_cast<int32_t>(i));
    ASSIGN_OR_RETURN(const HostBatch* const batch, Weighed(id));
    for (const float weight : target_weights_.Of(*batch)) total += weight;
  }
  return total == 0 ? 0.0 : 1.0 / (total * static_cast<double>(target_weights_.terms()));
}

}  // namespace stagecoach
