#include "stage/data/formats/token_file.h"

#include <algorithm>
#include <cstring>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/errors/status.h"
#include "base/files/hash.h"
#include "base/threads/progress.h"
#include "plan/data/token_file_header.h"
#include "stage/data/formats/data_file.h"
#include "stage/data/formats/joined_tokens.h"

namespace stagecoach {
namespace {

template <typename Stored, typename Id>
void Widen(std::span<const uint8_t> bytes, std::span<Id> ids) {
  for (size_t i = 0; i < ids.size(); ++i) {
    Stored stored;
    std::memcpy(&stored, bytes.data() + i * sizeof(stored), sizeof(stored));
    ids[i] = static_cast<Id>(stored);
  }
}

template <typename Id>
void IdsOf(TokenType type, std::span<const uint8_t> bytes, std::span<Id> ids) {
  switch (type) {
    case TokenType::kUint8:
      return Widen<uint8_t>(bytes, ids);
    case TokenType::kUint16:
      return Widen<uint16_t>(bytes, ids);
    case TokenType::kInt32:
      return Widen<int32_t>(bytes, ids);
    case TokenType::kUint32:
      return Widen<uint32_t>(bytes, ids);
    case TokenType::kInt64:
      return Widen<int64_t>(bytes, ids);
  }
}

// Of a file whose ids were checked.
class StoredTokens final : public TextTokens {
 public:
  StoredTokens(std::unique_ptr<OpenedFile> file, TokenType type, int64_t offset, int64_t tokens)
      : file_(std::move(file)), type_(type), offset_(offset), tokens_(tokens) {}
  int64_t tokens() const override { return tokens_; }
  absl::Status Read(int64_t first, std::span<int32_t> into) const override {
    const int64_t width = TokenBytes(type_);
    bytes_.resize(into.size() * static_cast<size_t>(width));
    if (absl::Status read = file_->ReadAt(offset_ + first * width, bytes_); !read.ok()) {
      RETURN_IF_ERROR(file_->CheckUnchanged());
      return read;
    }
    IdsOf(type_, bytes_, into);
    return absl::OkStatus();
  }
  absl::Status CheckUnchanged() const override { return file_->CheckUnchanged(); }

 private:
  const std::unique_ptr<OpenedFile> file_;
  const TokenType type_;
  const int64_t offset_, tokens_;
  mutable std::vector<uint8_t> bytes_;
};

// All of a file that is left, as `Number`s.
template <typename Number>
absl::StatusOr<std::vector<Number>> ReadNumbers(OpenedFile& file, int64_t count, Sha256* digest) {
  std::vector<Number> numbers(static_cast<size_t>(count));
  auto left =
      std::span(reinterpret_cast<uint8_t*>(numbers.data()), numbers.size() * sizeof(Number));
  while (!left.empty()) {
    const auto piece = left.first(std::min(left.size(), kProgressPieceBytes));
    ASSIGN_OR_RETURN(const size_t read, file.Read(piece));
    digest->Update(std::as_bytes(piece.first(read)));
    left = left.subspan(read);
  }
  return numbers;
}

absl::Status DoesNotFit(const OpenedFile& index, const std::string& what) {
  return absl::InvalidArgumentError(absl::StrCat(
      index.Where(), ": ", what, ": make the pair again with Megatron's preprocess_data.py"));
}

// The index behind its header: where the documents end, in tokens.
absl::StatusOr<std::vector<int64_t>> ReadIndex(OpenedFile& index, const TokenFileHeader& header,
                                               Sha256* digest) {
  ASSIGN_OR_RETURN(const auto sizes, ReadNumbers<int32_t>(index, header.sequences, digest));
  ASSIGN_OR_RETURN(const auto firsts, ReadNumbers<int64_t>(index, header.sequences, digest));
  ASSIGN_OR_RETURN(const auto bounds, ReadNumbers<int64_t>(index, header.documents + 1, digest));
  const int64_t width = TokenBytes(header.type);
  std::vector<int64_t> begins = {0};  // of the sequences
  for (size_t i = 0; i < sizes.size(); ++i) {
    if (sizes[i] < 0 || firsts[i] != begins.back() * width) {
      return DoesNotFit(index, absl::StrCat("sequence ", i, " has ", sizes[i], " tokens from byte ",
                                            firsts[i], " on; must begin at byte ",
                                            begins.back() * width, ", where the one before ends"));
    }
    begins.push_back(begins.back() + sizes[i]);
  }
  std::vector<int64_t> ends;
  for (size_t i = 0; i < bounds.size(); ++i) {
    const int64_t least = i == 0 ? 0 : bounds[i - 1];
    const int64_t most = i == 0 ? 0 : header.sequences;
    const bool last = i + 1 == bounds.size();
    if (bounds[i] < least || bounds[i] > most || (last && bounds[i] != header.sequences)) {
      return DoesNotFit(index, absl::StrCat("boundary ", i, " of its documents is sequence ",
                                            bounds[i], " of ", header.sequences));
    }
    if (i > 0) ends.push_back(begins[static_cast<size_t>(bounds[i])]);
  }
  return ends;
}

// Reads all tokens once.
class TokenCheck {
 public:
  // ends: of documents.
  TokenCheck(const TokenFileToOpen& ask, std::vector<int64_t> ends)
      : ask_(ask), ends_(std::move(ends)) {}

  absl::Status ReadAll(OpenedFile& file, TokenType type, int64_t tokens, Sha256* digest) {
    const int64_t width = TokenBytes(type);
    std::vector<uint8_t> piece(kProgressPieceBytes);
    std::vector<int64_t> ids;
    for (int64_t at = 0; at < tokens && (ask_.most_bytes == 0 || at * width < ask_.most_bytes);) {
      const int64_t count = std::min<int64_t>(std::ssize(piece) / width, tokens - at);
      const auto bytes = std::span(piece).first(static_cast<size_t>(count * width));
      ASSIGN_OR_RETURN(const size_t read, file.Read(bytes));
      if (read < bytes.size()) return file.ReadAt(file.size(), bytes);  // it says what is wrong
      digest->Update(std::as_bytes(bytes));
      ids.resize(static_cast<size_t>(count));
      IdsOf(type, bytes, std::span(ids));
      RETURN_IF_ERROR(Look(file, ids, at));
      at += count;
      seen_ = at;
    }
    return absl::OkStatus();
  }
  // Ends of documents that lack the end token, as far as tokens were read.
  std::vector<int64_t> TakeLacking() { return std::move(lacking_); }
  int64_t seen() const { return seen_; }

 private:
  absl::Status Look(const OpenedFile& file, std::span<const int64_t> ids, int64_t first) {
    for (size_t i = 0; i < ids.size(); ++i) {
      if (ids[i] >= 0 && ids[i] < ask_.vocabulary) continue;
      return absl::InvalidArgumentError(
          absl::StrCat(file.Where(), ": token ", first + static_cast<int64_t>(i), " is ", ids[i],
                       ", and ", ask_.vocabulary_field, " = ", ask_.vocabulary,
                       "; ids must be from 0 to below it: set it to the tokenizer's, or give "
                       "files of another tokenizer"));
    }
    const int64_t past = first + std::ssize(ids);
    for (; ask_.end >= 0 && next_ < ends_.size() && ends_[next_] <= past; ++next_) {
      const int64_t begin = next_ == 0 ? 0 : ends_[next_ - 1];
      if (ends_[next_] == begin) continue;  // an empty one
      if (ids[static_cast<size_t>(ends_[next_] - 1 - first)] != ask_.end) {
        lacking_.push_back(ends_[next_]);
      }
    }
    return absl::OkStatus();
  }

  const TokenFileToOpen& ask_;
  const std::vector<int64_t> ends_;
  std::vector<int64_t> lacking_;
  size_t next_ = 0;
  int64_t seen_ = 0;
};

}  // namespace

absl::StatusOr<OpenedTokens> OpenTokenFile(const DataRoots& roots, const TokenFileToOpen& ask) {
  ASSIGN_OR_RETURN(std::unique_ptr<OpenedFile> file, OpenedFile::Open(roots, ask.field, ask.path));
  std::string head(std::min(static_cast<size_t>(file->size()), kLlmCHeaderBytes), '\0');
  RETURN_IF_ERROR(file->ReadAt(0, {reinterpret_cast<uint8_t*>(head.data()), head.size()}));
  ASSIGN_OR_RETURN(const TokenFileHeader header,
                   ParseTokenFileHeader(file->Where(), head, file->size()));
  OpenedTokens opened{.where = file->Where(), .bytes = file->size()};
  Sha256 digest;
  ASSIGN_OR_RETURN(const auto before, ReadNumbers<uint8_t>(*file, header.header_bytes, &digest));
  std::vector<int64_t> ends;
  int64_t tokens = header.tokens, offset = header.header_bytes;
  if (header.index) {
    ASSIGN_OR_RETURN(ends, ReadIndex(*file, header, &digest));
    opened.documents = std::ssize(ends);
    const std::string path = TokensBesideIndex(ask.path);
    if (path.empty()) {
      return DoesNotFit(*file, "is an index of Megatron, whose name must end with .idx");
    }
    tokens = ends.empty() ? 0 : ends.back();
    const std::string where = file->Where();
    ASSIGN_OR_RETURN(file, OpenedFile::Open(roots, ask.field, path));
    if (const int64_t bytes = tokens * TokenBytes(header.type); file->size() != bytes) {
      return absl::InvalidArgumentError(absl::StrCat(
          file->Where(), ": has ", file->size(), " bytes; the index ", where, " is of ", tokens,
          " tokens, which are ", bytes, " bytes: give the two files that belong together"));
    }
    opened.bytes += file->size();
    offset = 0;
  }
  TokenCheck check(ask, std::move(ends));
  RETURN_IF_ERROR(check.ReadAll(*file, header.type, tokens, &digest));
  opened.whole = check.seen() == tokens;
  // The same files with another end are other tokens.
  std::vector<int64_t> lacking = check.TakeLacking();
  opened.sha256 = digest.Hex();
  if (!lacking.empty()) absl::StrAppend(&opened.sha256, " end ", ask.end);
  opened.tokens = std::make_shared<StoredTokens>(std::move(file), header.type, offset, tokens);
  if (lacking.empty()) return opened;
  opened.tokens = std::make_shared<EndedTokens>(std::move(opened.tokens), std::move(lacking),
                                                static_cast<int32_t>(ask.end));
  return opened;
}

}  // namespace stagecoach
