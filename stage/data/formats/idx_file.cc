#include "stage/data/formats/idx_file.h"

#include <algorithm>
#include <array>
#include <memory>
#include <string_view>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/errors/status.h"
#include "base/files/gzip.h"
#include "base/threads/progress.h"
#include "stage/data/formats/data_file.h"

namespace stagecoach {
namespace {

using Bytes = std::span<const uint8_t>;

// Collects what a file holds, from its stored bytes, piece by piece: not a byte more than its
// header says.
class Content {
 public:
  Content(bool packed, bool keep, int64_t size) : packed_(packed), keep_(keep) {
    // One more, in which a larger file shows.
    if (keep) bytes_.resize(static_cast<size_t>(size) + 1);
  }

  absl::Status Add(Bytes piece) {
    for (const uint8_t byte : piece.last(std::min<size_t>(piece.size(), 4))) {
      trailer_ = trailer_ >> 8 | uint32_t{byte} << 24;
    }
    if (!keep_) return absl::OkStatus();
    return packed_ ? Unpack(piece) : Copy(piece);
  }

  // Of a gzip file, when all of it was added. What was not kept was not unpacked: who keeps it says
  // what is wrong.
  absl::Status CheckEnd(const std::string& where, const IdxHeader& header) const {
    if (!keep_) return absl::OkStatus();
    if (!members_.ended() && filled_ < bytes_.size()) return Damaged(where, "is cut off");
    if (more_) return Damaged(where, "has something else behind it");
    // The size modulo 2^32, as the last four bytes of one member say; less than was unpacked if
    // other members follow.
    const auto size = static_cast<uint32_t>(header.file_bytes());
    const bool of_one = members_.single() && (members_.ended() || trailer_ > size);
    if (of_one && trailer_ != size) {
      return CheckIdxSize(where, header, int64_t{trailer_}, "bytes unpacked");
    }
    if (filled_ == bytes_.size()) {
      return CheckIdxSize(where, header, static_cast<int64_t>(filled_), "bytes unpacked or more");
    }
    return CheckIdxSize(where, header, static_cast<int64_t>(filled_), "bytes unpacked");
  }

  std::vector<uint8_t> Take() {
    bytes_.resize(filled_);
    return std::move(bytes_);
  }

 private:
  static absl::Status Damaged(const std::string& where, const std::string& how) {
    return absl::DataLossError(
        absl::StrCat(where, ": its gzip data ", how, "; give the whole file"));
  }

  absl::Status Copy(Bytes piece) {
    const size_t count = std::min(piece.size(), bytes_.size() - filled_);
    std::copy_n(piece.begin(), count, bytes_.begin() + static_cast<int64_t>(filled_));
    filled_ += count;
    return absl::OkStatus();
  }

  absl::Status Unpack(Bytes piece) {
    if (filled_ == bytes_.size()) return absl::OkStatus();
    ASSIGN_OR_RETURN(const GunzipMembers::Done done,
                     members_.Unpack(piece, std::span(bytes_).subspan(filled_)));
    TickProgress();
    filled_ += done.written;
    more_ = more_ || done.other;
    return absl::OkStatus();
  }

  const bool packed_, keep_;
  std::vector<uint8_t> bytes_;
  size_t filled_ = 0;
  GunzipMembers members_;
  bool more_ = false;     // something else stands behind them
  uint32_t trailer_ = 0;  // the last four bytes so far
};

}  // namespace

std::span<const uint8_t> IdxFile::item(int64_t i) const {
  const auto size = static_cast<size_t>(header.item_bytes());
  return std::span(bytes).subspan(
      static_cast<size_t>(header.header_bytes()) + static_cast<size_t>(i) * size, size);
}

absl::Status IdxFile::ReadItem(int64_t i, std::span<uint8_t> into) const {
  if (file == nullptr) {
    const std::span<const uint8_t> kept = item(i);
    std::copy(kept.begin(), kept.end(), into.begin());
    return absl::OkStatus();
  }
  RETURN_IF_ERROR(file->ReadAt(header.header_bytes() + i * header.item_bytes(), into));
  return file->CheckUnchanged();
}

absl::StatusOr<IdxFile> ReadIdxFile(const DataRoots& roots, const std::string& field,
                                    const std::string& path, IdxContent content, bool keep,
                                    Sha256* digest) {
  ASSIGN_OR_RETURN(std::unique_ptr<OpenedFile> opened, OpenedFile::Open(roots, field, path));
  IdxFile file{.where = opened->Where(), .stored_bytes = opened->size()};
  std::array<std::byte, 8> size;
  for (size_t i = 0; i < size.size(); ++i) size[i] = std::byte(file.stored_bytes >> (8 * i) & 0xff);
  digest->Update(size);
  std::vector<uint8_t> piece(kProgressPieceBytes);
  ASSIGN_OR_RETURN(size_t count, opened->Read(piece));
  const std::string_view head(reinterpret_cast<const char*>(piece.data()), count);
  const bool packed = LooksLikeGzip(head);
  ASSIGN_OR_RETURN(const std::string unpacked, UnpackedIdxHead(file.where, head));
  ASSIGN_OR_RETURN(file.header, ParseIdxHeader(file.where, content, unpacked));
  RETURN_IF_ERROR(packed ? CheckPackedIdxSize(file.where, file.header, file.stored_bytes)
                         : CheckIdxSize(file.where, file.header, file.stored_bytes));
  const bool stays = keep && !packed && content == IdxContent::kImages;
  if (keep && packed && file.header.file_bytes() > kMostUnpackedIdxBytes) {
    return absl::InvalidArgumentError(
        absl::StrCat(file.where, ": unpacks to ", file.header.file_bytes(),
                     " bytes, which would be kept in memory; at most ", kMostUnpackedIdxBytes,
                     ": unpack it (gunzip) and give the plain file, which is read as it is used"));
  }
  Content collected(packed, keep && !stays, file.header.file_bytes());
  while (count > 0) {
    const Bytes read = Bytes(piece).first(count);
    digest->Update(std::as_bytes(read));
    RETURN_IF_ERROR(Annotate(collected.Add(read), file.where));
    ASSIGN_OR_RETURN(count, opened->Read(piece));
  }
  if (packed) RETURN_IF_ERROR(collected.CheckEnd(file.where, file.header));
  if (stays) {
    file.file = std::move(opened);
  } else if (keep) {
    file.bytes = collected.Take();
  }
  return file;
}

}  // namespace stagecoach
