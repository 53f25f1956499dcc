// FollowView: shows a followed job: events as ndjson, a progress bar on a terminal, or one line a
// step.
// Threads:   the following thread.
#ifndef STAGECOACH_SERVICES_CLI_COMMANDS_FOLLOW_VIEW_H_
#define STAGECOACH_SERVICES_CLI_COMMANDS_FOLLOW_VIEW_H_

#include <functional>
#include <optional>
#include <string>

#include "base/threads/clock.h"
#include "services/cli/client/follow.h"
#include "services/cli/output/console.h"
#include "services/cli/output/ndjson.h"
#include "services/cli/output/progress.h"

namespace stagecoach {

class FollowView final : public RecordSink {
 public:
  // `get_job` returns the job's present state, or nothing: the records do not have its memory. It
  // is called at the first step, then at most every ten seconds.
  FollowView(const v1::Job& job, OutputFormat format, Console* console, const Clock* clock,
             std::function<std::optional<v1::Job>()> get_job);
  ~FollowView() override;

  void OnRecord(const v1::WatchJobResponse& record) override;
  void OnOutage(const absl::Status& why) override;

 private:
  void OnStep(const v1::WatchJobResponse& record);
  void ShowLine(const std::string& line);
  void ShowEvent(const v1::WatchJobResponse& record);
  void ShowState(const v1::StateRecord& state);

  const OutputFormat format_;
  Console* const console_;
  const Clock* const clock_;
  const std::function<std::optional<v1::Job>()> get_job_;
  ProgressState progress_;
  Replays replays_;
  double next_get_seconds_ = 0;
  std::string shown_state_;  // last state, in words
};

}  // namespace stagecoach

#endif  // STAGECOACH_SERVICES_CLI_COMMANDS_FOLLOW_VIEW_H_
