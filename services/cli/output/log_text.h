// LogText: one line of a server's log for people:
//   2026-01-31 12:34:56.789 stage-0 warning step=12 message
// Threads: pure function.
#ifndef STAGECOACH_SERVICES_CLI_OUTPUT_LOG_TEXT_H_
#define STAGECOACH_SERVICES_CLI_OUTPUT_LOG_TEXT_H_

#include <string>

#include "stagecoach/v1/telemetry.pb.h"

namespace stagecoach {

// Ends with a line end; local time. `job` is not repeated in lines of that job.
std::string LogText(const v1::LogLine& line, const std::string& job);

}  // namespace stagecoach

#endif  // STAGECOACH_SERVICES_CLI_OUTPUT_LOG_TEXT_H_
