// Files of a bucket, for S3Files.
// Ownership: they borrow the client.
// Threads:   a reader: any; a new file: one.
#ifndef STAGECOACH_SERVICES_COORDINATOR_STORE_S3_FILE_H_
#define STAGECOACH_SERVICES_COORDINATOR_STORE_S3_FILE_H_

#include <cstdint>
#include <memory>
#include <string>

#include "checkpoint/files/file_system.h"
#include "services/common/s3/s3_client.h"

namespace stagecoach {

// Reads ahead (ahead_reader.h).
std::unique_ptr<ReadableFile> OpenS3File(S3Client* client, const std::string& key, int64_t size);

// Keeps what is appended in memory, at most 256 MiB, and puts the whole object at Sync or Close,
// unless there is one: ALREADY_EXISTS.
std::unique_ptr<WritableFile> NewS3File(S3Client* client, std::string key);

}  // namespace stagecoach

#endif  // STAGECOACH_SERVICES_COORDINATOR_STORE_S3_FILE_H_
