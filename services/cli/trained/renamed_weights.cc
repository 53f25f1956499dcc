#include "services/cli/trained/renamed_weights.h"

#include <map>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/errors/check.h"
#include "base/errors/status.h"
#include "base/utf8.h"
#include "checkpoint/content_digest.h"
#include "checkpoint/names.h"
#include "checkpoint/safetensors/safetensors.h"
#include "checkpoint/weight_index.h"
#include "services/cli/output/new_file.h"

namespace stagecoach {
namespace {

// A tensor of the other program, with the parts of our arrays that it consists of.
struct RenamedTensor {
  struct Part {
    const WeightName* name = nullptr;
    size_t part = 0;
  };
  std::string name;
  Shape shape;
  std::vector<Part> parts;
  int64_t bytes() const { return shape.elements() * static_cast<int64_t>(sizeof(float)); }
};

// Sorted by name. Borrows `names`.
std::vector<RenamedTensor> TensorsOf(const std::vector<WeightName>& names) {
  std::map<std::string, RenamedTensor> tensors;
  std::map<std::string, int64_t> elements;
  for (const WeightName& name : names) {
    for (size_t i = 0; i < name.parts.size(); ++i) {
      const WeightPart& part = name.parts[i];
      RenamedTensor& tensor = tensors[part.tensor];
      tensor.name = part.tensor;
      tensor.shape = part.shape;
      tensor.parts.push_back({&name, i});
      elements[part.tensor] += name.shape.elements() / name.shape[0] * part.rows;
    }
  }
  std::vector<RenamedTensor> sorted;
  for (auto& [name, tensor] : tensors) {
    CHECK_EQ(elements[name], tensor.shape.elements()) << name;  // or numbers would be made up
    sorted.push_back(std::move(tensor));
  }
  return sorted;
}

// The tensors of exported weights, one in memory at a time.
class RenamedReader {
 public:
  static absl::StatusOr<std::unique_ptr<RenamedReader>> Open(FileSystem& file_system,
                                                             const std::string& weights_file,
                                                             size_t arrays) {
    ASSIGN_OR_RETURN(SafetensorsReader reader, SafetensorsReader::Open(file_system, weights_file));
    RETURN_IF_ERROR(Annotate(CheckContent(reader), weights_file));
    if (reader.tensors().size() != arrays) {
      return absl::DataLossError(absl::StrCat(weights_file, ": ", reader.tensors().size(),
                                              " tensors; the network of the job beside it has ",
                                              arrays));
    }
    return std::unique_ptr<RenamedReader>(new RenamedReader(weights_file, std::move(reader)));
  }

  // Borrows the tensor, and this object.
  TensorSource SourceOf(const RenamedTensor& tensor) {
    return {.name = tensor.name,
            .dtype = DType::kF32,
            .shape = tensor.shape,
            .bytes = [this, &tensor]() -> absl::StatusOr<std::span<const std::byte>> {
              RETURN_IF_ERROR(Annotate(Read(tensor), weights_file_));
              return std::as_bytes(std::span<const float>(other_));
            }};
  }

 private:
  RenamedReader(std::string weights_file, SafetensorsReader reader)
      : weights_file_(std::move(weights_file)), reader_(std::move(reader)) {}

  absl::Status Read(const RenamedTensor& tensor) {
    other_.resize(static_cast<size_t>(tensor.shape.elements()));
    for (const RenamedTensor::Part& part : tensor.parts) {
      RETURN_IF_ERROR(ReadOurs(*part.name));
      ToTensor(*part.name, part.part, ours_, other_);
    }
    return absl::OkStatus();
  }

  absl::Status ReadOurs(const WeightName& name) {
    const TensorEntry* const entry = reader_.Find(name.ours);
    if (entry == nullptr) return absl::DataLossError(absl::StrCat("no tensor ", name.ours));
    if (entry->dtype != DType::kF32 || entry->shape != name.shape) {
      return absl::DataLossError(absl::StrCat("tensor ", name.ours, " is ", DTypeName(entry->dtype),
                                              " ", entry->shape.ToString(),
                                              ", the network has F32 ", name.shape.ToString()));
    }
    ours_.resize(static_cast<size_t>(name.shape.elements()));
    return reader_.Read(*entry, std::as_writable_bytes(std::span(ours_)));
  }

  const std::string weights_file_;
  SafetensorsReader reader_;
  std::vector<float> ours_, other_;
};

// The digest stands before the bytes, so they are made twice.
absl::StatusOr<std::string> ContentOf(const std::vector<TensorSource>& sources) {
  std::vector<TensorDigest> content;
  for (const TensorSource& source : sources) {
    ASSIGN_OR_RETURN(const std::span<const std::byte> bytes, source.bytes());
    content.push_back(DigestOf({source.name, source.dtype, source.shape}, BytesSha256(bytes)));
  }
  return ContentDigest(std::move(content));
}

absl::Status WriteTensors(FileSystem& file_system, const std::string& path, RenamedReader& reader,
                          std::span<const RenamedTensor> tensors) {
  std::vector<TensorSource> sources;
  for (const RenamedTensor& tensor : tensors) sources.push_back(reader.SourceOf(tensor));
  ASSIGN_OR_RETURN(std::string content, ContentOf(sources));
  const Metadata metadata = {{kContentDigestKey, std::move(content)}, {"format", "pt"}};
  return WriteSafetensors(file_system, path, sources, metadata).status();
}

// Neighbours that fit into one shard.
std::vector<std::span<const RenamedTensor>> ShardsOf(const std::vector<RenamedTensor>& tensors,
                                                     int64_t shard_bytes) {
  std::vector<std::span<const RenamedTensor>> shards;
  size_t first = 0;
  int64_t bytes = 0;
  for (size_t i = 0; i < tensors.size(); ++i) {
    if (i > first && bytes + tensors[i].bytes() > shard_bytes) {
      shards.push_back(std::span(tensors).subspan(first, i - first));
      first = i;
      bytes = 0;
    }
    bytes += tensors[i].bytes();
  }
  shards.push_back(std::span(tensors).subspan(first));
  return shards;
}

absl::Status WriteShards(FileSystem& file_system, const std::string& folder, RenamedReader& reader,
                         const std::vector<RenamedTensor>& tensors, int64_t shard_bytes) {
  const auto shards = ShardsOf(tensors, shard_bytes);
  WeightIndex index;
  for (size_t i = 0; i < shards.size(); ++i) {
    const std::string file =
        WeightShardFile(static_cast<int64_t>(i), static_cast<int64_t>(shards.size()));
    RETURN_IF_ERROR(WriteTensors(file_system, JoinPath(folder, file), reader, shards[i]));
    for (const RenamedTensor& tensor : shards[i]) {
      index.files[tensor.name] = file;
      index.total_bytes += tensor.bytes();
    }
  }
  if (shards.size() == 1) return absl::OkStatus();
  return WriteText(file_system, JoinPath(folder, kWeightIndexFile), FormatWeightIndex(index));
}

}  // namespace

absl::Status WriteRenamedWeights(FileSystem& file_system, const std::string& weights_file,
                                 const std::vector<WeightName>& names, const std::string& target) {
  ASSIGN_OR_RETURN(const std::unique_ptr<RenamedReader> reader,
                   RenamedReader::Open(file_system, weights_file, names.size()));
  const std::vector<RenamedTensor> tensors = TensorsOf(names);
  return WriteNewFile(file_system, target, "name another file with --to",
                      [&](const std::string& unfinished) {
                        return WriteTensors(file_system, unfinished, *reader, tensors);
                      });
}

absl::Status WriteRenamedFolder(FileSystem& file_system, const std::string& weights_file,
                                const std::vector<WeightName>& names, const RenamedFolder& folder) {
  ASSIGN_OR_RETURN(const std::unique_ptr<RenamedReader> reader,
                   RenamedReader::Open(file_system, weights_file, names.size()));
  const std::vector<RenamedTensor> tensors = TensorsOf(names);
  return WriteNewFolder(
      file_system, folder.target, [&](const std::string& unfinished) -> absl::Status {
        for (const FolderFile& file : folder.files) {
          RETURN_IF_ERROR(WriteText(file_system, JoinPath(unfinished, file.name), file.contents));
        }
        return WriteShards(file_system, unfinished, *reader, tensors, folder.shard_bytes);
      });
}

}  // namespace stagecoach
