#include "stage/decoding/local_token_model.h"

#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/errors/check.h"
#include "base/errors/status.h"
#include "stage/decoding/host_values.h"

namespace stagecoach {

absl::StatusOr<std::unique_ptr<LocalTokenModel>> LocalTokenModel::Create(DecodingForm form,
                                                                         const Cell& cell,
                                                                         Backend& backend) {
  auto model = std::unique_ptr<LocalTokenModel>(new LocalTokenModel(std::move(form), backend));
  ASSIGN_OR_RETURN(model->decoder_, CellDecoder::Create(model->form_, cell, backend));
  return model;
}

absl::StatusOr<Tensor> LocalTokenModel::Ids(std::span<const int32_t> ids, const ValueType& type,
                                            const Binding& binding) {
  const Shape shape = RuntimeShape(type, binding);
  CHECK_EQ(shape.elements(), std::ssize(ids)) << "ids of " << FormatType(type);
  ASSIGN_OR_RETURN(Tensor tensor,
                   MakeTensor(backend_.allocator(), MemoryKind::kActivations, DType::kI32, shape));
  backend_.CopyFromHost(std::as_bytes(ids), tensor);
  return tensor;
}

absl::Status LocalTokenModel::Begin(int group, const SourceBatch& source) {
  const Binding binding{source.samples, source.lengths};
  Tensors inputs;
  for (const WireId id : decoder_->source_wires().loaded) {
    const auto found = source.ids.find(form_.source.input(id).name);
    CHECK(found != source.ids.end()) << "ids of input " << form_.source.input(id).name;
    ASSIGN_OR_RETURN(Tensor tensor, Ids(found->second, form_.source.wire(id).type, binding));
    inputs.push_back(std::move(tensor));
  }
  RETURN_IF_ERROR(decoder_->Begin(group, std::move(inputs), binding).status());
  return backend_.Synchronize();
}

absl::StatusOr<CandidatesOfRows> LocalTokenModel::Step(int group, const RowBatch& rows,
                                                       const StepChoice& choice) {
  Binding binding{rows.samples};
  binding.lengths.Set(Length::kTarget, rows.rows);
  Tensors inputs;
  for (const WireId id : decoder_->target_wires().loaded) {
    const std::string& name = form_.target.input(id).name;
    const std::vector<int32_t>& ids = name == kTokens      ? rows.tokens
                                      : name == kPositions ? rows.positions
                                      : name == kPlaces    ? rows.places
                                                           : rows.history;
    ASSIGN_OR_RETURN(Tensor tensor, Ids(ids, form_.target.wire(id).type, binding));
    inputs.push_back(std::move(tensor));
  }
  ASSIGN_OR_RETURN(const Tensors sent, decoder_->Step(group, std::move(inputs), binding));
  return CandidatesOf(sent.front(), rows, choice, backend_);
}

absl::Status LocalTokenModel::Keep(int group, std::span<const int64_t> samples) {
  return decoder_->Keep(group, samples);
}

absl::StatusOr<CandidatesOfRows> CandidatesOf(const Tensor& logits, const RowBatch& rows,
                                              const StepChoice& choice, Backend& backend) {
  Tensor wide = logits;
  if (logits.dtype() != DType::kF32) {
    ASSIGN_OR_RETURN(wide, MakeTensor(backend.allocator(), MemoryKind::kActivations, DType::kF32,
                                      logits.shape()));
    backend.Convert(logits, wide);
  }
  HostValues numbers;
  RETURN_IF_ERROR(numbers.Read(wide, backend));
  const auto classes = static_cast<size_t>(wide.shape().back());
  CandidatesOfRows candidates(rows.wanted.size());
  for (size_t i = 0; i < candidates.size(); ++i) {
    if (!rows.wanted[i]) continue;
    const double uniform = rows.uniforms.empty() ? 0 : rows.uniforms[i];
    ASSIGN_OR_RETURN(candidates[i], Annotate(Choose(numbers.floats().subspan(i * classes, classes),
                                                    choice.options, uniform, choice.forbidden),
                                             absl::StrCat("position ", rows.positions[i])));
  }
  return candidates;
}

}  // namespace stagecoach
