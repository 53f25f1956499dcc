#include "stage/data/formats/data_file.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <system_error>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/errors/status.h"
#include "base/files/file_kind.h"
#include "base/files/hash.h"
#include "base/threads/progress.h"
#include "base/utf8.h"

namespace stagecoach {
namespace {

int64_t ChangedNanos(const struct stat& information) {
  return int64_t{information.st_mtim.tv_sec} * 1'000'000'000 + information.st_mtim.tv_nsec;
}

// Of a data set: the user's file is as it was.
constexpr char kCacheWasCut[] =
    "another program cut its file in the stage's --cache-dir; submit the job again";

std::string WhereText(const std::string& field, const std::string& path) {
  return absl::StrCat(field, " = \"", ShownName(path), "\"");
}

}  // namespace

OpenedFile::OpenedFile(std::string field, std::string path, DataRoots::Opened opened)
    : field_(std::move(field)),
      path_(std::move(path)),
      opened_(std::move(opened)),
      size_(opened_.bytes) {}

std::string OpenedFile::Where() const { return WhereText(field_, path_); }

std::string OpenedFile::name() const { return ShownName(path_.substr(path_.rfind('/') + 1)); }

absl::Status OpenedFile::Failed(int error) const {
  return absl::UnavailableError(
      absl::StrCat(Where(), ": ", std::generic_category().message(error)));
}

absl::StatusOr<std::unique_ptr<OpenedFile>> OpenedFile::Open(const DataRoots& roots,
                                                             const std::string& field,
                                                             const std::string& path) {
  return OpenAs(roots, field, path, path);
}

absl::StatusOr<std::unique_ptr<OpenedFile>> OpenedFile::OpenAs(const DataRoots& roots,
                                                               const std::string& field,
                                                               const std::string& path,
                                                               const std::string& real) {
  ASSIGN_OR_RETURN(DataRoots::Opened opened,
                   Annotate(roots.OpenFile(real), WhereText(field, path)));
  std::unique_ptr<OpenedFile> file(new OpenedFile(field, path, std::move(opened)));
  struct stat information;
  if (fstat(file->opened_.descriptor.get(), &information) != 0) return file->Failed(errno);
  file->changed_nanos_ = ChangedNanos(information);
  return file;
}

absl::StatusOr<std::string> OpenedFile::Digest() {
  if (!opened_.sha256.empty()) {
    read_ = size_;
    return opened_.sha256;
  }
  Sha256 digest;
  std::vector<uint8_t> piece(kProgressPieceBytes);
  while (left() > 0) {
    ASSIGN_OR_RETURN(const size_t count, Read(piece));
    digest.Update(std::as_bytes(std::span(piece).first(count)));
  }
  return digest.Hex();
}

std::string OpenedFile::CacheKey(const std::string& digest) const {
  return opened_.sha256_of.empty() ? digest
                                   : Sha256Hex(absl::StrCat(digest, "\n", opened_.sha256_of));
}

absl::Status OpenedFile::Fill(int64_t offset, std::span<uint8_t> into, const char* shorter) const {
  if (opened_.ranges != nullptr) {
    const auto wanted = static_cast<int64_t>(into.size());
    if (offset > size_ || wanted > size_ - offset) {
      return absl::DataLossError(absl::StrCat(Where(), ": ends at byte ", size_));
    }
    RETURN_IF_ERROR(Annotate(opened_.ranges->Need(offset, wanted), Where()));
  }
  offset += opened_.begin;
  while (!into.empty()) {
    const ssize_t got = pread(opened_.descriptor.get(), into.data(), into.size(), offset);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return Failed(errno);
    if (got == 0 && opened_.ranges != nullptr) shorter = kCacheWasCut;
    if (got == 0) return absl::DataLossError(absl::StrCat(Where(), ": ", shorter));
    into = into.subspan(static_cast<size_t>(got));
    offset += got;
  }
  return absl::OkStatus();
}

absl::Status OpenedFile::ReadAt(int64_t offset, std::span<uint8_t> into) const {
  return Fill(offset, into, "became shorter");
}

std::string OpenedFile::OtherKind(absl::string_view wanted) const {
  std::string head(std::min(static_cast<size_t>(size_), kFileKindBytes), '\0');
  const std::span<uint8_t> bytes(reinterpret_cast<uint8_t*>(head.data()), head.size());
  return ReadAt(0, bytes).ok() ? OtherKindText(head, wanted) : "";
}

absl::Status OpenedFile::CheckUnchanged() const {
  if (opened_.ranges != nullptr) return absl::OkStatus();  // nobody writes to a data set
  struct stat information;
  if (fstat(opened_.descriptor.get(), &information) != 0) return Failed(errno);
  if (information.st_size == size_ && ChangedNanos(information) == changed_nanos_) {
    return absl::OkStatus();
  }
  return absl::FailedPreconditionError(absl::StrCat(
      Where(), ": was written to while the job reads it; put what is new into another file"));
}

absl::StatusOr<size_t> OpenedFile::Read(std::span<uint8_t> into) {
  into = into.first(std::min(into.size(), static_cast<size_t>(left())));
  for (size_t filled = 0; filled < into.size();) {
    const auto piece = into.subspan(filled, std::min(into.size() - filled, kProgressPieceBytes));
    RETURN_IF_ERROR(
        Fill(read_ + static_cast<int64_t>(filled), piece, "became shorter while being read"));
    filled += piece.size();
    TickProgress();
  }
  read_ += static_cast<int64_t>(into.size());
  return into.size();
}

}  // namespace stagecoach
