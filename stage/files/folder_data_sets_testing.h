// FolderDataSets: one data set, whose files are those of a folder; for tests of readers. A file's
// bytes come into its descriptor only when they are asked for, behind others. So a reader that does
// not ask, or forgets where the file begins, reads something else.
// Threads: thread-safe.
#ifndef STAGECOACH_STAGE_FILES_FOLDER_DATA_SETS_TESTING_H_
#define STAGECOACH_STAGE_FILES_FOLDER_DATA_SETS_TESTING_H_

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <filesystem>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "base/errors/check.h"
#include "base/files/hash.h"
#include "base/testing/file_text.h"
#include "stage/files/data_sets.h"

namespace stagecoach {

class FolderDataSets final : public DataSets {
 public:
  static constexpr int64_t kBegin = 12345;  // of every file

  explicit FolderDataSets(std::string folder) : folder_(std::move(folder)) {}

  static std::string Id() { return std::string(64, 'a'); }
  static std::string Path(const std::string& name) {
    return DataSetPath{.set = Id(), .path = name}.Text();
  }
  // Bytes that were asked for, by path; a file that was opened and not read has 0.
  std::map<std::string, int64_t> asked() const {
    std::lock_guard<std::mutex> lock(mutex_);
    return asked_;
  }
  void ForgetAsked() {
    std::lock_guard<std::mutex> lock(mutex_);
    asked_.clear();
  }
  void set_knows_digests(bool knows) { knows_digests_ = knows; }
  void Fail(absl::Status need) {
    std::lock_guard<std::mutex> lock(mutex_);
    need_ = std::move(need);
  }

  absl::StatusOr<File> Open(const DataSetPath& path, Reading) override {
    const std::string place = PlaceOf(path);
    if (!std::filesystem::is_regular_file(place)) return absl::NotFoundError("is not in the set");
    auto ranges = std::make_shared<Ranges>(this, path.path, FileText(place));
    File file{.descriptor = FileHandle(dup(ranges->descriptor())), .begin = kBegin};
    file.bytes = static_cast<int64_t>(ranges->text().size());
    if (knows_digests_) file.sha256 = Sha256Hex(ranges->text());
    file.ranges = std::move(ranges);
    Note(path.path, 0).IgnoreError();
    return file;
  }
  absl::StatusOr<std::vector<Entry>> List(const DataSetPath& folder) override {
    const std::string place = PlaceOf(folder);
    if (!std::filesystem::is_directory(place)) return absl::NotFoundError("is not in the set");
    std::vector<Entry> entries;
    for (const auto& entry : std::filesystem::directory_iterator(place)) {
      const bool is_folder = entry.is_directory();
      entries.push_back({entry.path().filename().string(), is_folder,
                         is_folder ? 0 : static_cast<int64_t>(entry.file_size())});
    }
    std::sort(entries.begin(), entries.end(),
              [](const Entry& a, const Entry& b) { return a.name < b.name; });
    return entries;
  }
  absl::Status Look(const DataSetPath& path) override {
    if (std::filesystem::exists(PlaceOf(path))) return absl::OkStatus();
    return absl::NotFoundError("is not in the set");
  }

 private:
  class Ranges final : public FileRanges {
   public:
    Ranges(FolderDataSets* sets, std::string path, std::string text)
        : sets_(*sets),
          path_(std::move(path)),
          text_(std::move(text)),
          descriptor_(memfd_create("data set", MFD_CLOEXEC)) {
      const std::string before(kBegin, 'x'), others(text_.size(), '\xee');
      CHECK(descriptor_.open());
      Put(before, 0);
      Put(others, kBegin);
      Put(before, kBegin + static_cast<int64_t>(text_.size()));
    }
    int descriptor() const { return descriptor_.get(); }
    const std::string& text() const { return text_; }
    absl::Status Need(int64_t offset, int64_t bytes) override {
      CHECK(offset >= 0 && bytes >= 0 && offset + bytes <= std::ssize(text_)) << path_;
      if (const absl::Status noted = sets_.Note(path_, bytes); !noted.ok()) return noted;
      Put(text_.substr(static_cast<size_t>(offset), static_cast<size_t>(bytes)), kBegin + offset);
      return absl::OkStatus();
    }

   private:
    void Put(const std::string& bytes, int64_t offset) const {
      CHECK(pwrite(descriptor_.get(), bytes.data(), bytes.size(), offset) == std::ssize(bytes));
    }
    FolderDataSets& sets_;
    const std::string path_, text_;
    const FileHandle descriptor_;
  };

  std::string PlaceOf(const DataSetPath& path) const {
    return path.path.empty() ? folder_ : folder_ + "/" + path.path;
  }
  absl::Status Note(const std::string& path, int64_t bytes) {
    std::lock_guard<std::mutex> lock(mutex_);
    asked_[path] += bytes;
    return bytes > 0 ? need_ : absl::OkStatus();
  }

  const std::string folder_;
  std::atomic<bool> knows_digests_{true};
  mutable std::mutex mutex_;  // guards what follows
  std::map<std::string, int64_t> asked_;
  absl::Status need_;
};

}  // namespace stagecoach

#endif  // STAGECOACH_STAGE_FILES_FOLDER_DATA_SETS_TESTING_H_
