// Names of the store's objects, and where each lies below the coordinator's folders:
//   checkpoints/JOB/FOLDER/FILE       written only into folders that CheckpointStore::Begin made
//   exports/FOLDER/FILE               only read
//   records/JOB/FILE                  a job's history, only read
//   data/parts/OWNER/SHA256           part of a data set, written by its owner's clients
//   data/sets/ID/SHA256, …/manifest   a data set, only read
// Threads: pure functions.
// Errors:  INVALID_ARGUMENT: no name of the store. PERMISSION_DENIED: such an object is not written.
#ifndef STAGECOACH_SERVICES_COORDINATOR_STORE_OBJECT_NAMES_H_
#define STAGECOACH_SERVICES_COORDINATOR_STORE_OBJECT_NAMES_H_

#include <optional>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace stagecoach {

inline constexpr char kPartsArea[] = "data/parts", kSetsArea[] = "data/sets";
// While an object is written its file has this behind its name.
inline constexpr char kPartSuffix[] = ".part";

struct ObjectFolders {
  std::string checkpoints, exports, records;
  std::string data;  // with parts/ and sets/
};

enum class ObjectArea { kCheckpoint, kExport, kRecord, kDataPart, kDataSet };
struct ObjectPlace {
  ObjectArea area = ObjectArea::kCheckpoint;
  std::string path;  // of the complete object
};

// By the beginning of a name, which need not be a good one.
ObjectArea AreaOf(std::string_view name);
absl::StatusOr<ObjectPlace> PlaceOf(const ObjectFolders& folders, const std::string& name);
absl::Status CheckWritable(const std::string& name, const ObjectPlace& place);

// The folder of an owner's parts: the owner with all but letters, digits, '.', '-' and '_' as %XX
// ("user%2Falice"); "_" for nobody. A digest stands in place of a very long one.
std::string OwnerKey(const std::string& owner);
// None: no owner has this key, or one whose name is too long to tell.
std::optional<std::string> OwnerOfKey(const std::string& key);
// "data/parts/OWNER" and "data/sets/ID": what grants are for.
std::string PartsObject(const std::string& owner);
std::string SetObject(const std::string& id);

}  // namespace stagecoach

#endif  // STAGECOACH_SERVICES_COORDINATOR_STORE_OBJECT_NAMES_H_
