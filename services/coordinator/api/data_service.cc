#include "services/coordinator/api/data_service.h"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/errors/caller_error.h"
#include "base/errors/status.h"
#include "coordinator/loop/hidden_places.h"
#include "plan/data/data_sets_of.h"
#include "services/common/grpc/grpc_status.h"
#include "services/coordinator/api/callers_jobs.h"
#include "services/coordinator/data/changed_objects.h"
#include "services/coordinator/store/object_names.h"

namespace stagecoach {
namespace {

constexpr size_t kQueuedRequests = 256;
constexpr size_t kMostNamed = 10;  // jobs in an error

v1::DataSet WithJobsOf(v1::DataSet set, const JobsOfSets& jobs) {
  const auto found = jobs.find(set.id());
  if (found != jobs.end()) set.mutable_jobs()->Add(found->second.begin(), found->second.end());
  return set;
}

}  // namespace

DataServiceAdapter::DataServiceAdapter(const Parts& parts)
    : parts_(parts), files_("data-sets", kQueuedRequests), links_("data-links", kQueuedRequests) {
  sweeper_ = Thread("data-sweep", [this] { SweepHourly(); });
}

DataServiceAdapter::~DataServiceAdapter() {
  {
    std::lock_guard<std::mutex> lock(mutex_);
    closing_ = true;
  }
  changed_.notify_one();
  sweeper_.Join();
  links_.Close();
  files_.Close();
}

absl::StatusOr<JobCaller> DataServiceAdapter::CallerOf(
    const grpc::CallbackServerContext& context) const {
  static const Callers by_certificate;
  const Callers& callers = parts_.callers != nullptr ? *parts_.callers : by_certificate;
  JobCaller caller = JobCallerOf(callers.Of(*context.auth_context(), context.client_metadata()));
  if (caller.own_only && caller.name.empty()) {
    return ForCaller(absl::UnauthenticatedError("the caller is not known any more"));
  }
  return caller;
}

absl::Status DataServiceAdapter::Told(const absl::Status& status) const {
  HiddenPlaces places;
  places.AddFolder(parts_.catalog->folder(), "STATE/data");
  const absl::Status hidden = places.Hide(status);
  return IsForCaller(status) ? ForCaller(hidden) : hidden;
}

void DataServiceAdapter::Post(TaskThread& thread, std::function<void(const absl::Status&)> work) {
  if (thread.TryPost([work] { work(absl::OkStatus()); })) return;
  work(absl::ResourceExhaustedError(absl::StrCat(
      "more than ", kQueuedRequests, " requests about data sets wait; try again later")));
}

grpc::ServerUnaryReactor* DataServiceAdapter::Answer(
    grpc::CallbackServerContext* context, std::function<absl::Status(const JobCaller&)> work) {
  grpc::ServerUnaryReactor* const reactor = context->DefaultReactor();
  const absl::StatusOr<JobCaller> caller = CallerOf(*context);
  if (!caller.ok()) {
    reactor->Finish(ToApiGrpc(caller.status()));
    return reactor;
  }
  Post([this, reactor, caller = *caller, work = std::move(work)](const absl::Status& status) {
    reactor->Finish(ToApiGrpc(status.ok() ? Told(work(caller)) : status));
  });
  return reactor;
}

void DataServiceAdapter::WithJobs(OnReading then) {
  parts_.list_jobs(
      [this, then = std::move(then)](const absl::StatusOr<std::vector<JobView>>& jobs) {
        if (!jobs.ok()) return then(jobs.status());
        Post([then, reading = JobsReading(*jobs)](const absl::Status& status) {
          if (!status.ok()) return then(status);
          then(reading);
        });
      });
}

grpc::ServerUnaryReactor* DataServiceAdapter::AnswerWithJobs(
    grpc::CallbackServerContext* context,
    std::function<absl::Status(const JobCaller&, const JobsOfSets&)> work) {
  grpc::ServerUnaryReactor* const reactor = context->DefaultReactor();
  const absl::StatusOr<JobCaller> caller = CallerOf(*context);
  if (!caller.ok()) {
    reactor->Finish(ToApiGrpc(caller.status()));
    return reactor;
  }
  WithJobs([this, reactor, caller = *caller,
            work = std::move(work)](const absl::StatusOr<JobsOfSets>& jobs) {
    reactor->Finish(ToApiGrpc(jobs.ok() ? Told(work(caller, *jobs)) : jobs.status()));
  });
  return reactor;
}

grpc::ServerUnaryReactor* DataServiceAdapter::PrepareUpload(grpc::CallbackServerContext* context,
                                                            const v1::PrepareUploadRequest* request,
                                                            v1::PrepareUploadResponse* response) {
  return Answer(context, [this, request, response](const JobCaller& caller) -> absl::Status {
    ASSIGN_OR_RETURN(
        const std::vector<int> missing,
        parts_.catalog->Prepare(caller.name, {request->parts().begin(), request->parts().end()},
                                request->again()));
    response->set_folder(PartsObject(caller.name));
    response->set_grant(parts_.grants->Make(response->folder(), ObjectGrants::Use::kWrite));
    response->mutable_missing()->Add(missing.begin(), missing.end());
    return absl::OkStatus();
  });
}

grpc::ServerUnaryReactor* DataServiceAdapter::PutDataSet(grpc::CallbackServerContext* context,
                                                         const v1::PutDataSetRequest* request,
                                                         v1::PutDataSetResponse* response) {
  return AnswerWithJobs(
      context,
      [this, request, response](const JobCaller& caller, const JobsOfSets& jobs) -> absl::Status {
        ASSIGN_OR_RETURN(v1::DataSet set, parts_.catalog->Put(caller.name, *request));
        *response->mutable_data_set() = WithJobsOf(std::move(set), jobs);
        return absl::OkStatus();
      });
}

grpc::ServerUnaryReactor* DataServiceAdapter::ListDataSets(grpc::CallbackServerContext* context,
                                                           const v1::ListDataSetsRequest*,
                                                           v1::ListDataSetsResponse* response) {
  return AnswerWithJobs(context, [this, response](const JobCaller& caller, const JobsOfSets& jobs) {
    for (v1::DataSet& set : parts_.catalog->List(caller)) {
      *response->add_data_sets() = WithJobsOf(std::move(set), jobs);
    }
    return absl::OkStatus();
  });
}

grpc::ServerUnaryReactor* DataServiceAdapter::OpenDataSet(grpc::CallbackServerContext* context,
                                                          const v1::OpenDataSetRequest* request,
                                                          v1::OpenDataSetResponse* response) {
  return AnswerWithJobs(
      context,
      [this, request, response](const JobCaller& caller, const JobsOfSets& jobs) -> absl::Status {
        ASSIGN_OR_RETURN(DataCatalog::Held held, parts_.catalog->Hold(caller, request->data_set()));
        response->set_folder(SetObject(held.set.id()));
        response->set_grant(parts_.grants->Make(response->folder(), ObjectGrants::Use::kRead));
        *response->mutable_data_set() = WithJobsOf(std::move(held.set), jobs);
        return absl::OkStatus();
      });
}

absl::Status DataServiceAdapter::RemoveIfUnread(const v1::DataSet& set, const JobsOfSets& jobs) {
  const auto reading = jobs.find(set.id());
  if (reading == jobs.end()) return parts_.catalog->Delete(set.id());
  parts_.catalog->PutBack(set.id());
  const std::vector<std::string>& ids = reading->second;
  const auto end = ids.begin() + static_cast<ptrdiff_t>(std::min(ids.size(), kMostNamed));
  return absl::FailedPreconditionError(
      absl::StrCat("data set ", set.name().empty() ? set.id() : set.name(),
                   " is read by jobs that have not ended: ", absl::StrJoin(ids.begin(), end, ", "),
                   ids.size() > kMostNamed ? ", ..." : "",
                   "; wait for them, or cancel them with `stagecoach cancel`"));
}

// From the moment that it is taken out no job finds the set. Those that found it before hold it, or
// are in the list that is asked for afterwards.
grpc::ServerUnaryReactor* DataServiceAdapter::RemoveDataSet(grpc::CallbackServerContext* context,
                                                            const v1::RemoveDataSetRequest* request,
                                                            v1::RemoveDataSetResponse* response) {
  grpc::ServerUnaryReactor* const reactor = context->DefaultReactor();
  const absl::StatusOr<JobCaller> caller = CallerOf(*context);
  if (!caller.ok()) {
    reactor->Finish(ToApiGrpc(caller.status()));
    return reactor;
  }
  Post([this, reactor, request, response, caller = *caller](const absl::Status& posted) {
    const absl::StatusOr<v1::DataSet> set =
        posted.ok() ? parts_.catalog->TakeOut(caller, request->data_set()) : posted;
    if (!set.ok()) {
      reactor->Finish(ToApiGrpc(set.status()));
      return;
    }
    WithJobs([this, reactor, response, set = *set](const absl::StatusOr<JobsOfSets>& jobs) {
      absl::Status status = jobs.status();
      if (status.ok()) {
        status = RemoveIfUnread(set, *jobs);
      } else {
        parts_.catalog->PutBack(set.id());
      }
      if (status.ok()) *response->mutable_data_set() = set;
      reactor->Finish(ToApiGrpc(Told(status)));
    });
  });
  return reactor;
}

void DataServiceAdapter::Resolve(const JobCaller& caller, const JobSpec& spec,
                                 std::function<void(absl::StatusOr<ResolvedJob>)> done) {
  TaskThread& thread = PathsInBuckets(spec).empty() ? files_ : links_;
  Post(thread, [this, caller, spec, done = std::move(done)](const absl::Status& status) {
    if (!status.ok()) return done(status);
    absl::StatusOr<ResolvedJob> job =
        ResolveDataPaths(parts_.catalog, parts_.buckets, caller, spec);
    if (!job.ok()) return done(Told(job.status()));
    done(*std::move(job));
  });
}

void DataServiceAdapter::TellChanges(JobSpec then, JobSpec now,
                                     std::function<void(const std::string&)> done) {
  Post(links_, [this, then = std::move(then), now = std::move(now),
                done = std::move(done)](const absl::Status& status) {
    done(status.ok() ? ChangedObjects(parts_.catalog, then, now) : "");
  });
}

// A job that was submitted after the list was made has used its sets within the hour, and those no
// sweep takes.
void DataServiceAdapter::Sweep() {
  WithJobs([this](const absl::StatusOr<JobsOfSets>& jobs) {
    if (!jobs.ok()) return;  // it shuts down, or is busy: in an hour
    parts_.catalog->Sweep([&jobs](const std::string& id) { return jobs->contains(id); });
  });
}

void DataServiceAdapter::SweepHourly() {
  const auto period = std::chrono::duration<double>(kSweepSeconds);
  while (true) {
    Sweep();
    std::unique_lock<std::mutex> lock(mutex_);
    if (changed_.wait_for(lock, period, [this] { return closing_; })) return;
  }
}

}  // namespace stagecoach
