#include "stage/runtime/shard_tensors.h"

#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/errors/status.h"
#include "base/files/hash.h"
#include "base/threads/progress.h"
#include "checkpoint/manifest.h"
#include "checkpoint/safetensors/safetensors.h"
#include "network/stored.h"
#include "plan/job/optimizer_slots.h"

namespace stagecoach {
namespace {

// Where the manifest says that a tensor is.
struct Place {
  const ShardInfo* shard = nullptr;
  const ShardTensor* tensor = nullptr;
};

// Reads tensors out of a checkpoint's shards, each file opened once.
class CheckpointTensors {
 public:
  CheckpointTensors(CheckpointFiles* from, Manifest manifest)
      : from_(*from), manifest_(std::move(manifest)) {
    for (const ShardInfo& shard : manifest_.shards) {
      for (const ShardTensor& tensor : shard.tensors)
        places_[tensor.entry.name] = {&shard, &tensor};
    }
  }

  absl::Status Read(const std::string& name, const Tensor& like, std::vector<std::byte>* bytes) {
    const auto place = places_.find(name);
    if (place == places_.end()) {
      return absl::DataLossError(absl::StrCat("tensor ", name, " is not in the checkpoint ",
                                              from_.folder,
                                              "; it belongs to another model or optimizer"));
    }
    from_.bytes += like.bytes();
    if (ReadLocal(place->second, like, bytes)) {
      from_.local_bytes += like.bytes();
      return absl::OkStatus();
    }
    return ReadFromFolder(place->second, like, bytes);
  }

 private:
  // nullopt: there is no copy.
  using LocalReader = std::optional<SafetensorsReader>;

  // False: read it from the folder, whose errors count.
  bool ReadLocal(const Place& place, const Tensor& like, std::vector<std::byte>* bytes) {
    const TensorEntry& listed = place.tensor->entry;
    if (from_.local == nullptr || listed.dtype != like.dtype() || listed.shape != like.shape()) {
      return false;
    }
    LocalReader& reader = OpenLocal(*place.shard);
    if (!reader.has_value()) return false;
    const absl::Status read = ReadListed(*reader, *place.tensor, bytes);
    if (read.ok()) return true;
    reader.reset();
    Drop(*place.shard, read);
    return false;
  }

  LocalReader& OpenLocal(const ShardInfo& shard) {
    const auto [found, is_new] = local_readers_.try_emplace(shard.file);
    if (!is_new) return found->second;
    absl::StatusOr<SafetensorsReader> opened =
        from_.local->Open(manifest_.job, manifest_.state.step, shard);
    if (opened.ok()) {
      found->second = *std::move(opened);
    } else if (!absl::IsNotFound(opened.status())) {
      Drop(shard, opened.status());
    }
    return found->second;
  }

  void Drop(const ShardInfo& shard, const absl::Status& why) {
    from_.local->Drop(manifest_.job, manifest_.state.step, shard, why);
  }

  static absl::Status ReadListed(SafetensorsReader& reader, const ShardTensor& listed,
                                 std::vector<std::byte>* bytes) {
    const TensorEntry* entry = reader.Find(listed.entry.name);
    if (entry == nullptr || *entry != listed.entry) {
      return absl::DataLossError(
          absl::StrCat("tensor ", listed.entry.name, " is not as the manifest says"));
    }
    bytes->resize(static_cast<size_t>(entry->bytes()));
    RETURN_IF_ERROR(reader.Read(*entry, *bytes));
    return CheckDigest(listed, *bytes, absl::StrCat("tensor ", listed.entry.name));
  }

  // The coordinator has verified the checkpoint; what counts is what this stage has read.
  static absl::Status CheckDigest(const ShardTensor& listed, std::span<const std::byte> bytes,
                                  const std::string& where) {
    Sha256 digest;
    digest.Update(bytes);
    if (digest.Hex() == listed.sha256) return absl::OkStatus();
    return absl::DataLossError(absl::StrCat(where, " differs from its digest in the manifest"));
  }

  absl::Status ReadFromFolder(const Place& place, const Tensor& like,
                              std::vector<std::byte>* bytes) {
    const std::string& name = place.tensor->entry.name;
    const std::string where =
        absl::StrCat("tensor ", name, " in ", from_.folder, "/", place.shard->file);
    ASSIGN_OR_RETURN(SafetensorsReader * reader, OpenShard(place.shard->file));
    const TensorEntry* entry = reader->Find(name);
    if (entry == nullptr) return absl::DataLossError(absl::StrCat(where, " is missing"));
    if (entry->dtype != like.dtype() || entry->shape != like.shape()) {
      return absl::DataLossError(
          absl::StrCat(where, " is ", DTypeName(entry->dtype), " ", entry->shape.ToString(),
                       ", the model has ", DTypeName(like.dtype()), " ", like.shape().ToString()));
    }
    bytes->resize(static_cast<size_t>(like.bytes()));
    RETURN_IF_ERROR(Annotate(reader->Read(*entry, *bytes), where));
    return CheckDigest(*place.tensor, *bytes, where);
  }

  absl::StatusOr<SafetensorsReader*> OpenShard(const std::string& file) {
    const auto found = readers_.find(file);
    if (found != readers_.end()) return &found->second;
    ASSIGN_OR_RETURN(SafetensorsReader reader,
                     SafetensorsReader::Open(*from_.files, absl::StrCat(from_.folder, "/", file)));
    return &readers_.emplace(file, std::move(reader)).first->second;
  }

  CheckpointFiles& from_;
  const Manifest manifest_;
  std::map<std::string, Place> places_;
  std::map<std::string, SafetensorsReader> readers_;
  std::map<std::string, LocalReader> local_readers_;
};

// The coordinator has just seen the checkpoint. What is missing now was lost since then: another
// search finds what there is, and the job is not to fail for a path that it never had.
absl::Status LostSince(const absl::Status& status) {
  return absl::IsNotFound(status) ? absl::DataLossError(status.message()) : status;
}

absl::StatusOr<Manifest> FoundManifest(ReadableFiles& file_system, const std::string& folder) {
  absl::StatusOr<Manifest> manifest = ReadManifestFile(file_system, folder);
  if (manifest.ok()) return manifest;
  return LostSince(manifest.status());
}

void SortByName(std::vector<NamedTensor>* tensors) {
  std::sort(tensors->begin(), tensors->end(),
            [](const NamedTensor& a, const NamedTensor& b) { return a.name < b.name; });
}

}  // namespace

std::vector<NamedTensor> ModelTensors(Cells cells) {
  std::vector<NamedTensor> tensors;
  for (Cell* const cell : cells) {
    for (const Parameter* parameter : cell->parameters()) {
      if (!IsStored(parameter->spec)) continue;
      tensors.push_back({parameter->spec.name, parameter->value});
    }
    for (const LayerState* state : cell->states()) {
      tensors.push_back({state->spec.name, state->value});
    }
  }
  SortByName(&tensors);
  return tensors;
}

std::vector<NamedTensor> TrainingTensors(Cells cells, Optimizer& optimizer, bool averages) {
  std::vector<NamedTensor> tensors = ModelTensors(cells);
  for (OptimizerSlot& slot : optimizer.slots()) {
    if (!averages && SlotOfTensor(slot.name) == kAverageSlot) continue;
    tensors.push_back({std::move(slot.name), std::move(slot.value)});
  }
  SortByName(&tensors);
  return tensors;
}

absl::StatusOr<bool> HoldsAverages(ReadableFiles& file_system, const std::string& folder) {
  ASSIGN_OR_RETURN(const Manifest manifest, FoundManifest(file_system, folder));
  for (const ShardInfo& shard : manifest.shards) {
    for (const ShardTensor& tensor : shard.tensors) {
      if (SlotOfTensor(tensor.entry.name) == kAverageSlot) return true;
    }
  }
  return false;
}

absl::Status LoadTensors(CheckpointFiles* from, uint64_t step,
                         const std::vector<NamedTensor>& tensors, Backend& backend) {
  ASSIGN_OR_RETURN(Manifest manifest, FoundManifest(*from->files, from->folder));
  if (manifest.state.step != step) {
    return absl::FailedPreconditionError(absl::StrCat("checkpoint ", from->folder, " is of step ",
                                                      manifest.state.step, ", not of step ", step));
  }
  CheckpointTensors checkpoint(from, std::move(manifest));
  std::vector<std::byte> bytes;
  for (const NamedTensor& named : tensors) {
    RETURN_IF_ERROR(LostSince(checkpoint.Read(named.name, named.tensor, &bytes)));
    backend.CopyFromHost(bytes, named.tensor);
    RETURN_IF_ERROR(backend.Synchronize());  // `bytes` must outlive a queued copy
    TickProgress();
  }
  return absl::OkStatus();
}

absl::Status LoadCopies(CheckpointFiles* from, uint64_t step, Cell& cell, Backend& backend) {
  for (const TiedExchange::Copy& copy : cell.ties().copies()) {
    if (!IsStored(copy.owner)) continue;
    RETURN_IF_ERROR(SetCopy(copy, backend, [&](const Tensor& wide) {
      return LoadTensors(from, step, {{copy.owner.name, wide}}, backend);
    }));
  }
  return absl::OkStatus();
}

absl::StatusOr<ShardInfo> WriteTensors(FileSystem& file_system, const std::string& folder,
                                       Cells cells, Optimizer& optimizer, Backend& backend) {
  // One tensor at a time is on the host: the writer asks for the bytes when their turn comes.
  auto staging = std::make_shared<std::vector<std::byte>>();
  std::vector<TensorSource> sources;
  for (NamedTensor& named : TrainingTensors(cells, optimizer)) {
    TensorSource source{
        .name = named.name, .dtype = named.tensor.dtype(), .shape = named.tensor.shape()};
    source.bytes = [staging, &backend,
                    tensor =
                        std::move(named.tensor)]() -> absl::StatusOr<std::span<const std::byte>> {
      staging->resize(static_cast<size_t>(tensor.bytes()));
      backend.CopyToHost(tensor, *staging);
      RETURN_IF_ERROR(backend.Synchronize());
      TickProgress();
      return std::span<const std::byte>(*staging);
    };
    sources.push_back(std::move(source));
  }
  return WriteShard(file_system, folder, LayersOf(cells), std::move(sources));
}

ShardLayers LayersOf(Cells cells) {
  ShardLayers layers;
  for (const Cell* const cell : cells) layers.push_back({cell->first_layer(), cell->last_layer()});
  return layers;
}

}  // namespace stagecoach
