// FactsFile: data.json beside exported weights: facts of the data set.
// Threads: any.
// Errors:  DATA_LOSS naming the file: it is not FormatFacts's text. No file: there are no facts.
// See:     docs/formats.md, "Export".
#ifndef STAGECOACH_CHECKPOINT_FACTS_FILE_H_
#define STAGECOACH_CHECKPOINT_FACTS_FILE_H_

#include <string>

#include "absl/status/statusor.h"
#include "base/files/data_facts.h"
#include "checkpoint/files/file_system.h"

namespace stagecoach {

std::string FormatFacts(const DataFacts& facts);
// Facts of folder/data.json; empty if there is no such file.
absl::StatusOr<DataFacts> ReadFacts(FileSystem& file_system, const std::string& folder);

}  // namespace stagecoach

#endif  // STAGECOACH_CHECKPOINT_FACTS_FILE_H_
