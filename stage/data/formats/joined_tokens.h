// JoinedTokens: files of tokens one behind the other.
// EndedTokens: documents of a file, with the end token behind those that lack it.
// Ownership: own what they join.  Threads, errors: as TextTokens.
#ifndef STAGECOACH_STAGE_DATA_FORMATS_JOINED_TOKENS_H_
#define STAGECOACH_STAGE_DATA_FORMATS_JOINED_TOKENS_H_

#include <memory>
#include <vector>

#include "stage/data/formats/text_tokens.h"

namespace stagecoach {

class JoinedTokens final : public TextTokens {
 public:
  explicit JoinedTokens(std::vector<std::shared_ptr<const TextTokens>> parts);
  int64_t tokens() const override { return ends_.empty() ? 0 : ends_.back(); }
  absl::Status Read(int64_t first, std::span<int32_t> into) const override;
  absl::Status CheckUnchanged() const override;

 private:
  const std::vector<std::shared_ptr<const TextTokens>> parts_;
  std::vector<int64_t> ends_;  // of the parts, in the joined tokens
};

class EndedTokens final : public TextTokens {
 public:
  // lacking: where documents end in `base`, ascending, of those behind which `end` is put.
  EndedTokens(std::shared_ptr<const TextTokens> base, std::vector<int64_t> lacking, int32_t end)
      : base_(std::move(base)), lacking_(std::move(lacking)), end_(end) {}
  int64_t tokens() const override { return base_->tokens() + std::ssize(lacking_); }
  absl::Status Read(int64_t first, std::span<int32_t> into) const override;
  absl::Status CheckUnchanged() const override { return base_->CheckUnchanged(); }

 private:
  const std::shared_ptr<const TextTokens> base_;
  const std::vector<int64_t> lacking_;
  const int32_t end_;
};

}  // namespace stagecoach

#endif  // STAGECOACH_STAGE_DATA_FORMATS_JOINED_TOKENS_H_
