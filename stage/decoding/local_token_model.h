// LocalTokenModel: a TokenModel of a cell that holds the whole network.
// Ownership: owns its decoder and the form; borrows cell and back end.
// Threads:   one at a time.
#ifndef STAGECOACH_STAGE_DECODING_LOCAL_TOKEN_MODEL_H_
#define STAGECOACH_STAGE_DECODING_LOCAL_TOKEN_MODEL_H_

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "absl/status/statusor.h"
#include "decoding/token_model.h"
#include "stage/decoding/cell_decoder.h"

namespace stagecoach {

class LocalTokenModel final : public TokenModel {
 public:
  static absl::StatusOr<std::unique_ptr<LocalTokenModel>> Create(DecodingForm form,
                                                                 const Cell& cell,
                                                                 Backend& backend);
  absl::Status Begin(int group, const SourceBatch& source) override;
  absl::StatusOr<CandidatesOfRows> Step(int group, const RowBatch& rows,
                                        const StepChoice& choice) override;
  absl::Status Keep(int group, std::span<const int64_t> samples) override;
  void Drop(int group) override { decoder_->Drop(group); }

 private:
  LocalTokenModel(DecodingForm form, Backend& backend)
      : form_(std::move(form)), backend_(backend) {}
  absl::StatusOr<Tensor> Ids(std::span<const int32_t> ids, const ValueType& type,
                             const Binding& binding);

  const DecodingForm form_;
  Backend& backend_;
  std::unique_ptr<CellDecoder> decoder_;
};

// Candidates of the wanted rows. logits: [rows, classes], F32 or BF16.
absl::StatusOr<CandidatesOfRows> CandidatesOf(const Tensor& logits, const RowBatch& rows,
                                              const StepChoice& choice, Backend& backend);

}  // namespace stagecoach

#endif  // STAGECOACH_STAGE_DECODING_LOCAL_TOKEN_MODEL_H_
