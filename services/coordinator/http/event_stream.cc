#include "services/coordinator/http/event_stream.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "services/coordinator/convert/convert_job.h"
#include "services/coordinator/http/http_json.h"
#include "services/coordinator/watch/await.h"

namespace stagecoach {
namespace {

constexpr auto kTurn = std::chrono::seconds(1);
constexpr int kPagesPerTurn = 4;
constexpr double kNewest = -2;  // no snapshot is of this time

std::string Event(const char* name, const std::string& json) {
  return absl::StrCat("event: ", name, "\ndata: ", json, "\n\n");
}

// What one reader has been sent.
class Reader {
 public:
  Reader(JobManager* manager, LiveState* live, RecordTail* tail, std::string job, uint64_t after)
      : manager_(manager), live_(live), tail_(tail), job_(std::move(job)), after_(after) {}

  void Serve(HttpStream& stream) {
    while (true) {
      bool more = false;
      const std::string text = Turn(false, &more);
      // An empty turn (the job loop is busy) still finds out whether the reader is there.
      if (!stream.Write(text.empty() ? ": busy\n\n" : text)) return;
      if (stream.Wait(more ? std::chrono::seconds(0) : kTurn)) continue;
      // The server ends: with all there is, so that a job's last record is not missed.
      stream.Write(absl::StrCat(Turn(true, &more), Event("end", "{}")));
      return;
    }
  }

 private:
  // last: with records newer than the snapshot, too.
  std::string Turn(bool last, bool* more) {
    std::string text;
    const auto snapshot = live_->Latest();
    if (snapshot != nullptr && snapshot->taken_seconds != shown_seconds_) {
      shown_seconds_ = snapshot->taken_seconds;
      if (snapshot->states != states_) {
        states_ = snapshot->states;
        text += Event("jobs", snapshot->jobs_json);
      }
      const JobView* const view = job_.empty() ? nullptr : snapshot->Find(job_);
      std::string job_json = view == nullptr ? "" : ToJson(ToListed(*view));
      if (view != nullptr && job_json != job_json_) {
        const JobView whole = WithSpec(*view);
        if (whole.spec != nullptr || whole.set_aside) {  // else the loop is busy: in the next turn
          text += Event("job", ToJson(ToProto(whole)));
          job_json_ = std::move(job_json);
        }
      }
      text += Event("stages", snapshot->stages_json);
    }
    if (!job_.empty()) text += Records(last ? kNewest : shown_seconds_, more);
    return text;
  }

  // A held job that is resumed may have another one from then on, and that begins a generation.
  // Copied: what the job has goes with it.
  JobView WithSpec(JobView view) {
    if (spec_ == nullptr || view.generation != spec_generation_) {
      const auto asked = Await<absl::StatusOr<JobView>>(
          kLoopAnswerSeconds, [&](auto done) { manager_->Get(job_, done); });
      if (asked.has_value() && asked->ok() && (*asked)->spec != nullptr) {
        JobSpec spec = *(*asked)->spec;
        if (spec.write.has_value()) spec.write->lines.clear();  // they may be a MiB, each second
        spec_ = std::make_shared<const JobSpec>(std::move(spec));
        spec_generation_ = view.generation;
      }
    }
    view.spec = spec_;
    return view;
  }

  std::string Records(double version, bool* more) {
    std::string text;
    for (int page = 0; page < kPagesPerTurn; ++page) {
      const RecordTail::Page records = tail_->Read(job_, after_, version);
      if (!records.json.empty()) {
        after_ = records.last;
        // The id lets a browser that connects again go on where it was.
        absl::StrAppend(&text, "id: ", after_, "\n",
                        Event("records", absl::StrCat("{\"records\":[", records.json,
                                                      "],\"next\":", after_, "}")));
      }
      if (records.next != std::exchange(unreadable_, records.next) && !records.next.ok()) {
        text += Event("unreadable", ErrorResponse(records.next).body);
      }
      if (!records.more) return text;
    }
    *more = true;
    return text;
  }

  JobManager* const manager_;
  LiveState* const live_;
  RecordTail* const tail_;
  const std::string job_;
  uint64_t after_;
  double shown_seconds_ = -1;
  std::string states_ = "none yet";
  std::string job_json_;  // as it was sent last, without the spec
  std::shared_ptr<const JobSpec> spec_;
  uint64_t spec_generation_ = 0;
  absl::Status unreadable_;  // as it was told
};

}  // namespace

HttpResponse EventStream::Open(const HttpRequest& request, HttpServer::StreamBody* body) {
  const std::string job = QueryValue(request, "job").value_or("");
  const std::string text = QueryValue(request, "after").value_or("0");
  uint64_t after = 0;
  if (!absl::SimpleAtoi(text, &after)) {
    return ErrorResponse(absl::InvalidArgumentError(
        absl::StrCat("after=", text, ": want a record's number, 0 or more")));
  }
  const auto last_id = request.headers.find("last-event-id");
  uint64_t seen = 0;
  if (last_id != request.headers.end() && absl::SimpleAtoi(last_id->second, &seen)) {
    after = std::max(after, seen);
  }
  if (!job.empty()) {
    const auto view = Await<absl::StatusOr<JobView>>(kLoopAnswerSeconds,
                                                     [&](auto done) { manager_->Get(job, done); });
    if (!view.has_value()) {
      return ErrorResponse(absl::UnavailableError("the coordinator is busy; try again"));
    }
    if (!view->ok()) return ErrorResponse(view->status());
  }
  *body = [this, job, after](HttpStream& stream) {
    Reader(manager_, live_, &tail_, job, after).Serve(stream);
  };
  return {200, "text/event-stream", ""};
}

HttpResponse EventStream::Busy() {
  return ErrorResponse(absl::ResourceExhaustedError(absl::StrCat(
                           kMostStreams, " streams are open, the most there may be; poll instead")),
                       503);
}

}  // namespace stagecoach
