#include <algorithm>
#include <array>
#include <limits>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/errors/status.h"
#include "base/files/hash.h"
#include "base/threads/progress.h"
#include "plan/data/text.h"
#include "plan/data/text_file.h"
#include "stage/data/formats/data_file.h"
#include "stage/data/opened_text.h"

namespace stagecoach {
namespace {

// What one look at the whole file tells of it, a piece at a time: it may be larger than memory.
class TextCheck {
 public:
  TextCheck(const TextData& text, const std::string& field, int64_t vocabulary)
      : text_(text), field_(field), vocabulary_(vocabulary) {}

  // Of a file with more than `most` bytes their beginning.
  absl::Status ReadAll(OpenedFile& file, int64_t most) {
    std::vector<uint8_t> piece(kProgressPieceBytes);
    for (int64_t offset = 0; file.left() > 0 && offset < most;) {
      ASSIGN_OR_RETURN(const size_t count, file.Read(piece));
      const std::span<const uint8_t> bytes = std::span(piece).first(count);
      if (offset == 0) RETURN_IF_ERROR(CheckHead(bytes));
      digest_.Update(std::as_bytes(bytes));
      Look(bytes, offset);
      offset += static_cast<int64_t>(count);
    }
    return file.size() > 0 ? absl::OkStatus() : CheckHead({});
  }

  absl::Status CheckTokens(const std::string& where, const JobSpec& spec) const {
    if (first_at_ < 0) return absl::OkStatus();
    const std::string field = absl::StrCat("model.", spec.network.kind, ".vocabulary");
    return absl::InvalidArgumentError(
        absl::StrCat(where, ": the byte at offset ", first_at_, " is not below ", field, " = ",
                     vocabulary_, "; set ", field, " to at least ", int{largest_} + 1,
                     " (256 takes every text) or give another text"));
  }

  std::string Digest() { return digest_.Hex(); }
  int64_t different_bytes() const { return std::count(seen_.begin(), seen_.end(), true); }

 private:
  absl::Status CheckHead(std::span<const uint8_t> bytes) const {
    const std::string_view head(reinterpret_cast<const char*>(bytes.data()),
                                std::min(bytes.size(), kTextCheckBytes));
    return CheckIsText(text_, head, field_);
  }

  void Look(std::span<const uint8_t> bytes, int64_t offset) {
    for (const uint8_t byte : bytes) seen_[byte] = true;
    if (vocabulary_ > std::numeric_limits<uint8_t>::max()) return;
    const auto at = std::find_if(bytes.begin(), bytes.end(),
                                 [this](uint8_t byte) { return int64_t{byte} >= vocabulary_; });
    if (at == bytes.end()) return;
    if (first_at_ < 0) first_at_ = offset + (at - bytes.begin());
    largest_ = std::max(largest_, *std::max_element(at, bytes.end()));
  }

  const TextData& text_;
  const std::string& field_;
  const int64_t vocabulary_;
  Sha256 digest_;
  int64_t first_at_ = -1;  // of a byte that is no token; -1: none is
  uint8_t largest_ = 0;
  std::array<bool, 256> seen_ = {};
};

// Read again when their turn comes.
class BytesAsTokens final : public TextTokens {
 public:
  explicit BytesAsTokens(std::unique_ptr<OpenedFile> file) : file_(std::move(file)) {}
  int64_t tokens() const override { return file_->size(); }
  absl::Status Read(int64_t first, std::span<int32_t> into) const override {
    bytes_.resize(into.size());
    if (absl::Status read = file_->ReadAt(first, bytes_); !read.ok()) {
      RETURN_IF_ERROR(file_->CheckUnchanged());
      return read;
    }
    std::copy(bytes_.begin(), bytes_.end(), into.begin());
    return absl::OkStatus();
  }
  absl::Status CheckUnchanged() const override { return file_->CheckUnchanged(); }

 private:
  const std::unique_ptr<OpenedFile> file_;
  mutable std::vector<uint8_t> bytes_;
};

}  // namespace

absl::StatusOr<OpenedText> OpenBytesOfText(const TextToOpen& ask) {
  const auto data = ask.spec->data.As<TextData>();
  ASSIGN_OR_RETURN(std::unique_ptr<OpenedFile> file,
                   OpenedFile::Open(*ask.roots, absl::StrCat("data.text.", ask.field), ask.path));
  TextCheck check(data, ask.field, ask.vocabulary);
  RETURN_IF_ERROR(check.ReadAll(*file, ask.most_bytes > 0 ? ask.most_bytes : file->size()));
  RETURN_IF_ERROR(check.CheckTokens(file->Where(), *ask.spec));
  OpenedText opened{.where = file->Where(),
                    .bytes = file->size(),
                    .sha256 = check.Digest(),
                    .seen_bytes = file->size() - file->left(),
                    .different_bytes = check.different_bytes()};
  opened.tokens = std::make_shared<BytesAsTokens>(std::move(file));
  return opened;
}

}  // namespace stagecoach
