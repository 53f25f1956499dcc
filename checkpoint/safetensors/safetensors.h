// safetensors: reader and writer. The format is in docs/formats.md; hostile files are expected.
// Errors:    DATA_LOSS with file, tensor and offset if the tensors do not tile the file exactly.
//            Limits: header <= 16 MiB, <= 100,000 tensors, rank <= 8, names <= 256 bytes, unique.
//            Nothing is allocated from an unchecked number. If the file is of another kind, the
//            error names that kind (base/files/file_kind.h).
#ifndef STAGECOACH_CHECKPOINT_SAFETENSORS_SAFETENSORS_H_
#define STAGECOACH_CHECKPOINT_SAFETENSORS_SAFETENSORS_H_

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "base/numbers/dtype.h"
#include "base/numbers/shape.h"
#include "checkpoint/files/file_system.h"

namespace stagecoach {

struct TensorEntry {
  std::string name;
  DType dtype = DType::kF32;
  Shape shape;
  int64_t begin = 0, end = 0;  // offsets into the buffer after the header; end exclusive
  int64_t bytes() const { return end - begin; }
  friend bool operator==(const TensorEntry&, const TensorEntry&) = default;
};

using Metadata = std::map<std::string, std::string>;

// A tensor to be written: the writer asks for its bytes when their turn comes.
struct TensorSource {
  std::string name;
  DType dtype = DType::kF32;
  Shape shape;
  std::function<absl::StatusOr<std::span<const std::byte>>()> bytes;
};

struct WrittenFile {
  int64_t bytes = 0;
  std::string sha256;  // of the whole file
  std::vector<TensorEntry> tensors;
  std::vector<std::string> tensor_sha256;  // same order
};

// Creates, writes, syncs and closes the file; tensors in the order given (callers sort by name).
absl::StatusOr<WrittenFile> WriteSafetensors(FileSystem& file_system, const std::string& path,
                                             std::span<const TensorSource> tensors,
                                             const Metadata& metadata);

class SafetensorsReader {
 public:
  static absl::StatusOr<SafetensorsReader> Open(ReadableFiles& file_system,
                                                const std::string& path);
  const std::vector<TensorEntry>& tensors() const { return tensors_; }  // by offset
  const TensorEntry* Find(const std::string& name) const;               // null if absent
  const Metadata& metadata() const { return metadata_; }
  int64_t file_bytes() const;
  // target.size() == tensor.bytes()
  absl::Status Read(const TensorEntry& tensor, std::span<std::byte> target);
  // The bytes of the tensor from `offset` on that fill `target`.
  absl::Status ReadPart(const TensorEntry& tensor, int64_t offset, std::span<std::byte> target);

 private:
  absl::Status ReadHeader();
  // `error`, or the file's kind if it is of another kind.
  absl::Status NamingTheKind(const absl::Status& error);

  std::string path_;
  std::unique_ptr<ReadableFile> file_;
  int64_t buffer_offset_ = 0;
  std::vector<TensorEntry> tensors_;
  std::vector<size_t> by_name_;  // indices into tensors_
  Metadata metadata_;
};

// Parses a header (without the 8 length bytes) for a buffer of the given size.
absl::Status ParseSafetensorsHeader(std::string_view header, int64_t buffer_bytes,
                                    std::vector<TensorEntry>* tensors, Metadata* metadata);

}  // namespace stagecoach

#endif  // STAGECOACH_CHECKPOINT_SAFETENSORS_SAFETENSORS_H_
