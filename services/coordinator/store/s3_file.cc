#include "services/coordinator/store/s3_file.h"

#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/errors/status.h"
#include "services/common/store/ahead_reader.h"

namespace stagecoach {
namespace {

constexpr size_t kMostNewBytes = size_t{256} << 20;  // a manifest of 100,000 tensors has 20 MB

class S3Writer final : public WritableFile {
 public:
  S3Writer(S3Client* client, std::string key) : client_(*client), key_(std::move(key)) {}

  absl::Status Append(std::span<const std::byte> bytes) override {
    RETURN_IF_ERROR(status_);
    if (complete_) return absl::FailedPreconditionError(absl::StrCat(key_, ": is complete"));
    if (bytes.size() > kMostNewBytes - content_.size()) {
      return status_ = absl::ResourceExhaustedError(
                 absl::StrCat(key_, ": is larger than ", kMostNewBytes, " bytes"));
    }
    content_.insert(content_.end(), bytes.begin(), bytes.end());
    return absl::OkStatus();
  }
  absl::Status Sync() override {
    RETURN_IF_ERROR(status_);
    if (complete_) return absl::OkStatus();
    status_ = client_.PutIfAbsent(key_, content_);
    complete_ = status_.ok();
    content_ = {};
    return status_;
  }
  absl::Status Close() override { return Sync(); }

 private:
  S3Client& client_;
  const std::string key_;
  std::vector<std::byte> content_;
  bool complete_ = false;
  absl::Status status_;  // the first failure; every later call answers it
};

}  // namespace

std::unique_ptr<ReadableFile> OpenS3File(S3Client* client, const std::string& key, int64_t size) {
  return ReadAhead(key, size, [client, key](int64_t offset, std::span<std::byte> target) {
    return client->Read(key, offset, target);
  });
}

std::unique_ptr<WritableFile> NewS3File(S3Client* client, std::string key) {
  return std::make_unique<S3Writer>(client, std::move(key));
}

}  // namespace stagecoach
