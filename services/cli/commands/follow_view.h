// FollowView: shows a followed job: events as ndjson, a progress bar on a terminal, or one line a
// step. Of a job that writes texts the whole lines are the data, in order, and steps are notes.
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
#include "services/cli/output/state_notes.h"
#include "services/cli/output/written_texts.h"

namespace stagecoach {

class FollowView final : public RecordSink {
 public:
  // `get_job` returns the job's present state, or nothing: the records do not have its memory. It
  // is called at the first step, then at most every ten seconds.
  FollowView(const v1::Job& job, OutputFormat format, Console* console, const Clock* clock,
             std::function<std::optional<v1::Job>()> get_job);
  ~FollowView() override;

  void OnRecord(const v1::WatchJobResponse& record) override;
  void OnLoading(const v1::WatchJobResponse& loading) override;
  void OnOutage(const absl::Status& why) override;
  // Of a job that succeeded: DATA_LOSS if the records had not all its texts.
  absl::Status CheckWhole(const std::string& job) const { return texts_.CheckWhole(job); }

 private:
  void OnStep(const v1::WatchJobResponse& record);
  void OnWritten(const v1::WatchJobResponse& record);
  void ShowProgress();
  void ShowLine(const std::string& line);
  void ShowEvent(const v1::WatchJobResponse& record);

  const OutputFormat format_;
  Console* const console_;
  const Clock* const clock_;
  const std::function<std::optional<v1::Job>()> get_job_;
  const bool writes_;      // texts, in the place of training
  const v1::Write write_;  // their lines
  WrittenTexts texts_;
  ProgressState progress_;
  Replays replays_;
  double next_get_seconds_ = 0;
  std::optional<double> loading_noted_seconds_;  // when a log got the last note of a load
  bool loading_bar_ = false;                     // one of a load is drawn
  StateNotes states_;
};

}  // namespace stagecoach

#endif  // STAGECOACH_SERVICES_CLI_COMMANDS_FOLLOW_VIEW_H_
