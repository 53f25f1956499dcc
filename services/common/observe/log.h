// Logging: spdlog to stderr, as text or as one JSON object a line, and into the process's log ring.
// Lines about a job carry its id and step as fields, so that `stagecoach logs JOB` finds them:
//   LogJob(spdlog::level::warn, job, step, "step failed: {}", status.ToString());
//   LogScope scope(job, step);  spdlog::info("...");  // every line of this thread, while it lives
// Threads:   LogScope and LogJob: any thread; fields belong to the thread that logs.
// Ownership: the ring lives as long as the process.
#ifndef STAGECOACH_SERVICES_COMMON_OBSERVE_LOG_H_
#define STAGECOACH_SERVICES_COMMON_OBSERVE_LOG_H_

#include <spdlog/spdlog.h>

#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "services/common/observe/log_ring.h"

namespace stagecoach {

// program: "stage", "coordinator"; format: "text" or "json" (INVALID_ARGUMENT otherwise).
absl::Status SetUpLogging(const std::string& program, const std::string& format, bool verbose);

// The last 4096 lines of this process; empty before SetUpLogging. Never null, never deleted.
LogRing* ProcessLogRing();

// LogScope: until its end, lines of this thread belong to this job (and step). Scopes nest.
class LogScope {
 public:
  explicit LogScope(std::string job_id, std::optional<uint64_t> step = std::nullopt);
  ~LogScope();
  LogScope(const LogScope&) = delete;
  LogScope& operator=(const LogScope&) = delete;

  const std::string& job_id() const { return job_id_; }
  const std::optional<uint64_t>& step() const { return step_; }
  static const LogScope* Current();  // this thread's; null outside any

 private:
  const std::string job_id_;
  const std::optional<uint64_t> step_;
  const LogScope* const outer_;
};

// One line about a job; step: std::nullopt if it concerns none.
template <typename... Args>
void LogJob(spdlog::level::level_enum level, const std::string& job_id,
            std::optional<uint64_t> step, spdlog::format_string_t<Args...> format, Args&&... args) {
  const LogScope scope(job_id, step);
  spdlog::log(level, format, std::forward<Args>(args)...);
}

}  // namespace stagecoach

#endif  // STAGECOACH_SERVICES_COMMON_OBSERVE_LOG_H_
