// OpenSource: the reader of the data that a job's data section names. Each kind has a file of its
// own, found by the names of plan/job/data_kinds.h.
// Ownership: the source borrows the roots, beneath which it opens every file
//            (stage/files/data_roots.h).
// Threads: executor thread.
// Errors:  INVALID_ARGUMENT: the data does not give the network's inputs, or a file's content is
//          refused. Errors of files as in stage/data/formats/data_file.h. All name field, value and
//          remedy.
#ifndef STAGECOACH_STAGE_DATA_OPEN_SOURCE_H_
#define STAGECOACH_STAGE_DATA_OPEN_SOURCE_H_

#include <memory>
#include <span>
#include <string>

#include "absl/status/statusor.h"
#include "plan/job/job_spec.h"
#include "stage/data/batch_source.h"
#include "stage/files/data_roots.h"

namespace stagecoach {

// kSurvey reads names, headers, counts and labels, for people who check a job. It decodes no
// picture before CheckFirst, and reads the first 64 MiB of a text. Its digest is not the data's.
enum class SourceLook { kTrain, kSurvey };
inline constexpr int64_t kMostSurveyedBytes = int64_t{64} << 20;

// reads: the network's inputs that this stage will read; inputs only for others are not kept in
// memory.
absl::StatusOr<std::unique_ptr<BatchSource>> OpenSource(const JobSpec& spec, const Network& network,
                                                        std::span<const std::string> reads,
                                                        const DataRoots& roots,
                                                        SourceLook look = SourceLook::kTrain);

}  // namespace stagecoach

#endif  // STAGECOACH_STAGE_DATA_OPEN_SOURCE_H_
