#include "services/coordinator/http/http_api.h"

#include <algorithm>
#include <chrono>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/errors/status.h"
#include "coordinator/job/view/record_page.h"
#include "services/common/convert/convert_plan.h"
#include "services/common/observe/chrome_trace.h"
#include "services/coordinator/api/checkpoint_list.h"
#include "services/coordinator/convert/convert_job.h"
#include "services/coordinator/http/http_json.h"
#include "services/coordinator/page/page_assets.h"
#include "services/coordinator/watch/await.h"
#include "services/coordinator/watch/log_query.h"
#include "services/coordinator/watch/log_reader.h"

namespace stagecoach {
namespace {

constexpr char kPrefix[] = "/api/v1/";
constexpr uint32_t kTraceSteps = 5, kMostTraceSteps = 50;
constexpr uint32_t kTail = 200;

absl::Status Busy() { return absl::UnavailableError("the coordinator is busy; try again"); }

HttpResponse NoSuchPath(const std::string& path) {
  return ErrorResponse(
      absl::NotFoundError(absl::StrCat(path.substr(0, 200), ": there is no such path")));
}

HttpResponse WrongMethod(const std::string& allowed) {
  HttpResponse response =
      ErrorResponse(absl::InvalidArgumentError(absl::StrCat("only ", allowed)), 405);
  response.headers = {{"Allow", allowed}};
  return response;
}

// A whole number of the query in [least, most].
absl::StatusOr<uint64_t> Number(const HttpRequest& request, const char* name, uint64_t otherwise,
                                uint64_t least, uint64_t most) {
  const std::optional<std::string> text = QueryValue(request, name);
  if (!text.has_value()) return otherwise;
  uint64_t value = 0;
  if (absl::SimpleAtoi(*text, &value) && value >= least && value <= most) return value;
  return absl::InvalidArgumentError(absl::StrCat(name, "=", *text, ": want ", least, " to ", most));
}

// A part's path has its digest, so a browser need not ask again; the page is asked for by its ETag.
HttpResponse AssetResponse(const PageAsset& asset, const HttpRequest& request) {
  const std::string tag = absl::StrCat("\"", std::string(asset.digest), "\"");
  HttpResponse response{200, std::string(asset.content_type), ""};
  response.headers = {
      {"Cache-Control", asset.path == "/" ? "no-cache" : "private, max-age=31536000, immutable"},
      {"ETag", tag},
      {"Vary", "Accept-Encoding"}};
  if (HeaderOf(request, "if-none-match") == tag) {
    response.status = 304;
    return response;
  }
  const bool packed = !asset.gzip.empty() && TakesGzip(request);
  if (packed) response.headers.emplace_back("Content-Encoding", "gzip");
  response.body = std::string(packed ? asset.gzip : asset.body);
  return response;
}

}  // namespace

HttpResponse HttpApi::Answer(const HttpRequest& request) const {
  const std::string prefix = kPrefix;
  if (request.path.compare(0, prefix.size(), prefix) != 0) return NoSuchPath(request.path);
  const std::vector<std::string> parts = absl::StrSplit(request.path.substr(prefix.size()), '/');
  if (parts[0] == "jobs" && parts.size() == 3 && parts[2] == "cancel") {
    return Cancel(parts[1], request);
  }
  if (request.method != "GET" && request.method != "HEAD") return WrongMethod("GET, HEAD");
  if (parts[0] == "jobs" && parts.size() == 1) return Jobs(request);
  if (parts[0] == "jobs" && parts.size() == 2) return OfJob(parts[1], "", request);
  if (parts[0] == "jobs" && parts.size() == 3 && !parts[2].empty()) {
    return OfJob(parts[1], parts[2], request);
  }
  if (parts[0] == "stages" && parts.size() == 1) return Stages();
  if (parts[0] == "logs" && parts.size() == 1) return Logs(request);
  return NoSuchPath(request.path);
}

HttpResponse HttpApi::AnswerPage(const HttpRequest& request) {
  if (request.method != "GET" && request.method != "HEAD") return MethodNotAllowed("GET, HEAD");
  const PageAsset* const asset = FindPageAsset(request.path);
  if (asset == nullptr) return {404, "text/plain; charset=utf-8", "not found\n"};
  return AssetResponse(*asset, request);
}

absl::StatusOr<JobView> HttpApi::Get(const std::string& id) const {
  const auto view = Await<absl::StatusOr<JobView>>(
      kLoopSeconds, [&](auto done) { parts_.manager->Get(id, done); });
  return view.has_value() ? *view : Busy();
}

HttpResponse HttpApi::OfJob(const std::string& id, const std::string& part,
                            const HttpRequest& request) const {
  if (part == "records") return Records(id, request);
  if (part == "pictures") return Pictures(id, request);
  const absl::StatusOr<JobView> view = Get(id);
  if (!view.ok()) return ErrorResponse(view.status());
  if (part.empty()) return JsonResponse(ToJson(ToProto(*view)));
  if (part == "trace") return Trace(*view, request);
  if (part == "plan") return Plan(*view);
  if (part == "checkpoints") {
    const auto pin = Await<absl::StatusOr<std::shared_ptr<const void>>>(
        kLoopSeconds, [&](auto done) { parts_.manager->PinCheckpoints(id, done); });
    if (!pin.has_value()) return ErrorResponse(Busy());
    if (!pin->ok()) return ErrorResponse(pin->status());
    return JsonResponse(ToJson(ListCheckpointsOf(*parts_.checkpoints, id, view->owner, false)));
  }
  return NoSuchPath(request.path);
}

HttpResponse HttpApi::Jobs(const HttpRequest& request) const {
  const absl::StatusOr<uint64_t> limit = Number(request, "limit", kPageJobs, 1, kMostPageJobs);
  if (!limit.ok()) return ErrorResponse(limit.status());
  const auto before = PageStart(QueryValue(request, "after").value_or(""), "after");
  if (!before.ok()) return ErrorResponse(before.status());
  const auto page = Await<absl::StatusOr<JobManager::Page>>(
      kLoopSeconds, [&](auto done) { parts_.manager->ListPage(*before, *limit, done); });
  if (!page.has_value()) return ErrorResponse(Busy());
  if (!page->ok()) return ErrorResponse(page->status());
  return JsonResponse(ToJson(ToProto(**page)));
}

HttpResponse HttpApi::Stages() const {
  const auto views = Await<std::vector<StageView>>(
      kLoopSeconds, [this](auto done) { parts_.manager->ListStages(done); });
  if (!views.has_value()) return ErrorResponse(Busy());
  v1::ListStagesResponse response;
  for (const StageView& view : *views) *response.add_stages() = ToProto(view);
  return JsonResponse(ToJson(response));
}

HttpResponse HttpApi::Cancel(const std::string& id, const HttpRequest& request) const {
  if (request.method != "POST") return WrongMethod("POST");
  const auto header = request.headers.find("x-stagecoach-request");
  if (header == request.headers.end() || header->second != "cancel") {
    return OwnErrorResponse(
        absl::PermissionDeniedError("cancelling needs the header X-Stagecoach-Request: cancel"));
  }
  const auto view = Await<absl::StatusOr<JobView>>(
      kLoopSeconds, [&](auto done) { parts_.manager->Cancel(id, done); });
  if (!view.has_value()) return ErrorResponse(Busy());
  if (!view->ok()) return ErrorResponse(view->status());
  return JsonResponse(ToJson(ToProto(**view)));
}

// In pages: the job loop has other work between two of them.
HttpResponse HttpApi::Records(const std::string& id, const HttpRequest& request) const {
  const absl::StatusOr<uint64_t> after = Number(request, "after", 0, 0, INT64_MAX);
  if (!after.ok()) return ErrorResponse(after.status());
  const absl::StatusOr<uint64_t> limit = Number(request, "limit", kMostRecords, 1, kMostRecords);
  if (!limit.ok()) return ErrorResponse(limit.status());
  std::vector<JobRecord> records;
  bool complete = false;
  while (!complete && !IsFullPage(records, *limit)) {
    const uint64_t last = records.empty() ? *after : records.back().number;
    const int wanted =
        static_cast<int>(std::min<size_t>(*limit - records.size(), JobManager::kMostRecords));
    auto page = Await<absl::StatusOr<std::vector<JobRecord>>>(
        kLoopSeconds, [&](auto done) { parts_.manager->Records(id, last, wanted, done); });
    if (!page.has_value()) return ErrorResponse(Busy());
    if (!page->ok() && records.empty()) return ErrorResponse(page->status());
    if (!page->ok()) break;  // who asks on is told
    complete = (*page)->empty();
    records.insert(records.end(), std::make_move_iterator((*page)->begin()),
                   std::make_move_iterator((*page)->end()));
  }
  return JsonResponse(RecordsJson(records, *after, complete));
}

HttpResponse HttpApi::Pictures(const std::string& id, const HttpRequest& request) const {
  const absl::StatusOr<uint64_t> with_files = Number(request, "files", 0, 0, 1);
  if (!with_files.ok()) return ErrorResponse(with_files.status());
  const auto shown = Await<absl::StatusOr<ShownTexts>>(
      kLoopSeconds, [&](auto done) { parts_.manager->Shown(id, done); });
  if (!shown.has_value()) return ErrorResponse(Busy());
  if (!shown->ok()) return ErrorResponse(shown->status());
  const auto proto = ShownToProto(**shown, *with_files == 1);
  return proto.ok() ? JsonResponse(ToJson(*proto)) : ErrorResponse(proto.status());
}

HttpResponse HttpApi::Trace(const JobView& view, const HttpRequest& request) const {
  const absl::StatusOr<uint64_t> steps = Number(request, "steps", kTraceSteps, 1, kMostTraceSteps);
  if (!steps.ok()) return ErrorResponse(steps.status());
  const std::string format = QueryValue(request, "format").value_or("");
  if (!format.empty() && format != "chrome") {
    return ErrorResponse(
        absl::InvalidArgumentError(absl::StrCat("format=", format, ": want chrome, or leave out")));
  }
  // The collector has deadlines of its own; twice that means that something is wrong here.
  const auto trace =
      Await<v1::GetTraceResponse>(2 * TraceCollector::kDeadlineSeconds + 1, [&](auto done) {
        parts_.traces->Collect(view.id, static_cast<uint32_t>(*steps), TargetsOf(view), done);
      });
  if (!trace.has_value()) return ErrorResponse(Busy());
  if (format.empty()) return JsonResponse(ToJson(*trace));
  HttpResponse response = JsonResponse(ToChromeTrace(view.id, *trace));
  // A job's id has no character that would need quoting here.
  response.headers = {
      {"Content-Disposition", absl::StrCat("attachment; filename=\"", view.id, "-trace.json\"")}};
  return response;
}

HttpResponse HttpApi::Plan(const JobView& view) const {
  if (view.spec == nullptr) {
    return ErrorResponse(absl::FailedPreconditionError(
        absl::StrCat("job ", view.id, ": its spec is not known: ", view.message)));
  }
  JobSpec spec = *view.spec;
  // Where the number is automatic: of the stages that the job has.
  if (spec.pipeline.stages == 0) spec.pipeline.stages = view.pipeline_stages;
  const auto given_up =
      std::chrono::steady_clock::now() + std::chrono::duration<double>(kLoopSeconds);
  const auto wanted = [given_up] { return std::chrono::steady_clock::now() < given_up; };
  const auto plan = Await<absl::StatusOr<stagecoach::Plan>>(
      kLoopSeconds, [&](auto done) { parts_.manager->PlanJob(spec, done, wanted); });
  if (!plan.has_value()) return ErrorResponse(Busy());
  if (!plan->ok()) return ErrorResponse(plan->status());
  return JsonResponse(ToJson(ToProto(**plan, kMostScheduleBytes)));
}

HttpResponse HttpApi::Logs(const HttpRequest& request) const {
  LogQuery query{QueryValue(request, "job").value_or(""), std::nullopt};
  if (QueryValue(request, "stage").has_value()) {
    const absl::StatusOr<uint64_t> stage = Number(request, "stage", 0, 0, INT32_MAX);
    if (!stage.ok()) return ErrorResponse(stage.status());
    query.stage = static_cast<int32_t>(*stage);
  }
  const absl::StatusOr<uint64_t> tail = Number(request, "tail", kTail, 1, LogReader::kMostLines);
  if (!tail.ok()) return ErrorResponse(tail.status());
  const auto sources = Await<absl::StatusOr<LogSources>>(
      kLoopSeconds, [&](auto done) { FindLogSources(*parts_.manager, query, done); });
  if (!sources.has_value()) return ErrorResponse(Busy());
  if (!sources->ok()) return ErrorResponse(sources->status());
  const auto reader = std::make_shared<LogReader>(parts_.log, parts_.stages, query.job_id);
  const auto lines =
      Await<v1::ReadLogsResponse>(2 * LogReader::kDeadlineSeconds + 1, [&](auto done) {
        reader->Poll({.targets = (*sources)->stages,
                      .own = (*sources)->coordinator,
                      .tail = static_cast<uint32_t>(*tail),
                      .ended_unix_seconds = (*sources)->ended_unix_seconds},
                     done);
      });
  if (!lines.has_value()) return ErrorResponse(Busy());
  return JsonResponse(ToJson(*lines));
}

}  // namespace stagecoach
