#include "stage/snapshot/tensor_copy.h"

#include <map>
#include <string>
#include <utility>

#include "base/errors/status.h"
#include "base/threads/progress.h"
#include "stage/snapshot/available_memory.h"

namespace stagecoach {

absl::StatusOr<MemoryShard> CopyTensors(const ShardLayers& layers,
                                        const std::vector<NamedTensor>& tensors, Backend& backend,
                                        const std::function<int64_t()>& free_bytes,
                                        MemoryShard* spare) {
  std::vector<TensorSource> sources;
  std::map<std::string, const Tensor*> by_name;
  int64_t rest = 0;
  for (const NamedTensor& named : tensors) {
    sources.push_back({.name = named.name,
                       .dtype = named.tensor.dtype(),
                       .shape = named.tensor.shape(),
                       .bytes = {}});
    by_name[named.name] = &named.tensor;
    rest += named.tensor.bytes();
  }
  const bool fresh = spare == nullptr;
  if (fresh) RETURN_IF_ERROR(CheckMemory(rest, free_bytes()));
  ASSIGN_OR_RETURN(MemoryShard shard,
                   MemoryShard::LayOut(layers, std::move(sources), spare));
  int64_t unlooked = 0;
  for (size_t i = 0; i < shard.tensors().size(); ++i) {
    const TensorEntry& tensor = shard.tensors()[i];
    backend.CopyToHost(*by_name.at(tensor.name), shard.Tensor(i));
    TickProgress();
    rest -= tensor.bytes();
    unlooked += tensor.bytes();
    if (!fresh || unlooked < kLookBytes) continue;
    RETURN_IF_ERROR(CheckMemory(rest, free_bytes()));
    unlooked = 0;
  }
  RETURN_IF_ERROR(backend.Synchronize());
  return shard;
}

}  // namespace stagecoach
