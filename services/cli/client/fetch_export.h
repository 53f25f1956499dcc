// Fetches the files of an export, or of a job's history, from the coordinator's store into a folder of
// this machine.
// Threads: the caller's, which waits.
// Errors:  StoreClient's; those of the file system. DATA_LOSS: a file's name is no plain name.
#ifndef STAGECOACH_SERVICES_CLI_CLIENT_FETCH_EXPORT_H_
#define STAGECOACH_SERVICES_CLI_CLIENT_FETCH_EXPORT_H_

#include <cstdint>
#include <functional>
#include <string>

#include "absl/status/status.h"
#include "checkpoint/files/file_system.h"
#include "services/common/store/store_client.h"
#include "stagecoach/v1/job.pb.h"

namespace stagecoach {

// Of all files: bytes that are here, and bytes that will be.
using OnFetched = std::function<void(int64_t done, int64_t total)>;

// The folder exists and is empty.
absl::Status FetchExport(StoreClient& store, const v1::ExportWeightsResponse& exported,
                         FileSystem& files, const std::string& folder, const OnFetched& on_fetched);
absl::Status FetchRecords(StoreClient& store, const v1::GetRecordFilesResponse& records,
                          FileSystem& files, const std::string& folder,
                          const OnFetched& on_fetched);

}  // namespace stagecoach

#endif  // STAGECOACH_SERVICES_CLI_CLIENT_FETCH_EXPORT_H_
