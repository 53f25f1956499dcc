// LogReader: one reader's way through the logs of the coordinator and of stages. Every Poll asks
// all of them at once for the lines since the last, and merges them by time. If a source's process
// is new, its log is read from the beginning.
// Ownership: borrows ring and stages, which outlive every poll under way.
// Threads:   one Poll at a time, from any thread. `done` runs once, on the thread of the last
//            answer, within kDeadlineSeconds.
// Units:     a poll holds at most kMostLines lines a source and gives at most `tail` lines in all.
//            If there are more, it gives the newest.
// Errors:    sources that do not answer are named, once as long as nothing changes.
#ifndef STAGECOACH_SERVICES_COORDINATOR_WATCH_LOG_READER_H_
#define STAGECOACH_SERVICES_COORDINATOR_WATCH_LOG_READER_H_

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "services/common/observe/log_ring.h"
#include "services/coordinator/stages/stage_observer.h"
#include "stagecoach/v1/job.pb.h"

namespace stagecoach {

class LogReader : public std::enable_shared_from_this<LogReader> {
 public:
  static constexpr double kDeadlineSeconds = 2.0;
  static constexpr uint32_t kMostLines = 2000;
  // Stages free a job's memory a moment after its end, and their clocks differ from the
  // coordinator's.
  static constexpr double kAfterEndSeconds = 1.0;
  static constexpr char kCoordinator[] = "coordinator";

  // job_id: lines of this job and of none; empty: of all.
  LogReader(const LogRing* own, StageObserver* stages, std::string job_id)
      : own_(own), stages_(stages), job_id_(std::move(job_id)) {}

  struct Wanted {
    std::vector<StageTarget> targets;
    bool own = true;    // the coordinator's lines too
    uint32_t tail = 0;  // 0: kMostLines
    // When the job ended; 0: it has not. Later than kAfterEndSeconds after that, lines without a
    // job concern other work.
    double ended_unix_seconds = 0;
  };
  void Poll(const Wanted& wanted, std::function<void(v1::ReadLogsResponse)> done);

 private:
  struct Gathering;
  struct Source {
    uint64_t newest = 0;  // last line read
    std::string missing;  // why its last answer is missing
  };
  void ReadOwn(Gathering& gathering);
  void Finish(Gathering& gathering);

  const LogRing* const own_;
  StageObserver* const stages_;
  const std::string job_id_;
  std::map<std::string, Source> sources_;  // by name; touched between polls only
};

}  // namespace stagecoach

#endif  // STAGECOACH_SERVICES_COORDINATOR_WATCH_LOG_READER_H_
