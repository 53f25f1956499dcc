#include "stage/data/parallel/line_file.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/errors/status.h"
#include "base/threads/progress.h"
#include "plan/data/parallel_text.h"
#include "plan/job/data_kinds.h"

namespace stagecoach {
namespace {

constexpr size_t kPieceBytes = size_t{1} << 20;

std::string_view TextOf(std::span<const uint8_t> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

}  // namespace

LineFile::LineFile(std::unique_ptr<OpenedFile> file, std::vector<uint8_t> piece)
    : file_(std::move(file)),
      piece_(std::move(piece)),
      stored_(piece_),
      packed_(LooksLikeGzip(TextOf(piece_))) {
  digest_.Update(std::as_bytes(stored_));
}

absl::StatusOr<std::unique_ptr<LineFile>> LineFile::Open(const DataRoots& roots,
                                                         const std::string& field,
                                                         const std::string& path) {
  ASSIGN_OR_RETURN(std::unique_ptr<OpenedFile> file, OpenedFile::Open(roots, field, path));
  std::vector<uint8_t> piece(kPieceBytes);
  ASSIGN_OR_RETURN(const size_t count, file->Read(piece));
  piece.resize(count);
  RETURN_IF_ERROR(CheckSentencesHead(file->Where(), TextOf(piece).substr(0, kDataHeadBytes)));
  return std::unique_ptr<LineFile>(new LineFile(std::move(file), std::move(piece)));
}

std::string LineFile::WhereLine() const { return absl::StrCat(Where(), ", line ", line_); }

absl::StatusOr<std::optional<std::string_view>> LineFile::Next() {
  size_t end = Rest().find('\n');
  while (end == std::string_view::npos) {
    const size_t looked_at = Rest().size();
    if (looked_at > kMostLineBytes) break;
    ASSIGN_OR_RETURN(const bool more, Fill());
    if (!more && looked_at == 0) return std::nullopt;
    end = more ? Rest().find('\n', looked_at) : looked_at;
  }
  ++line_;
  if (end > kMostLineBytes) return TooLong();
  std::string_view line = Rest().substr(0, end);
  begin_ += std::min(end + 1, Rest().size());
  if (line.ends_with('\r')) line.remove_suffix(1);
  return line;
}

// The line is not kept, but its bytes are counted to its end.
absl::Status LineFile::TooLong() {
  size_t bytes = 0;
  for (;;) {
    const size_t end = Rest().find('\n');
    bytes += std::min(end, Rest().size());
    if (end != std::string_view::npos) break;
    begin_ = text_.size();
    ASSIGN_OR_RETURN(const bool more, Fill());
    if (!more) break;
  }
  return absl::InvalidArgumentError(absl::StrCat(WhereLine(), ": has ", bytes, " bytes; at most ",
                                                 kMostLineBytes, ": cut it into sentences"));
}

absl::StatusOr<bool> LineFile::Fill() {
  text_.erase(0, std::exchange(begin_, 0));
  const size_t before = text_.size();
  bool more = false;
  if (packed_) {
    ASSIGN_OR_RETURN(more, FillUnpacked());
  } else {
    if (stored_.empty()) RETURN_IF_ERROR(ReadPiece().status());
    text_ += TextOf(stored_);
    more = !std::exchange(stored_, {}).empty();
  }
  unpacked_ += static_cast<int64_t>(text_.size() - before);
  return more;
}

absl::StatusOr<bool> LineFile::FillUnpacked() {
  const size_t before = text_.size();
  for (;;) {
    text_.resize(before + kPieceBytes);
    const std::span<uint8_t> into(reinterpret_cast<uint8_t*>(text_.data()) + before, kPieceBytes);
    const absl::StatusOr<GunzipMembers::Done> done = members_.Unpack(stored_, into);
    text_.resize(before + (done.ok() ? done->written : 0));
    RETURN_IF_ERROR(Annotate(done.status(), Where()));
    if (done->other) return Damaged("has something else behind it");
    stored_ = stored_.subspan(done->read);
    TickProgress();
    if (done->written > 0) return true;
    if (!stored_.empty()) continue;
    ASSIGN_OR_RETURN(const bool more, ReadPiece());
    if (more) continue;
    if (!members_.ended()) return Damaged("is cut off");
    return false;
  }
}

absl::StatusOr<bool> LineFile::ReadPiece() {
  piece_.resize(kPieceBytes);
  ASSIGN_OR_RETURN(const size_t count, file_->Read(piece_));
  stored_ = std::span(piece_).first(count);
  digest_.Update(std::as_bytes(stored_));
  return count > 0;
}

absl::Status LineFile::Damaged(const char* how) const {
  return absl::DataLossError(
      absl::StrCat(Where(), ": its gzip data ", how, "; give the whole file"));
}

}  // namespace stagecoach
