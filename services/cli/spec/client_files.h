// ClientFiles: which paths of a job are of the machine that submits. The others are in a data set that
// the cluster keeps (`dataset`), in a bucket, or on the stages' machines (`on_stages`).
// Threads: pure functions of their arguments, and of the file system where one says so.
#ifndef STAGECOACH_SERVICES_CLI_SPEC_CLIENT_FILES_H_
#define STAGECOACH_SERVICES_CLI_SPEC_CLIENT_FILES_H_

#include <vector>

#include "plan/job/data_kinds.h"
#include "stagecoach/v1/model.pb.h"

namespace stagecoach {

// Whether paths of the data may be the client's: neither `dataset` nor `on_stages` is given.
bool DataIsClients(const v1::JobSpec& spec);
// The same, and no path names a data set or a bucket.
bool AllDataIsClients(const v1::JobSpec& spec, const DataSpec& data);
// Whether initialize.from is given, and the client's.
bool WeightsAreClients(const v1::JobSpec& spec);

// The client's files and folders that the stages read of `data`, with the configuration beside a
// tokenizer if it is there.
std::vector<DataFile> ClientFiles(const v1::JobSpec& spec, const DataSpec& data);

}  // namespace stagecoach

#endif  // STAGECOACH_SERVICES_CLI_SPEC_CLIENT_FILES_H_
