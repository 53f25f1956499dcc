#include "services/cli/trained/renamed_weights.h"

#include <algorithm>
#include <span>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/errors/status.h"
#include "checkpoint/content_digest.h"
#include "checkpoint/safetensors/safetensors.h"
#include "services/cli/output/new_file.h"

namespace stagecoach {
namespace {

// Of `name`, into `other`.
absl::Status ReadRenamed(SafetensorsReader& reader, const WeightName& name,
                         std::vector<float>* other) {
  const TensorEntry* const entry = reader.Find(name.ours);
  if (entry == nullptr) return absl::DataLossError(absl::StrCat("no tensor ", name.ours));
  if (entry->dtype != DType::kF32 || entry->shape != name.shape) {
    return absl::DataLossError(absl::StrCat("tensor ", name.ours, " is ", DTypeName(entry->dtype),
                                            " ", entry->shape.ToString(), ", the network has F32 ",
                                            name.shape.ToString()));
  }
  std::vector<float> ours(static_cast<size_t>(name.shape.elements()));
  RETURN_IF_ERROR(reader.Read(*entry, std::as_writable_bytes(std::span(ours))));
  other->resize(ours.size());
  ToOtherLayout(name, ours, *other);
  return absl::OkStatus();
}

// The digest stands before the bytes, so they are made twice.
absl::StatusOr<std::string> ContentOf(const std::vector<TensorSource>& sources) {
  std::vector<ShardTensor> content;
  for (const TensorSource& source : sources) {
    ASSIGN_OR_RETURN(const std::span<const std::byte> bytes, source.bytes());
    content.push_back({{source.name, source.dtype, source.shape}, BytesSha256(bytes)});
  }
  return ContentDigest(std::move(content));
}

}  // namespace

absl::Status WriteRenamedWeights(FileSystem& file_system, const std::string& weights_file,
                                 std::vector<WeightName> names, const std::string& target) {
  ASSIGN_OR_RETURN(SafetensorsReader reader, SafetensorsReader::Open(file_system, weights_file));
  RETURN_IF_ERROR(Annotate(HashContent(reader).status(), weights_file));
  if (reader.tensors().size() != names.size()) {
    return absl::DataLossError(absl::StrCat(weights_file, ": ", reader.tensors().size(),
                                            " tensors; the network of the job beside it has ",
                                            names.size()));
  }
  std::sort(names.begin(), names.end(),
            [](const WeightName& a, const WeightName& b) { return a.other < b.other; });
  std::vector<float> other;  // one tensor in memory at a time
  std::vector<TensorSource> sources;
  for (const WeightName& name : names) {
    sources.push_back({.name = name.other,
                       .dtype = DType::kF32,
                       .shape = name.OtherShape(),
                       .bytes = [&, name]() -> absl::StatusOr<std::span<const std::byte>> {
                         RETURN_IF_ERROR(Annotate(ReadRenamed(reader, name, &other), weights_file));
                         return std::as_bytes(std::span<const float>(other));
                       }});
  }
  ASSIGN_OR_RETURN(std::string content, ContentOf(sources));
  const Metadata metadata = {{kContentDigestKey, std::move(content)}, {"format", "pt"}};
  return WriteNewFile(
      file_system, target, "name another file with --to", [&](const std::string& unfinished) {
        return WriteSafetensors(file_system, unfinished, sources, metadata).status();
      });
}

}  // namespace stagecoach
