#include <cmath>
#include <cstring>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/errors/status.h"
#include "checkpoint/content_digest.h"
#include "checkpoint/facts_file.h"
#include "checkpoint/names.h"
#include "checkpoint/shard_set.h"
#include "checkpoint/store/store.h"

namespace stagecoach {
namespace {

// A name that two exports at the same time do not share.
std::string TemporaryPath(FileSystem& file_system, const std::string& folder,
                          const std::string& name) {
  return JoinPath(folder, absl::StrCat(".", name, ".", file_system.Nonce(), ".tmp"));
}

// Renames what `write` made to folder/name, or removes it.
template <typename Write>
absl::Status WriteAtomically(FileSystem& file_system, const std::string& folder,
                             const std::string& name, Write write) {
  const std::string temporary = TemporaryPath(file_system, folder, name);
  absl::Status status = write(temporary);
  if (status.ok()) status = file_system.Rename(temporary, JoinPath(folder, name));
  if (status.ok()) return file_system.SyncFolder(folder);
  file_system.RemoveAll(temporary).IgnoreError();  // the first error is the one to tell
  return status;
}

absl::Status WriteText(FileSystem& file_system, const std::string& path, const std::string& text) {
  ASSIGN_OR_RETURN(std::unique_ptr<WritableFile> file, file_system.Create(path));
  RETURN_IF_ERROR(file->Append(std::as_bytes(std::span(text))));
  RETURN_IF_ERROR(file->Sync());
  return file->Close();
}

bool IsFinite(const TensorEntry& tensor, std::span<const std::byte> bytes) {
  if (tensor.dtype != DType::kF32) return true;
  bool finite = true;
  for (size_t at = 0; at + sizeof(float) <= bytes.size(); at += sizeof(float)) {
    float value = 0;
    std::memcpy(&value, &bytes[at], sizeof value);
    finite = finite && std::isfinite(value);
  }
  return finite;
}

// By name.
std::map<std::string, std::string> TensorDigests(const Manifest& manifest) {
  std::map<std::string, std::string> digests;
  for (const ShardInfo& shard : manifest.shards) {
    for (const ShardTensor& tensor : shard.tensors) digests[tensor.entry.name] = tensor.sha256;
  }
  return digests;
}

// What was trained has an average; anything else stands for itself.
std::string AveragedName(const ShardSet& shards, const std::string& parameter) {
  const std::string name =
      absl::StrCat(kAveragePrefix, parameter.substr(std::string_view(kParameterPrefix).size()));
  return shards.Find(name) == nullptr ? parameter : name;
}

}  // namespace

absl::StatusOr<std::string> ExportWeights(FileSystem& file_system, const CheckpointRef& ref,
                                          const Manifest& manifest, const std::string& folder,
                                          const std::string& config_json, bool average,
                                          bool refuse_not_finite) {
  ASSIGN_OR_RETURN(ShardSet shards, ShardSet::Open(file_system, ref.folder, manifest));
  if (average && shards.Tensors(kAveragePrefix).empty()) {
    return absl::FailedPreconditionError(absl::StrCat("checkpoint ", ref.folder,
                                                      " has no averages of the weights; jobs with "
                                                      "training.average keep them"));
  }
  RETURN_IF_ERROR(file_system.MakeFolders(folder));
  // One tensor in memory at a time; WriteSafetensors asks for them in this order, once each.
  WeightsHash hash;
  std::vector<std::byte> buffer;
  std::vector<TensorSource> sources;
  std::vector<TensorDigest> content;
  const std::map<std::string, std::string> digests = TensorDigests(manifest);
  for (const TensorEntry& tensor : shards.Tensors(kParameterPrefix)) {
    const std::string from = average ? AveragedName(shards, tensor.name) : tensor.name;
    content.push_back(DigestOf(tensor, digests.at(from)));
    sources.push_back({.name = tensor.name,
                       .dtype = tensor.dtype,
                       .shape = tensor.shape,
                       .bytes = [&, tensor, from]() -> absl::StatusOr<std::span<const std::byte>> {
                         buffer.resize(static_cast<size_t>(tensor.bytes()));
                         RETURN_IF_ERROR(shards.Read(from, buffer));
                         if (refuse_not_finite && !IsFinite(tensor, buffer)) {
                           return absl::FailedPreconditionError(absl::StrCat(
                               "tensor ", tensor.name, " has values that are not finite"));
                         }
                         hash.Add(tensor, buffer);
                         return std::span<const std::byte>(buffer);
                       }});
  }
  // The configuration first: whoever sees the weights finds it beside them.
  if (!manifest.facts.empty()) {
    RETURN_IF_ERROR(
        WriteAtomically(file_system, folder, kExportFactsFile, [&](const std::string& path) {
          return WriteText(file_system, path, FormatFacts(manifest.facts));
        }));
  } else if (const std::string facts = JoinPath(folder, kExportFactsFile);
             file_system.Exists(facts)) {
    RETURN_IF_ERROR(file_system.RemoveAll(facts));  // of an earlier export
  }
  RETURN_IF_ERROR(WriteAtomically(
      file_system, folder, kExportSpecFile,
      [&](const std::string& path) { return WriteText(file_system, path, config_json); }));
  // "pt" is what readers in the field expect to find: row-major, linear weights [out, in].
  Metadata metadata = {{kContentDigestKey, ContentDigest(std::move(content))}, {"format", "pt"}};
  if (!manifest.base_sha256.empty()) metadata[kBaseDigestKey] = manifest.base_sha256;
  RETURN_IF_ERROR(
      WriteAtomically(file_system, folder, kExportWeightsFile, [&](const std::string& path) {
        return WriteSafetensors(file_system, path, sources, metadata).status();
      }));
  return hash.Finish();
}

}  // namespace stagecoach
