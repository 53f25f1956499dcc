// Requests to the coordinator's HTTP port behind the library that reads them, over a real job
// manager whose one job waits for stages. The input is "METHOD TARGET", then "name: value" a line.
#include <spdlog/spdlog.h>

#include <nlohmann/json.hpp>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_split.h"
#include "services/common/http/http_gate.h"
#include "services/common/http/http_server.h"
#include "services/coordinator/api/waiting_job_testing.h"
#include "services/coordinator/http/event_stream.h"
#include "services/coordinator/http/http_api.h"
#include "tests/fuzz/fuzz_target.h"

namespace stagecoach {
namespace {

// Made once: each request stands alone, but for a job that one of them has cancelled.
class Coordinator final : public WaitingJobTest {
 public:
  Coordinator() {
    spdlog::set_level(spdlog::level::off);
    LogEntry entry;
    entry.message = "a line";
    entry.job_id = "job-a";
    ring_.Append(entry);
  }
  void TestBody() override {}

  HttpResponse Answer(const HttpRequest& request) { return api_.Answer(request); }
  HttpResponse OpenStream(const HttpRequest& request) {
    HttpServer::StreamBody body;
    return events_.Open(request, &body);
  }

 private:
  const HttpApi api_{{.manager = manager_.get(),
                      .checkpoints = &store_,
                      .stages = &observer_,
                      .traces = &traces_,
                      .log = &ring_}};
  LiveState live_{manager_.get(), &clock_};
  EventStream events_{manager_.get(), &live_};
};

HttpRequest RequestOf(const std::string& text) {
  const std::vector<std::string> lines = absl::StrSplit(text, '\n');
  const std::vector<std::string> first = absl::StrSplit(lines[0], absl::MaxSplits(' ', 1));
  const std::vector<std::string> target =
      absl::StrSplit(first.size() > 1 ? first[1] : "", absl::MaxSplits('?', 1));
  HttpRequest request{first[0], target[0], target.size() > 1 ? target[1] : "", {}};
  for (size_t i = 1; i < lines.size(); ++i) {
    const std::vector<std::string> header = absl::StrSplit(lines[i], absl::MaxSplits(": ", 1));
    request.headers[absl::AsciiStrToLower(header[0])] = header.size() > 1 ? header[1] : "";
  }
  return request;
}

// Nothing in a head ends its line early, and what is said to be JSON is.
void CheckAnswer(const HttpResponse& response, const HttpRequest& request) {
  CHECK(response.status >= 200 && response.status < 600) << response.status;
  CHECK(ShownName(response.content_type) == response.content_type) << response.content_type;
  for (const auto& [name, value] : response.headers) {
    CHECK(ShownName(name) == name && ShownName(value) == value) << ShownName(value);
  }
  if (response.content_type != "application/json") return;
  CHECK(nlohmann::json::accept(response.body)) << request.path << ": " << response.body;
  CheckShown(response.body);
}

}  // namespace

void FuzzHttp(FuzzInput input) {
  static Coordinator coordinator;
  const HttpRequest request = RequestOf(input.Rest());
  for (const auto& [name, value] : request.headers) {
    (void)IsOwnHost(value, {"train.example", name});
  }
  if (const auto value = QueryValue(request, "after")) CHECK(value->size() <= request.query.size());
  CheckAnswer(coordinator.Answer(request), request);
  CheckAnswer(HttpApi::AnswerPage(request), request);
  const HttpResponse stream = coordinator.OpenStream(request);
  CheckAnswer(stream, request);
}

}  // namespace stagecoach

FUZZ_TARGET(http, FuzzHttp)
