#include "checkpoint/weight_shards.h"

#include <set>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/errors/status.h"
#include "base/utf8.h"
#include "checkpoint/names.h"
#include "checkpoint/safetensors/safetensors_header.h"

namespace stagecoach {
namespace {

// Each shard is an open file.
constexpr size_t kMostShards = 512;

constexpr char kAgain[] = "download or copy the whole folder again";

absl::StatusOr<std::string> ReadIndex(ReadableFiles& files, const std::string& path) {
  ASSIGN_OR_RETURN(const std::unique_ptr<ReadableFile> file, files.Open(path));
  if (file->size() > kMaxWeightIndexBytes) {
    return absl::DataLossError(absl::StrCat(file->size(), " bytes are over 16 MiB"));
  }
  std::string text(static_cast<size_t>(file->size()), '\0');
  RETURN_IF_ERROR(file->Read(0, std::as_writable_bytes(std::span(text))));
  return text;
}

absl::Status Changed(const std::string& file) {
  return absl::FailedPreconditionError(
      absl::StrCat(file, " changed while it was read; begin again when nothing writes there"));
}

}  // namespace

absl::Status WeightShards::Add(const std::string& file, const std::string& path) {
  ASSIGN_OR_RETURN(SafetensorsReader reader, SafetensorsReader::Open(*files_, path));
  if (tensors_.size() + reader.tensors().size() > kMaxSafetensorsTensors) {
    return absl::DataLossError(absl::StrCat("the shards up to ", file, " have more than ",
                                            kMaxSafetensorsTensors, " tensors"));
  }
  for (const TensorEntry& entry : reader.tensors()) {
    tensors_.push_back(entry);
    shard_of_.push_back(shards_.size());
  }
  shards_.push_back({file, path, std::move(reader)});
  return absl::OkStatus();
}

absl::StatusOr<WeightShards> WeightShards::OpenFile(ReadableFiles& files, const std::string& path) {
  WeightShards opened(files);
  RETURN_IF_ERROR(opened.Add(NameOf(path), path));
  for (size_t i = 0; i < opened.tensors_.size(); ++i) opened.by_name_[opened.tensors_[i].name] = i;
  return opened;
}

absl::StatusOr<WeightShards> WeightShards::OpenIndex(ReadableFiles& files,
                                                     const std::string& index_file) {
  WeightShards opened(files);
  opened.index_file_ = index_file;
  ASSIGN_OR_RETURN(opened.index_text_, Annotate(ReadIndex(files, index_file), NameOf(index_file)));
  absl::StatusOr<WeightIndex> index = ParseWeightIndex(opened.index_text_);
  if (!index.ok()) {
    return Annotate(absl::DataLossError(absl::StrCat(index.status().message(), "; ", kAgain)),
                    NameOf(index_file));
  }
  RETURN_IF_ERROR(opened.OpenShards(*index));
  for (size_t i = 0; i < opened.tensors_.size(); ++i) opened.by_name_[opened.tensors_[i].name] = i;
  RETURN_IF_ERROR(opened.CheckTensors(*index));
  return opened;
}

absl::Status WeightShards::OpenShards(const WeightIndex& index) {
  std::set<std::string> names;
  for (const auto& [tensor, file] : index.files) names.insert(file);
  if (names.size() > kMostShards) {
    return absl::DataLossError(absl::StrCat(NameOf(index_file_), " names ", names.size(),
                                            " files; at most ", kMostShards,
                                            ": save with larger shards"));
  }
  for (const std::string& file : names) {
    const std::string path = JoinPath(FolderOf(index_file_), file);
    const absl::Status status = Add(file, path);
    if (absl::IsNotFound(status)) {
      return absl::DataLossError(
          absl::StrCat(NameOf(index_file_), " names ", file, ", which is not there; ", kAgain));
    }
    if (absl::IsDataLoss(status) && !absl::StrContains(status.message(), "; ")) {
      return absl::DataLossError(absl::StrCat(status.message(), "; ", kAgain));
    }
    RETURN_IF_ERROR(status);
  }
  return absl::OkStatus();
}

absl::Status WeightShards::CheckTensors(const WeightIndex& index) const {
  std::map<std::string, std::string> first;  // shard of each tensor
  for (size_t i = 0; i < tensors_.size(); ++i) {
    const std::string &name = tensors_[i].name, &file = shards_[shard_of_[i]].file;
    const auto [other, added] = first.insert({name, file});
    if (!added) {
      return absl::DataLossError(absl::StrCat("tensor ", ShownName(name), " is in two shards, ",
                                              other->second, " and ", file, "; ", kAgain));
    }
    const auto named = index.files.find(name);
    if (named != index.files.end() && named->second != file) {
      return absl::DataLossError(absl::StrCat("tensor ", ShownName(name), " is in ", file,
                                              ", and by the index in ", named->second, "; ",
                                              kAgain));
    }
    if (named == index.files.end()) {
      return absl::DataLossError(absl::StrCat("tensor ", ShownName(name), " is in ", file,
                                              ", and the index does not name it; ", kAgain));
    }
  }
  for (const auto& [name, file] : index.files) {
    if (first.contains(name)) continue;
    return absl::DataLossError(absl::StrCat(NameOf(index_file_), " has tensor ", ShownName(name),
                                            " in ", file, ", which lacks it; ", kAgain));
  }
  return absl::OkStatus();
}

const TensorEntry* WeightShards::Find(const std::string& name) const {
  const auto at = by_name_.find(name);
  return at == by_name_.end() ? nullptr : &tensors_[at->second];
}

int64_t WeightShards::file_bytes() const {
  int64_t bytes = 0;
  for (const Shard& shard : shards_) bytes += shard.reader.file_bytes();
  return bytes;
}

std::string WeightShards::header_sha256() const {
  std::vector<TensorDigest> header;
  for (const TensorEntry& tensor : tensors_) header.push_back(DigestOf(tensor, ""));
  return ContentDigest(std::move(header));
}

std::string WeightShards::Named(const char* key) const {
  if (!index_file_.empty()) return "";
  const Metadata& metadata = shards_.front().reader.metadata();
  const auto named = metadata.find(key);
  return named == metadata.end() ? "" : named->second;
}

absl::StatusOr<std::string> WeightShards::Read(const TensorEntry& tensor,
                                               std::span<std::byte> target) {
  const auto place = static_cast<size_t>(&tensor - tensors_.data());
  Shard& shard = shards_[shard_of_[place]];
  absl::StatusOr<std::string> digest = ReadHashed(shard.reader, tensor, target);
  return digest.ok() || index_file_.empty() ? digest : Annotate(digest.status(), shard.file);
}

// Shards that are replaced one by one fit together in none of their states between.
absl::Status WeightShards::CheckUnchanged() const {
  if (!index_file_.empty()) {
    const absl::StatusOr<std::string> text = ReadIndex(*files_, index_file_);
    if (absl::IsNotFound(text.status())) return Changed(NameOf(index_file_));
    RETURN_IF_ERROR(text.status());
    if (*text != index_text_) return Changed(NameOf(index_file_));
  }
  for (const Shard& shard : shards_) {
    const absl::StatusOr<SafetensorsReader> now = SafetensorsReader::Open(*files_, shard.path);
    if (absl::IsNotFound(now.status()) || absl::IsDataLoss(now.status())) {
      return Changed(shard.file);
    }
    RETURN_IF_ERROR(now.status());
    if (now->tensors() != shard.reader.tensors() || now->metadata() != shard.reader.metadata()) {
      return Changed(shard.file);
    }
  }
  return absl::OkStatus();
}

}  // namespace stagecoach
