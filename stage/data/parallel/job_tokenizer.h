// JobTokenizer: a job's tokenizer, checked against its network: as many pieces as the network has
// classes, pieces for the marks of a sentence, and padding that the objective ignores.
// Errors: as data_file.h; INVALID_ARGUMENT naming the file, both values and the remedy.
#ifndef STAGECOACH_STAGE_DATA_PARALLEL_JOB_TOKENIZER_H_
#define STAGECOACH_STAGE_DATA_PARALLEL_JOB_TOKENIZER_H_

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "plan/job/job_spec.h"
#include "stage/files/data_roots.h"
#include "stage/tokens/tokenizer.h"

namespace stagecoach {

absl::StatusOr<std::unique_ptr<const Tokenizer>> OpenJobTokenizer(const JobSpec& spec,
                                                                  const Network& network,
                                                                  const DataRoots& roots,
                                                                  const std::string& path);

// The id of a piece that is the whole tag; field: "data.parallel_text.tags[0]". INVALID_ARGUMENT
// naming the pieces into which the tag splits instead.
absl::StatusOr<int32_t> TagId(const Tokenizer& tokenizer, const std::string& field,
                              const std::string& tag);

}  // namespace stagecoach

#endif  // STAGECOACH_STAGE_DATA_PARALLEL_JOB_TOKENIZER_H_
