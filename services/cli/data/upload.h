// Upload: brings the parts that the cluster lacks into its store, and makes a data set of them. What
// an upload that was cut has brought stays: the next one, of any client, goes on behind it.
// Threads:   the caller's, which waits.
// Errors:    FAILED_PRECONDITION naming the file: it was changed since it was read. CANCELLED: a stop
//            was requested. The coordinator's; RESOURCE_EXHAUSTED: its store is full.
#ifndef STAGECOACH_SERVICES_CLI_DATA_UPLOAD_H_
#define STAGECOACH_SERVICES_CLI_DATA_UPLOAD_H_

#include <cstdint>
#include <functional>
#include <string>

#include "absl/status/statusor.h"
#include "services/cli/client/data_client.h"
#include "services/cli/client/stop_signal.h"
#include "services/cli/data/local_parts.h"

namespace stagecoach {

// Bytes that are there, of those that were missing; at the beginning and after each piece.
using OnUploaded = std::function<void(int64_t done, int64_t total)>;

// The bytes of this part have another digest than it was made with.
using OnChanged = std::function<void(const LocalPart&)>;

struct DataSetName {
  std::string name;      // empty: none
  bool replace = false;  // a set that has the name loses it
  bool again = false;    // uploads also what is there, as it may be damaged
};

// The set, which holds all files of the parts. on_changed: may be empty.
absl::StatusOr<v1::DataSet> Upload(DataClient& client, const LocalParts& parts,
                                   const DataSetName& name, const OnUploaded& on_uploaded,
                                   StopSignal* stop, const OnChanged& on_changed = {});

}  // namespace stagecoach

#endif  // STAGECOACH_SERVICES_CLI_DATA_UPLOAD_H_
