// StoreForm: where the checkpoints of a simulated cluster are.
#ifndef STAGECOACH_TESTS_SIMULATION_STORE_STORE_FORM_H_
#define STAGECOACH_TESTS_SIMULATION_STORE_STORE_FORM_H_

#include <cstdint>

namespace stagecoach {

// A folder that all hosts share, the coordinator's own disk, a bucket.
enum class StoreForm : uint8_t { kFolder, kEmbedded, kBucket };

inline const char* StoreName(StoreForm form) {
  if (form == StoreForm::kFolder) return "folder";
  return form == StoreForm::kEmbedded ? "embedded" : "bucket";
}

}  // namespace stagecoach

#endif  // STAGECOACH_TESTS_SIMULATION_STORE_STORE_FORM_H_
