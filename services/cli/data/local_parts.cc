#include "services/cli/data/local_parts.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <condition_variable>
#include <cstring>
#include <map>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/errors/status.h"
#include "base/files/hash.h"
#include "base/threads/clock.h"
#include "base/utf8.h"
#include "services/common/data_sets/data_manifest.h"

namespace stagecoach {
namespace {

constexpr size_t kReadPieceBytes = size_t{1} << 20;
constexpr int kReaders = 2;
constexpr auto kBetweenLooks = std::chrono::milliseconds(100);

absl::Status ChangedWhileRead(const LocalFile& file) {
  return absl::FailedPreconditionError(
      absl::StrCat(ShownName(file.here),
                   ": was changed while it was read; run the command again when nothing "
                   "writes the file"));
}

absl::Status CannotReadPart(const LocalFile& file, int error) {
  const std::string text = absl::StrCat(ShownName(file.here), ": ", std::strerror(error));
  if (error == ENOENT) return ChangedWhileRead(file);
  if (error == EACCES || error == EPERM) return absl::PermissionDeniedError(text);
  return absl::UnavailableError(text);
}

// Where a file lies, before parts with the same bytes have become one.
struct PartPlace {
  size_t part = 0;
  int64_t offset = 0;
};

// Parts without their digests, in the order of their first use.
std::vector<LocalPart> Pack(const FileSet& set, std::vector<PartPlace>* places) {
  std::vector<LocalPart> parts;
  size_t pack = 0;
  bool packing = false;
  for (const LocalFile& file : set.files()) {
    const int64_t bytes = file.stamp.bytes;
    PartPlace& place = places->emplace_back();
    if (bytes == 0) continue;
    const bool own = bytes >= kOwnPartBytes;
    if (!own && packing && parts[pack].bytes + bytes > kMostPackBytes) packing = false;
    if (own || !packing) parts.emplace_back();
    if (!own && !packing) pack = parts.size() - 1;
    packing = packing || !own;
    place.part = own ? parts.size() - 1 : pack;
    LocalPart& part = parts[place.part];
    place.offset = part.bytes;
    part.files.push_back(&file);
    part.bytes += bytes;
  }
  return parts;
}

// Computes the digests of parts with a few threads.
class Digests {
 public:
  Digests(std::vector<LocalPart>* parts, int64_t total, DigestCache* cache)
      : parts_(*parts), total_(total), cache_(*cache) {}

  absl::Status Compute(const OnRead& on_read) {
    std::vector<std::thread> readers;
    for (int i = 0; i < kReaders; ++i) {
      readers.emplace_back([this] { Work(); });
    }
    {
      std::unique_lock<std::mutex> lock(mutex_);
      while (ended_ < kReaders) {
        changed_.wait_for(lock, kBetweenLooks);
        lock.unlock();
        if (!on_read(done_, total_)) stop_ = true;
        lock.lock();
      }
    }
    for (std::thread& reader : readers) reader.join();
    RETURN_IF_ERROR(status_);
    return on_read(done_, total_) ? absl::OkStatus() : absl::CancelledError("interrupted");
  }

 private:
  void Work() {
    std::vector<std::byte> piece(kReadPieceBytes);
    for (size_t part = next_++; part < parts_.size() && !stop_; part = next_++) {
      const absl::Status read = DigestPart(&parts_[part], piece);
      if (read.ok()) continue;
      std::lock_guard<std::mutex> lock(mutex_);
      status_.Update(read);
      stop_ = true;
    }
    std::lock_guard<std::mutex> lock(mutex_);
    ++ended_;
    changed_.notify_all();
  }

  absl::Status DigestPart(LocalPart* part, std::span<std::byte> piece) {
    const bool one_file = part->files.size() == 1 && part->bytes >= kOwnPartBytes;
    const std::optional<std::string> known =
        one_file ? cache_.Find(*part->files.front()) : std::nullopt;
    if (known.has_value()) {
      part->sha256 = *known;
      done_ += part->bytes;
      return absl::OkStatus();
    }
    const int64_t now = SystemClock::Get()->UnixNanos();
    RETURN_IF_ERROR(ReadPart(part, piece));
    if (one_file && !stop_) cache_.Keep(*part->files.front(), part->sha256, now);
    return absl::OkStatus();
  }

  absl::Status ReadPart(LocalPart* part, std::span<std::byte> piece) {
    Sha256 sha256;
    PartReader reader(*part, 0);
    for (int64_t left = part->bytes; left > 0 && !stop_;) {
      const auto now = piece.first(std::min(piece.size(), static_cast<size_t>(left)));
      RETURN_IF_ERROR(reader.Read(now));
      sha256.Update(now);
      left -= static_cast<int64_t>(now.size());
      done_ += static_cast<int64_t>(now.size());
    }
    part->sha256 = sha256.Hex();
    return absl::OkStatus();
  }

  std::vector<LocalPart>& parts_;
  const int64_t total_;
  DigestCache& cache_;
  std::atomic<size_t> next_ = 0;
  std::atomic<int64_t> done_ = 0;
  std::atomic<bool> stop_ = false;
  std::mutex mutex_;  // guards what follows
  std::condition_variable changed_;
  int ended_ = 0;
  absl::Status status_;
};

// Leaves one of parts with the same bytes. Returns the new index of each.
std::vector<size_t> Unite(std::vector<LocalPart>* parts) {
  std::vector<LocalPart> united;
  std::map<std::string, size_t> found;
  std::vector<size_t> index;
  for (LocalPart& part : *parts) {
    const auto [at, is_new] = found.emplace(part.sha256, united.size());
    if (is_new) united.push_back(std::move(part));
    index.push_back(at->second);
  }
  *parts = std::move(united);
  return index;
}

}  // namespace

absl::StatusOr<LocalParts> MakeParts(const FileSet& set, const OnRead& on_read,
                                     DigestCache* cache) {
  LocalParts made{.files = std::ssize(set.files()), .bytes = set.bytes()};
  std::vector<PartPlace> places;
  made.parts = Pack(set, &places);
  DigestCache none("");
  RETURN_IF_ERROR(
      Digests(&made.parts, made.bytes, cache != nullptr ? cache : &none).Compute(on_read));
  const std::vector<size_t> index = Unite(&made.parts);
  v1::DataManifest manifest;
  for (const LocalPart& part : made.parts) {
    v1::DataPart& entry = *manifest.add_parts();
    entry.set_sha256(part.sha256);
    entry.set_bytes(part.bytes);
  }
  for (size_t i = 0; i < places.size(); ++i) {
    const LocalFile& file = set.files()[i];
    v1::DataSetFile& entry = *manifest.add_files();
    entry.set_path(file.path);
    entry.set_bytes(file.stamp.bytes);
    if (file.stamp.bytes == 0) continue;
    entry.set_part(static_cast<int64_t>(index[places[i].part]));
    entry.set_offset(places[i].offset);
  }
  made.manifest = manifest.SerializeAsString();
  RETURN_IF_ERROR(CheckedManifest::Parse(made.manifest).status());
  made.manifest_sha256 = Sha256Hex(made.manifest);
  return made;
}

PartReader::PartReader(const LocalPart& part, int64_t offset) : part_(part) {
  while (next_ < part.files.size() && part.files[next_]->stamp.bytes <= offset) {
    offset -= part.files[next_++]->stamp.bytes;
  }
  at_ = offset;
}

absl::Status PartReader::OpenNext() {
  file_ = part_.files[next_++];
  handle_ = FileHandle(open(file_->here.c_str(), O_RDONLY | O_CLOEXEC));
  if (!handle_.open()) return CannotReadPart(*file_, errno);
  left_ = file_->stamp.bytes - at_;
  return CheckUnchanged();
}

absl::Status PartReader::CheckUnchanged() {
  struct stat info;
  if (fstat(handle_.get(), &info) != 0) return CannotReadPart(*file_, errno);
  const FileStamp now = FileStamp::Of(info);
  return now == file_->stamp ? absl::OkStatus() : ChangedWhileRead(*file_);
}

absl::Status PartReader::Read(std::span<std::byte> target) {
  while (!target.empty()) {
    if (left_ == 0) RETURN_IF_ERROR(OpenNext());
    const auto now = target.first(std::min(target.size(), static_cast<size_t>(left_)));
    const ssize_t count = pread(handle_.get(), now.data(), now.size(), at_);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return CannotReadPart(*file_, errno);
    if (count == 0) return ChangedWhileRead(*file_);
    at_ += count;
    left_ -= count;
    target = target.subspan(static_cast<size_t>(count));
    if (left_ > 0) continue;
    RETURN_IF_ERROR(CheckUnchanged());
    at_ = 0;
  }
  return absl::OkStatus();
}

}  // namespace stagecoach
