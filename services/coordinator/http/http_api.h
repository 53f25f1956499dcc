// HttpApi: the JSON form of the API, below /api/v1/, and the page. It reads. Its one change is to
// cancel a job, which needs a header that other sites' pages cannot send.
// Ownership: borrows all of Parts.
// Threads:   Answer on HTTP threads, several at once. It waits for the job loop and for stages: at
//            most kLoopSeconds, and as long as TraceCollector and LogReader take.
// Errors:    JSON with the status of google.rpc.Code; see http_json.h.
// See:       docs/http_api.md.
#ifndef STAGECOACH_SERVICES_COORDINATOR_HTTP_HTTP_API_H_
#define STAGECOACH_SERVICES_COORDINATOR_HTTP_HTTP_API_H_

#include <string>

#include "absl/status/statusor.h"
#include "checkpoint/store/store.h"
#include "coordinator/loop/job_manager.h"
#include "services/common/http/http_server.h"
#include "services/common/observe/log_ring.h"
#include "services/coordinator/watch/trace_collector.h"

namespace stagecoach {

class HttpApi {
 public:
  static constexpr double kLoopSeconds = 5;
  static constexpr int kMostRecords = 10000;

  struct Parts {
    JobManager* manager = nullptr;
    CheckpointStore* checkpoints = nullptr;
    StageObserver* stages = nullptr;
    TraceCollector* traces = nullptr;
    const LogRing* log = nullptr;
  };
  explicit HttpApi(const Parts& parts) : parts_(parts) {}

  HttpResponse Answer(const HttpRequest& request) const;       // paths below /api/
  static HttpResponse AnswerPage(const HttpRequest& request);  // every other path

 private:
  absl::StatusOr<JobView> Get(const std::string& id) const;
  HttpResponse OfJob(const std::string& id, const std::string& part,
                     const HttpRequest& request) const;
  HttpResponse Jobs(const HttpRequest& request) const;
  HttpResponse Stages() const;
  HttpResponse Cancel(const std::string& id, const HttpRequest& request) const;
  HttpResponse Records(const std::string& id, const HttpRequest& request) const;
  HttpResponse Pictures(const std::string& id, const HttpRequest& request) const;
  HttpResponse Trace(const JobView& view, const HttpRequest& request) const;
  HttpResponse Plan(const JobView& view) const;
  HttpResponse Logs(const HttpRequest& request) const;

  const Parts parts_;
};

}  // namespace stagecoach

#endif  // STAGECOACH_SERVICES_COORDINATOR_HTTP_HTTP_API_H_
