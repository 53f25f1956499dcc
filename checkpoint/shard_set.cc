#include "checkpoint/shard_set.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "base/errors/check.h"
#include "base/errors/status.h"
#include "checkpoint/names.h"

namespace stagecoach {
namespace {

absl::Status CompareHeader(const SafetensorsReader& reader, const ShardInfo& shard) {
  if (reader.tensors().size() != shard.tensors.size()) {
    return absl::DataLossError(absl::StrCat("shard ", shard.file, ": holds ",
                                            reader.tensors().size(), " tensors, the manifest says ",
                                            shard.tensors.size()));
  }
  for (const ShardTensor& tensor : shard.tensors) {
    const TensorEntry* found = reader.Find(tensor.entry.name);
    if (found == nullptr || !(*found == tensor.entry)) {
      return absl::DataLossError(absl::StrCat("shard ", shard.file, ": tensor ", tensor.entry.name,
                                              " is not as the manifest says"));
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<ShardSet> ShardSet::Open(FileSystem& file_system, const std::string& folder,
                                        const Manifest& manifest) {
  ShardSet set;
  for (const ShardInfo& shard : manifest.shards) {
    absl::Status legal = CheckShardFile(shard.file);
    if (!legal.ok()) return absl::DataLossError(legal.message());
    ASSIGN_OR_RETURN(SafetensorsReader reader,
                     SafetensorsReader::Open(file_system, JoinPath(folder, shard.file)));
    RETURN_IF_ERROR(CompareHeader(reader, shard));
    for (const ShardTensor& tensor : shard.tensors) {
      if (!set.by_name_.try_emplace(tensor.entry.name, Located{set.readers_.size(), tensor})
               .second) {
        return absl::DataLossError(absl::StrCat("shard ", shard.file, ": tensor ",
                                                tensor.entry.name, " is in two shards"));
      }
    }
    set.readers_.push_back(std::move(reader));
    set.files_.push_back(shard.file);
  }
  return set;
}

std::vector<TensorEntry> ShardSet::Tensors(const std::string& prefix) const {
  std::vector<TensorEntry> tensors;
  for (auto at = by_name_.lower_bound(prefix); at != by_name_.end(); ++at) {
    if (!at->first.starts_with(prefix)) break;
    tensors.push_back(at->second.tensor.entry);
  }
  return tensors;
}

const TensorEntry* ShardSet::Find(const std::string& name) const {
  const auto at = by_name_.find(name);
  return at == by_name_.end() ? nullptr : &at->second.tensor.entry;
}

absl::Status ShardSet::Read(const std::string& name, std::span<std::byte> target) {
  const auto at = by_name_.find(name);
  if (at == by_name_.end()) {
    return absl::NotFoundError(absl::StrCat("no shard holds tensor ", name));
  }
  const Located& located = at->second;
  RETURN_IF_ERROR(readers_[located.shard].Read(located.tensor.entry, target));
  Sha256 digest;
  digest.Update(target);
  if (digest.Hex() != located.tensor.sha256) {
    return absl::DataLossError(absl::StrCat("shard ", files_[located.shard], ": tensor ", name,
                                            " does not match its SHA-256"));
  }
  return absl::OkStatus();
}

void WeightsHash::Add(const TensorEntry& tensor, std::span<const std::byte> bytes) {
  std::string head = tensor.name;
  head.push_back('\0');
  head += DTypeName(tensor.dtype);
  head.push_back('\0');
  head += tensor.shape.ToString();
  head.push_back('\0');
  digest_.Update(head);
  digest_.Update(bytes);
}

std::string WeightsHash::Finish() { return absl::StrCat("sha256:", digest_.Hex()); }

absl::StatusOr<std::string> WeightsDigest(FileSystem& file_system, const std::string& folder,
                                          const Manifest& manifest) {
  ASSIGN_OR_RETURN(ShardSet shards, ShardSet::Open(file_system, folder, manifest));
  WeightsHash hash;
  std::vector<std::byte> buffer;
  for (const TensorEntry& tensor : shards.Tensors(kParameterPrefix)) {
    buffer.resize(static_cast<size_t>(tensor.bytes()));
    RETURN_IF_ERROR(shards.Read(tensor.name, buffer));
    hash.Add(tensor, buffer);
  }
  return hash.Finish();
}

}  // namespace stagecoach
