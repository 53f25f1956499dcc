#include "services/coordinator/api/checkpoint_list.h"

#include "coordinator/loop/hidden_places.h"

namespace stagecoach {

v1::ListCheckpointsResponse ListCheckpointsOf(CheckpointStore& store, const std::string& job_id,
                                              const std::string& owner, bool verify) {
  HiddenPlaces places;
  places.AddFolder(store.root(), "CHECKPOINTS");
  v1::ListCheckpointsResponse response;
  for (const CheckpointRef& ref : store.ListWithDamaged(job_id)) {
    const absl::StatusOr<Manifest> manifest =
        verify ? store.Verify(ref, /*tensors=*/true) : store.ReadManifest(ref);
    if (!manifest.ok() && !store.HasFolder(ref)) continue;  // retention came first: it is not broken
    v1::CheckpointInfo* info = response.add_checkpoints();
    info->set_step(ref.step);
    info->set_folder(ref.folder);
    if (!manifest.ok()) {
      const std::string error(manifest.status().message());
      info->set_error(HiddenPlaces::Concern(owner) ? places.Hide(error) : error);
      continue;
    }
    int64_t bytes = 0;
    for (const ShardInfo& shard : manifest->shards) bytes += shard.bytes;
    info->set_bytes(bytes);
    info->set_stages(manifest->stages);
    info->set_loss(manifest->state.last_loss);
  }
  return response;
}

}  // namespace stagecoach
