// EventStream: the page's server-sent events. Once a second every reader gets the events since its
// last turn. So a slow one only loses time, and nothing waits for it in memory.
// Ownership: borrows manager and live state.
// Threads:   Open on HTTP threads; the returned body holds its thread until reader or server end.
// Errors:    NOT_FOUND (job), INVALID_ARGUMENT (after).
// See:       docs/http_api.md, "The stream".
#ifndef STAGECOACH_SERVICES_COORDINATOR_HTTP_EVENT_STREAM_H_
#define STAGECOACH_SERVICES_COORDINATOR_HTTP_EVENT_STREAM_H_

#include <string>

#include "coordinator/loop/job_manager.h"
#include "services/common/http/http_server.h"
#include "services/coordinator/http/live_state.h"
#include "services/coordinator/http/record_tail.h"

namespace stagecoach {

class EventStream {
 public:
  static constexpr int kMostStreams = 64;

  EventStream(JobManager* manager, LiveState* live)
      : manager_(manager), live_(live), tail_(manager) {}
  HttpResponse Open(const HttpRequest& request, HttpServer::StreamBody* body);
  static HttpResponse Busy();  // for the one stream too many

 private:
  JobManager* const manager_;
  LiveState* const live_;
  RecordTail tail_;
};

}  // namespace stagecoach

#endif  // STAGECOACH_SERVICES_COORDINATOR_HTTP_EVENT_STREAM_H_
