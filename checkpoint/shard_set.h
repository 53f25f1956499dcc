// ShardSet: the tensors of one checkpoint by name, whatever shards they lie in.
// Ownership: owns its readers; borrows the file system while opening.  Threads: thread-compatible.
// Errors:    DATA_LOSS with file and tensor if the files differ from the manifest. Every read
//            compares a tensor's digest before it hands out the bytes.
#ifndef STAGECOACH_CHECKPOINT_SHARD_SET_H_
#define STAGECOACH_CHECKPOINT_SHARD_SET_H_

#include <cstddef>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "base/files/hash.h"
#include "checkpoint/manifest.h"

namespace stagecoach {

class ShardSet {
 public:
  // Opens every shard and compares its size and header with the manifest. Payloads are not read.
  static absl::StatusOr<ShardSet> Open(FileSystem& file_system, const std::string& folder,
                                       const Manifest& manifest);

  std::vector<TensorEntry> Tensors(const std::string& prefix) const;  // in the byte order of names
  const TensorEntry* Find(const std::string& name) const;             // null if absent
  absl::Status Read(const std::string& name, std::span<std::byte> target);

 private:
  struct Located {
    size_t shard = 0;
    ShardTensor tensor;
  };
  std::vector<SafetensorsReader> readers_;
  std::vector<std::string> files_;
  std::map<std::string, Located> by_name_;
};

inline constexpr char kParameterPrefix[] = "model/";
// Prefix of a parameter's average; it replaces kParameterPrefix.
inline constexpr char kAveragePrefix[] = "opt/average/";

// Feeds one parameter after the other, in the byte order of names, into a weights digest.
class WeightsHash {
 public:
  void Add(const TensorEntry& tensor, std::span<const std::byte> bytes);
  std::string Finish();  // "sha256:<hex>"; once

 private:
  Sha256 digest_;
};

}  // namespace stagecoach

#endif  // STAGECOACH_CHECKPOINT_SHARD_SET_H_
