#include "stage/decoding/cell_decoder.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/errors/check.h"
#include "base/errors/status.h"
#include "base/threads/progress.h"
#include "stage/decoding/host_values.h"

namespace stagecoach {

absl::StatusOr<std::unique_ptr<CellDecoder>> CellDecoder::Create(const DecodingForm& form,
                                                                 const Cell& cell,
                                                                 Backend& backend) {
  auto decoder = std::unique_ptr<CellDecoder>(new CellDecoder(backend));
  LayerRunner::Values values = cell.Values();
  if (form.has_source()) {
    RETURN_IF_ERROR(decoder->AddLayers(form.source, cell, &values, &decoder->source_));
  }
  RETURN_IF_ERROR(decoder->AddLayers(form.target, cell, &values, &decoder->target_));
  for (const DecodingForm::Held& held : form.held) {
    if (held.layer < cell.first_layer() || held.layer >= cell.last_layer()) continue;
    decoder->held_.push_back({held.made, held.read, form.source.wire(held.made).type});
  }
  std::erase_if(decoder->target_.wires.loaded, [&](WireId id) {
    return std::any_of(form.held.begin(), form.held.end(),
                       [id](const DecodingForm::Held& held) { return held.read == id; });
  });
  return decoder;
}

absl::Status CellDecoder::AddLayers(const Network& network, const Cell& cell,
                                    LayerRunner::Values* values, Half* half) {
  half->wires = WiresOfCell(network, cell.first_layer(), cell.last_layer());
  half->last_readers = LastReaders(network);
  for (int index = cell.first_layer(); index < cell.last_layer(); ++index) {
    const NetworkLayer& layer = network.layers[static_cast<size_t>(index)];
    for (const ParameterSpec& spec : layer.parameters) {
      CHECK(values->contains(spec.tied_to)) << "values of " << spec.tied_to;
    }
    ASSIGN_OR_RETURN(std::unique_ptr<LayerRunner> runner,
                     Annotate(LayerRunner::Create(network, layer, backend_, values),
                              absl::StrCat("layer ", index, " (", layer.label, ") for decoding")));
    half->layers.push_back({std::move(runner), layer.label, index, layer.inputs, layer.outputs});
  }
  return absl::OkStatus();
}

absl::StatusOr<Tensors> CellDecoder::Run(const Half& half, int group, Tensors inputs,
                                         const Binding& binding, std::vector<Tensor>* table) {
  const ForwardContext context{.micro_batch = MicroBatchId(group),
                               .sequences = binding.samples,
                               .lengths = binding.lengths,
                               .training = false};
  const auto at = [table](WireId id) -> Tensor& { return (*table)[static_cast<size_t>(id.value)]; };
  CHECK_EQ(inputs.size(), half.wires.loaded.size() + half.wires.received.size())
      << "values of group " << group;
  size_t next = 0;
  for (const auto* wires : {&half.wires.loaded, &half.wires.received}) {
    for (const WireId id : *wires) at(id) = std::move(inputs[next++]);
  }
  const CallsOfLists calls(backend_);
  for (const Layer& layer : half.layers) {
    Tensors read;
    for (const WireId id : layer.inputs) read.push_back(at(id));
    for (const WireId id : layer.inputs) {
      if (half.last_readers[static_cast<size_t>(id.value)] == layer.index) at(id).Reset();
    }
    ASSIGN_OR_RETURN(
        Tensors made,
        Annotate(layer.runner->Forward(std::move(read), context, nullptr),
                 absl::StrCat("decoding, layer ", layer.index, " (", layer.label, ")")));
    for (size_t i = 0; i < made.size(); ++i) at(layer.outputs[i]) = std::move(made[i]);
    TickProgress();
  }
  Tensors sent;
  for (const WireId id : half.wires.sent) sent.push_back(at(id));
  return sent;
}

absl::StatusOr<Tensors> CellDecoder::Begin(int group, Tensors inputs, const Binding& binding) {
  CHECK(!groups_.contains(group)) << "group " << group << " has begun";
  std::vector<Tensor> table(source_.last_readers.size());
  ASSIGN_OR_RETURN(Tensors sent, Run(source_, group, std::move(inputs), binding, &table));
  Group& begun = groups_[group];
  begun.binding = binding;
  for (const HeldValue& held : held_) {
    begun.held.push_back(std::move(table[static_cast<size_t>(held.made.value)]));
  }
  return sent;
}

absl::StatusOr<Tensors> CellDecoder::Step(int group, Tensors inputs, const Binding& binding) {
  std::vector<Tensor> table(target_.last_readers.size());
  const auto found = groups_.find(group);
  CHECK(held_.empty() || found != groups_.end()) << "group " << group << " has not begun";
  Binding with_source = binding;
  if (found != groups_.end()) {
    if (binding.samples != found->second.binding.samples) {
      return absl::FailedPreconditionError(
          absl::StrCat("group ", group, " has rows of ", binding.samples,
                       " samples, and began with ", found->second.binding.samples));
    }
    const Lengths& lengths = found->second.binding.lengths;
    with_source.lengths.Set(Length::kSource, lengths.of(Length::kSource));
  }
  for (size_t i = 0; i < held_.size(); ++i) {
    table[static_cast<size_t>(held_[i].read.value)] = found->second.held[i];
  }
  return Run(target_, group, std::move(inputs), with_source, &table);
}

// Groups get smaller a few times in their life, so all devices may copy through the host.
absl::Status CellDecoder::Keep(int group, std::span<const int64_t> samples) {
  const auto found = groups_.find(group);
  if (found == groups_.end()) return absl::OkStatus();
  Binding& binding = found->second.binding;
  binding.samples = static_cast<int64_t>(samples.size());
  for (size_t i = 0; i < held_.size(); ++i) {
    Tensor& tensor = found->second.held[i];
    ASSIGN_OR_RETURN(const Tensor kept,
                     MakeTensor(backend_.allocator(), MemoryKind::kActivations, tensor.dtype(),
                                RuntimeShape(held_[i].type, binding)));
    HostValues values;
    RETURN_IF_ERROR(values.Read(tensor, backend_));
    const int64_t elements = TypeElements(held_[i].type, {1, binding.lengths});
    const auto bytes = static_cast<size_t>(elements * DTypeSize(tensor.dtype()));
    for (size_t to = 0; to < samples.size(); ++to) {
      backend_.CopyFromHost(values.bytes().subspan(static_cast<size_t>(samples[to]) * bytes, bytes),
                            kept.Slice(static_cast<int64_t>(to) * elements, Shape{elements}));
    }
    RETURN_IF_ERROR(backend_.Synchronize());
    tensor = kept;
  }
  return absl::OkStatus();
}

void CellDecoder::Drop(int group) { groups_.erase(group); }

}  // namespace stagecoach
