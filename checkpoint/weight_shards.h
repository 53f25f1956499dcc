// WeightShards: the tensors of one safetensors file, or of a folder's shards. An index names the
// shard of each tensor (checkpoint/weight_index.h); files' own names mean nothing.
// Ownership: owns its readers, one open file a shard; borrows the ReadableFiles.
// Threads:   thread-compatible.
// Errors:    DATA_LOSS naming file, tensor and remedy: index and shards disagree, or a file is none.
//            FAILED_PRECONDITION: a file changed meanwhile. Others are the file system's.
#ifndef STAGECOACH_CHECKPOINT_WEIGHT_SHARDS_H_
#define STAGECOACH_CHECKPOINT_WEIGHT_SHARDS_H_

#include <cstddef>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "checkpoint/content_digest.h"
#include "checkpoint/safetensors/safetensors.h"
#include "checkpoint/weight_index.h"

namespace stagecoach {

class WeightShards {
 public:
  static absl::StatusOr<WeightShards> OpenFile(ReadableFiles& files, const std::string& path);
  // `index_file`: path of the index. The shards lie beside it.
  static absl::StatusOr<WeightShards> OpenIndex(ReadableFiles& files,
                                                const std::string& index_file);

  const std::vector<TensorEntry>& tensors() const { return tensors_; }  // shard after shard
  const TensorEntry* Find(const std::string& name) const;               // null if absent
  int64_t file_bytes() const;                                           // of all shards
  // Of names, types and shapes of all tensors, whatever their order and shards.
  std::string header_sha256() const;
  // Digest of the content that a file alone names (kContentDigestKey); empty: none.
  std::string named_sha256() const { return Named(kContentDigestKey); }
  bool are_adapters() const { return !Named(kBaseDigestKey).empty(); }  // an export's
  // Reads a tensor, with ticks of progress, and returns its digest. target.size() == tensor.bytes()
  absl::StatusOr<std::string> Read(const TensorEntry& tensor, std::span<std::byte> target);
  // Compares index and headers with those that were opened.
  absl::Status CheckUnchanged() const;

 private:
  struct Shard {
    std::string file, path;
    SafetensorsReader reader;
  };

  explicit WeightShards(ReadableFiles& files) : files_(&files) {}
  std::string Named(const char* key) const;
  absl::Status Add(const std::string& file, const std::string& path);
  absl::Status OpenShards(const WeightIndex& index);
  // Checks that each shard has what the index says, and nothing else.
  absl::Status CheckTensors(const WeightIndex& index) const;

  ReadableFiles* files_;
  std::string index_file_, index_text_;  // empty: one file
  std::vector<Shard> shards_;
  std::vector<TensorEntry> tensors_;
  std::vector<size_t> shard_of_;           // of each tensor
  std::map<std::string, size_t> by_name_;  // places in tensors_
};

}  // namespace stagecoach

#endif  // STAGECOACH_CHECKPOINT_WEIGHT_SHARDS_H_
