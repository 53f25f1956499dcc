// Names and limits that the store's client and server share, besides store.proto.
#ifndef STAGECOACH_SERVICES_COMMON_STORE_STORE_NAMES_H_
#define STAGECOACH_SERVICES_COMMON_STORE_STORE_NAMES_H_

#include <cstddef>
#include <string>
#include <string_view>

#include "checkpoint/names.h"

namespace stagecoach {

inline constexpr char kCheckpointsArea[] = "checkpoints";
inline constexpr char kExportsArea[] = "exports";
inline constexpr char kRecordsArea[] = "records";

// "checkpoints/JOB" of "store:/checkpoints/JOB".
inline std::string ObjectOf(std::string_view path) {
  return std::string(path.substr(std::string_view(kStorePrefix).size()));
}

// Most bytes of a message's data. The coordinator takes messages of 1 MiB.
inline constexpr size_t kStorePartBytes = size_t{512} << 10;
// The longest deadline that a call of the store may have: nothing waits for ever.
inline constexpr double kMostStoreCallSeconds = 600;

}  // namespace stagecoach

#endif  // STAGECOACH_SERVICES_COMMON_STORE_STORE_NAMES_H_
