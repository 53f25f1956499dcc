#include "services/common/data_sets/part_file.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/errors/status.h"
#include "base/files/hash.h"
#include "base/threads/clock.h"
#include "checkpoint/files/file_system.h"
#include "checkpoint/names.h"

namespace stagecoach {
namespace {

static_assert(std::endian::native == std::endian::little, "the index is stored as memory has it");

constexpr uint32_t kPresentMark = 0x31425343;  // "CSB1"
constexpr uint32_t kCheckedMark = 0x31445343;  // "CSD1"
// An eviction holds the lock for two removals.
constexpr int64_t kLockNanos = 10'000'000'000;

struct IndexEntry {
  uint32_t mark = 0, crc = 0;
};
static_assert(sizeof(IndexEntry) == 8);

bool ReadFully(int descriptor, std::span<std::byte> into, int64_t offset) {
  while (!into.empty()) {
    const ssize_t got = pread(descriptor, into.data(), into.size(), offset);
    if (got < 0 && errno == EINTR) continue;
    if (got == 0) errno = EIO;
    if (got <= 0) return false;
    into = into.subspan(static_cast<size_t>(got));
    offset += got;
  }
  return true;
}

bool WriteFully(int descriptor, std::span<const std::byte> bytes, int64_t offset) {
  while (!bytes.empty()) {
    const ssize_t put = pwrite(descriptor, bytes.data(), bytes.size(), offset);
    if (put < 0 && errno == EINTR) continue;
    if (put < 0) return false;
    bytes = bytes.subspan(static_cast<size_t>(put));
    offset += put;
  }
  return true;
}

IndexEntry EntryAt(int index, int64_t i) {
  IndexEntry entry;
  const auto bytes = std::as_writable_bytes(std::span(&entry, 1));
  return ReadFully(index, bytes, i * int64_t{sizeof(entry)}) ? entry : IndexEntry();
}

// The file is the one that has this name now.
bool IsStill(int descriptor, const std::string& path) {
  struct stat open_one, named;
  return fstat(descriptor, &open_one) == 0 && stat(path.c_str(), &named) == 0 &&
         open_one.st_dev == named.st_dev && open_one.st_ino == named.st_ino;
}

}  // namespace

std::string PartKey::FileName() const {
  // Anybody can upload a part with the digest that stands for an object: it is another file.
  return absl::StrCat(sha256, ".", bytes, linked ? ".linked" : "", set.empty() ? "" : ".", set);
}

absl::Status PartFile::Failed(int error, const std::string& what) const {
  const absl::Status plain =
      absl::ErrnoToStatus(error, absl::StrCat("--cache-dir: ", what, " ", path_));
  // A link in the place of a file stays one: trying again helps nobody.
  const auto code = error == ELOOP ? absl::StatusCode::kFailedPrecondition : plain.code();
  return absl::Status(code, absl::StrCat(plain.message(), kCacheRemedy));
}

absl::StatusOr<std::unique_ptr<PartFile>> PartFile::Open(const std::string& folder,
                                                         const PartKey& key) {
  std::unique_ptr<PartFile> part(new PartFile(absl::StrCat(folder, "/", key.FileName()), key));
  RETURN_IF_ERROR(part->OpenFiles());
  return part;
}

absl::Status PartFile::OpenFiles() {
  const std::string index = path_ + kPartIndexEnding;
  const int64_t end = SystemClock::Get()->MonotonicNanos() + kLockNanos;
  bool made_folder = false;
  while (true) {
    index_ = FileHandle(open(index.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600));
    // Anybody may empty the cache at any time, its folders too.
    if (!index_.open() && errno == ENOENT && !std::exchange(made_folder, true)) {
      RETURN_IF_ERROR(PosixFileSystem()->MakeFolders(FolderOf(path_)));
      continue;
    }
    if (!index_.open()) return Failed(errno, "open the index of");
    const bool locked = flock(index_.get(), LOCK_SH | LOCK_NB) == 0;
    if (!locked && errno != EWOULDBLOCK && errno != EINTR)
      return Failed(errno, "lock the index of");
    // Evicted between the two calls: the next try makes it anew.
    if (locked && IsStill(index_.get(), index)) break;
    if (SystemClock::Get()->MonotonicNanos() > end) return Failed(ETIMEDOUT, "lock the index of");
    std::this_thread::yield();
  }
  data_ = FileHandle(open(path_.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (!data_.open()) return Failed(errno, "open");
  struct stat information;
  if (fstat(data_.get(), &information) != 0) return Failed(errno, "look at");
  if (information.st_size != key_.bytes && ftruncate(data_.get(), key_.bytes) != 0) {
    return Failed(errno, "make");
  }
  Touch();
  return absl::OkStatus();
}

int64_t PartFile::BlockBytes(int64_t block) const {
  return std::min(kCacheBlockBytes, key_.bytes - block * kCacheBlockBytes);
}

bool PartFile::Has(int64_t block) const {
  return EntryAt(index_.get(), block).mark == kPresentMark;
}

bool PartFile::IsGood(int64_t block) const {
  const IndexEntry entry = EntryAt(index_.get(), block);
  if (entry.mark != kPresentMark) return false;
  std::vector<std::byte> bytes(static_cast<size_t>(BlockBytes(block)));
  return ReadFully(data_.get(), bytes, block * kCacheBlockBytes) && Crc32c(bytes) == entry.crc;
}

absl::Status PartFile::Read(int64_t offset, std::span<std::byte> into) const {
  return ReadFully(data_.get(), into, offset) ? absl::OkStatus() : Failed(errno, "read");
}

absl::Status PartFile::Store(int64_t first, std::span<const std::byte> bytes) {
  std::vector<IndexEntry> entries;
  for (auto rest = bytes; !rest.empty();) {
    const auto block = rest.first(std::min(rest.size(), static_cast<size_t>(kCacheBlockBytes)));
    entries.push_back({kPresentMark, Crc32c(block)});
    rest = rest.subspan(block.size());
  }
  if (checked()) {
    const IndexEntry none;
    const auto raw = std::as_bytes(std::span(&none, 1));
    if (!WriteFully(index_.get(), raw, blocks() * int64_t{sizeof(none)})) {
      return Failed(errno, "write the index of");
    }
  }
  if (!WriteFully(data_.get(), bytes, first * kCacheBlockBytes)) return Failed(errno, "write");
  // The index comes last: a block that it names is there.
  if (!WriteFully(index_.get(), std::as_bytes(std::span(entries)),
                  first * int64_t{sizeof(IndexEntry)})) {
    return Failed(errno, "write the index of");
  }
  return absl::OkStatus();
}

bool PartFile::checked() const { return EntryAt(index_.get(), blocks()).mark == kCheckedMark; }

// If it cannot be written, the part is checked again another time.
void PartFile::SetChecked() {
  const IndexEntry entry{kCheckedMark, 0};
  static_cast<void>(WriteFully(index_.get(), std::as_bytes(std::span(&entry, 1)),
                               blocks() * int64_t{sizeof(entry)}));
}

void PartFile::Touch() { static_cast<void>(futimens(index_.get(), nullptr)); }

void PartFile::Drop() const {
  const std::string index = path_ + kPartIndexEnding;
  if (!IsStill(index_.get(), index)) return;  // dropped by another process, and perhaps made anew
  // A process that opens it in between makes a new index, and finds by it that the data is away.
  unlink(index.c_str());
  unlink(path_.c_str());
}

absl::StatusOr<FileHandle> PartFile::Descriptor() const {
  FileHandle copy(fcntl(data_.get(), F_DUPFD_CLOEXEC, 0));
  if (!copy.open()) return Failed(errno, "open");
  return copy;
}

bool EvictPart(const std::string& folder, const std::string& file_name) {
  const std::string path = absl::StrCat(folder, "/", file_name);
  const std::string index = path + kPartIndexEnding;
  const FileHandle lock(open(index.c_str(), O_RDWR | O_CLOEXEC | O_NOFOLLOW));
  if (!lock.open() || flock(lock.get(), LOCK_EX | LOCK_NB) != 0) return false;
  if (!IsStill(lock.get(), index)) return false;
  // The index goes last: a part that is made meanwhile waits for its lock.
  if (unlink(path.c_str()) != 0 && errno != ENOENT) return false;
  return unlink(index.c_str()) == 0;
}

}  // namespace stagecoach
