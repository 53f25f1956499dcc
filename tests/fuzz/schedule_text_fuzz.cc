// Texts that say what is done: a schedule's programs, patterns of parameters' names, sizes and
// devices of flags. The first byte says which.
#include "base/device_name.h"
#include "base/files/name_patterns.h"
#include "plan/schedules/schedule.h"
#include "tests/fuzz/fuzz_target.h"

namespace stagecoach {
namespace {

void ReadPrograms(FuzzInput& input) {
  Schedule schedule;
  schedule.options.micro_batches = 1 + input.Byte() % 8;
  schedule.options.forward_only = input.Byte() % 4 == 1;
  const PipelineLimits limits{.max_live_micro_batches = 1 + input.Byte() % 8,
                              .link_capacity = 1 + input.Byte() % 4};
  absl::StatusOr<std::vector<StageProgram>> programs = ParsePrograms(input.Rest());
  if (!programs.ok()) return;
  schedule.programs = *programs;
  schedule.options.stages = static_cast<int>(programs->size());
  const std::string text = FormatSchedule(schedule);
  const absl::StatusOr<std::vector<StageProgram>> again = ParsePrograms(text);
  CHECK_OK(again.status());
  CHECK(*again == *programs) << text;
  (void)ValidateSchedule(schedule, limits);
}

// By the definition, for what is short.
bool Matches(std::string_view pattern, std::string_view name) {
  if (pattern.empty()) return name.empty();
  if (pattern[0] == '*') {
    return Matches(pattern.substr(1), name) || (!name.empty() && Matches(pattern, name.substr(1)));
  }
  return !name.empty() && (pattern[0] == '?' || pattern[0] == name[0]) &&
         Matches(pattern.substr(1), name.substr(1));
}

void ReadPattern(FuzzInput& input) {
  const std::string pattern = input.Text(input.Byte() % 8);
  const std::string name = input.Text(10);
  CHECK_EQ(MatchesPattern(pattern, name), Matches(pattern, name)) << pattern << " and " << name;
  (void)CheckPatterns({pattern, name, input.Rest()}, "training.freeze");
}

}  // namespace

void FuzzScheduleText(FuzzInput input) {
  switch (input.Byte() % 4) {
    case 0:
    case 1:
      return ReadPrograms(input);
    case 2:
      return ReadPattern(input);
    case 3:
      (void)ParseCudaDevice(input.Rest());
  }
}

}  // namespace stagecoach

FUZZ_TARGET(schedule_text, FuzzScheduleText)
