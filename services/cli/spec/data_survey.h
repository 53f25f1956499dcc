// Data survey: names, headers, counts, labels and the first records of a job's data on this
// machine. It reads them with the stages' own readers, and does not train.
// Threads: blocks while it reads; a pure function of its argument and the file system.
// Errors:  INVALID_ARGUMENT, in the stages' words (stage/data/open_source.h), for data that they
//          would refuse.
#ifndef STAGECOACH_SERVICES_CLI_SPEC_DATA_SURVEY_H_
#define STAGECOACH_SERVICES_CLI_SPEC_DATA_SURVEY_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "services/cli/spec/spec_reader.h"

namespace stagecoach {

struct DataSurvey {
  std::string found;               // "80 pictures in 2 classes (a 41, b 39), 8 held out"
  std::vector<std::string> notes;  // samples left out, and what looks wrong
};
// Requires that the job's data is here.
absl::StatusOr<DataSurvey> SurveyData(const ValidSpecFile& spec_file);

}  // namespace stagecoach

#endif  // STAGECOACH_SERVICES_CLI_SPEC_DATA_SURVEY_H_
