#include "services/cli/spec/data_survey.h"

#include <memory>

#include "base/errors/status.h"
#include "plan/job/data_kinds.h"
#include "stage/data/open_source.h"

namespace stagecoach {
namespace {

// Inputs that tell something and cost little: a look at labels needs no picture.
std::vector<std::string> SurveyedInputs(const Network& network) {
  std::vector<std::string> names;
  for (const char* const name : {"labels", "masks"}) {
    if (network.InputNamed(name).valid()) names.emplace_back(name);
  }
  return names;
}

absl::StatusOr<DataSurvey> Survey(const JobSpec& spec, const Network& network) {
  const std::unique_ptr<DataRoots> everything = DataRoots::Everything();
  const std::vector<std::string> reads = SurveyedInputs(network);
  ASSIGN_OR_RETURN(const std::unique_ptr<BatchSource> source,
                   OpenSource(spec, network, reads, *everything, SourceLook::kSurvey));
  RETURN_IF_ERROR(source->CheckFirst());
  return DataSurvey{.found = source->Found(), .notes = source->notes()};
}

}  // namespace

absl::StatusOr<DataSurvey> SurveyData(const ValidSpecFile& spec_file) {
  absl::StatusOr<DataSurvey> survey = Survey(spec_file.job, spec_file.network);
  if (survey.ok()) return survey;
  return LocateError(spec_file, absl::InvalidArgumentError(survey.status().message()));
}

}  // namespace stagecoach
