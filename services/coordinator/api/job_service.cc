#include "services/coordinator/api/job_service.h"

#include <atomic>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/errors/status.h"
#include "coordinator/loop/hidden_places.h"
#include "plan/data/data_sets_of.h"
#include "services/common/convert/convert_plan.h"
#include "services/common/convert/fields/known_fields.h"
#include "services/common/convert/spec/convert_spec.h"
#include "services/common/grpc/grpc_status.h"
#include "services/coordinator/api/checkpoint_list.h"
#include "services/coordinator/api/read_logs_reactor.h"
#include "services/coordinator/api/watch_reactor.h"
#include "services/coordinator/convert/convert_job.h"

namespace stagecoach {
namespace {

constexpr size_t kQueuedWork = 32;

template <typename Response>
auto ReplyJob(grpc::ServerUnaryReactor* reactor, Response* response) {
  return [reactor, response](const absl::StatusOr<JobView>& view) {
    if (view.ok()) *response->mutable_job() = ToProto(*view);
    reactor->Finish(ToApiGrpc(view.status()));
  };
}

// What is made of a spec may be large and take its time: a call that was given up in line is not
// begun. gRPC's until OnDone.
class GivenUpReactor final : public grpc::ServerUnaryReactor {
 public:
  std::function<bool()> wanted() const {
    return [cancelled = cancelled_] { return !cancelled->load(); };
  }

 private:
  void OnCancel() override { *cancelled_ = true; }
  void OnDone() override { delete this; }
  const std::shared_ptr<std::atomic<bool>> cancelled_ = std::make_shared<std::atomic<bool>>(false);
};

// Checkpoints of an ended job are removed on request, and nobody tells its state.
JobView CheckpointAsThere(JobView view, const JobUsage& usage) {
  if (IsTerminal(view.phase)) view.last_checkpoint_step = usage.newest_step;
  return view;
}

// A field that is dropped is another job, and it would train without a word.
template <typename Request>
absl::StatusOr<JobSpec> SpecOf(const Request& request) {
  const absl::Status known = CheckAllKnown(request, "request");
  if (!known.ok()) {
    return absl::InvalidArgumentError(
        absl::StrCat(known.message(), "; upgrade the coordinator to the client's version"));
  }
  return FromProto(request.spec());
}

}  // namespace

JobServiceAdapter::JobServiceAdapter(const Parts& parts)
    : manager_(parts.manager), parts_(parts), files_("api-files", kQueuedWork) {}

CallersJobs JobServiceAdapter::Jobs(const grpc::CallbackServerContext& context) const {
  static const Callers by_certificate;
  const Callers& callers = parts_.callers != nullptr ? *parts_.callers : by_certificate;
  return {manager_, JobCallerOf(callers.Of(*context.auth_context(), context.client_metadata()))};
}

void JobServiceAdapter::Resolve(const JobCaller& caller, const absl::StatusOr<JobSpec>& spec,
                                std::function<void(absl::StatusOr<ResolvedJob>)> then) const {
  if (!spec.ok()) return then(spec.status());
  if (PathsInDataSets(*spec).empty() && PathsInBuckets(*spec).empty()) {
    return then(ResolvedJob{*spec, {}});
  }
  if (parts_.data == nullptr) {
    return then(absl::FailedPreconditionError("this coordinator keeps no data sets"));
  }
  parts_.data->Resolve(caller, *spec, std::move(then));
}

void JobServiceAdapter::ReplyExists(
    const CallersJobs& jobs, const std::string& id, std::shared_ptr<const ResolvedJob> job,
    const absl::Status& exists, std::function<void(const absl::StatusOr<JobView>&)> reply) const {
  if (parts_.data == nullptr || DataSetsOf(job->spec).empty()) return reply(exists);
  jobs.Get(id, [this, id, job, exists, reply](const absl::StatusOr<JobView>& there) {
    if (!there.ok() || there->spec == nullptr)
      return reply(exists);  // it is gone, or another user's
    parts_.data->TellChanges(
        *there->spec, job->spec, [id, job, exists, reply](const std::string& changes) {
          if (changes.empty()) return reply(exists);
          reply(absl::AlreadyExistsError(
              absl::StrCat("job ", id,
                           " exists, and the objects that it reads have changed since it was "
                           "submitted: ",
                           changes, "; choose another id for a job on what is there now")));
        });
  });
}

grpc::ServerUnaryReactor* JobServiceAdapter::SubmitJob(grpc::CallbackServerContext* context,
                                                       const v1::SubmitJobRequest* request,
                                                       v1::SubmitJobResponse* response) {
  auto* const reactor = new GivenUpReactor();
  const CallersJobs jobs = Jobs(*context);
  Resolve(jobs.caller(), SpecOf(*request),
          [this, jobs, reactor, request, response](const absl::StatusOr<ResolvedJob>& job) {
            const auto reply = ReplyJob<v1::SubmitJobResponse>(reactor, response);
            if (!job.ok()) return reply(job.status());
            // The sets are held until the manager lists the job, or it was refused.
            const auto held = std::make_shared<const ResolvedJob>(*job);
            const auto answer = [this, jobs, request, reply,
                                 held](const absl::StatusOr<JobView>& view) {
              if (!absl::IsAlreadyExists(view.status())) return reply(view);
              ReplyExists(jobs, request->id(), held, view.status(), reply);
            };
            jobs.Submit(request->id(), held->spec, answer, reactor->wanted());
          });
  return reactor;
}

grpc::ServerUnaryReactor* JobServiceAdapter::GetJob(grpc::CallbackServerContext* context,
                                                    const v1::GetJobRequest* request,
                                                    v1::GetJobResponse* response) {
  grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
  const auto reply = ReplyJob(reactor, response);
  if (!request->with_usage()) {
    Jobs(*context).Get(request->id(), reply);
    return reactor;
  }
  Jobs(*context).Get(request->id(), [this, reactor, request, response,
                                     reply](const absl::StatusOr<JobView>& view) {
    if (!view.ok()) return reply(view);
    PostWork(reactor, [this, request, response, view = *view] {
      JobUsage usage = UsageOf(Files(), request->id());
      if (HiddenPlaces::Concern(view.owner)) usage.listed = Told(usage.listed, "list checkpoints");
      *response->mutable_job() = ToProto(CheckpointAsThere(view, usage));
      *response->mutable_job()->mutable_usage() = ToProto(usage);
      return absl::OkStatus();
    });
  });
  return reactor;
}

grpc::ServerUnaryReactor* JobServiceAdapter::ListJobs(grpc::CallbackServerContext* context,
                                                      const v1::ListJobsRequest* request,
                                                      v1::ListJobsResponse* response) {
  grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
  absl::StatusOr<uint64_t> before = PageStart(request->page_token(), "page_token");
  const int size = request->page_size() == 0 ? kPageJobs : request->page_size();
  if (size < 1 || size > kMostPageJobs) {
    before = absl::InvalidArgumentError(
        absl::StrCat("page_size=", size, ": want 1 to ", kMostPageJobs, ", or 0 for ", kPageJobs));
  }
  if (!before.ok()) {
    reactor->Finish(ToApiGrpc(before.status()));
    return reactor;
  }
  Jobs(*context).ListPage(*before, static_cast<size_t>(size),
                          [reactor, response](const absl::StatusOr<JobManager::Page>& page) {
                            if (page.ok()) *response = ToProto(*page);
                            reactor->Finish(ToApiGrpc(page.status()));
                          });
  return reactor;
}

grpc::ServerWriteReactor<v1::WatchJobResponse>* JobServiceAdapter::WatchJob(
    grpc::CallbackServerContext* context, const v1::WatchJobRequest* request) {
  return WatchReactor::Start(manager_, Jobs(*context), request->id(), request->after());
}

grpc::ServerUnaryReactor* JobServiceAdapter::CancelJob(grpc::CallbackServerContext* context,
                                                       const v1::CancelJobRequest* request,
                                                       v1::CancelJobResponse* response) {
  grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
  Jobs(*context).Cancel(request->id(), ReplyJob(reactor, response));
  return reactor;
}

grpc::ServerUnaryReactor* JobServiceAdapter::ResumeJob(grpc::CallbackServerContext* context,
                                                       const v1::ResumeJobRequest* request,
                                                       v1::ResumeJobResponse* response) {
  grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
  Jobs(*context).Resume(
      request->id(), request->stages(),
      [response, reply = ReplyJob(reactor, response)](const absl::StatusOr<JobView>& view) {
        if (view.ok()) response->set_last_record(view->records);
        reply(view);
      });
  return reactor;
}

grpc::ServerUnaryReactor* JobServiceAdapter::PlanJob(grpc::CallbackServerContext* context,
                                                     const v1::PlanJobRequest* request,
                                                     v1::PlanJobResponse* response) {
  auto* const reactor = new GivenUpReactor;
  const CallersJobs jobs = Jobs(*context);
  const auto answer = [reactor, response](const absl::StatusOr<Plan>& plan) {
    if (plan.ok()) *response = ToProto(*plan, kMostScheduleBytes);
    reactor->Finish(ToApiGrpc(plan.status()));
  };
  Resolve(jobs.caller(), SpecOf(*request),
          [jobs, reactor, answer](const absl::StatusOr<ResolvedJob>& job) {
            if (!job.ok()) return answer(job.status());
            jobs.PlanJob(job->spec, answer, reactor->wanted());
          });
  return reactor;
}

grpc::ServerUnaryReactor* JobServiceAdapter::ListCheckpoints(
    grpc::CallbackServerContext* context, const v1::ListCheckpointsRequest* request,
    v1::ListCheckpointsResponse* response) {
  grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
  Jobs(*context).Get(
      request->job_id(), [this, reactor, request, response](const absl::StatusOr<JobView>& view) {
        if (!view.ok()) {
          reactor->Finish(ToApiGrpc(view.status()));
          return;
        }
        PostReading(reactor, request->job_id(), [this, request, response, owner = view->owner] {
          *response =
              ListCheckpointsOf(*parts_.checkpoints, request->job_id(), owner, request->verify());
          return absl::OkStatus();
        });
      });
  return reactor;
}

grpc::ServerUnaryReactor* JobServiceAdapter::RemoveCheckpoints(
    grpc::CallbackServerContext* context, const v1::RemoveCheckpointsRequest* request,
    v1::RemoveCheckpointsResponse* response) {
  grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
  Jobs(*context).RemoveCheckpoints(
      request->job_id(), {request->steps().begin(), request->steps().end()}, request->missing_ok(),
      [reactor, response](const absl::StatusOr<RemovedCheckpoints>& removed) {
        if (removed.ok()) {
          response->mutable_removed()->Assign(removed->steps.begin(), removed->steps.end());
          response->set_freed_bytes(removed->bytes);
        }
        reactor->Finish(ToApiGrpc(removed.status()));
      });
  return reactor;
}

grpc::ServerUnaryReactor* JobServiceAdapter::RemoveJob(grpc::CallbackServerContext* context,
                                                       const v1::RemoveJobRequest* request,
                                                       v1::RemoveJobResponse* response) {
  grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
  Jobs(*context).RemoveJob(request->id(),
                           [reactor, request, response](const absl::StatusOr<JobUsage>& freed) {
                             if (freed.ok()) {
                               response->set_id(request->id());
                               *response->mutable_freed() = ToProto(*freed);
                             }
                             reactor->Finish(ToApiGrpc(freed.status()));
                           });
  return reactor;
}

void JobServiceAdapter::PostReading(grpc::ServerUnaryReactor* reactor, const std::string& job,
                                    std::function<absl::Status()> work) {
  manager_->PinCheckpoints(job, [this, reactor, work = std::move(work)](
                                    absl::StatusOr<std::shared_ptr<const void>> pin) {
    if (!pin.ok()) {
      reactor->Finish(ToApiGrpc(pin.status()));
      return;
    }
    PostWork(reactor, [work, pin = *std::move(pin)] { return work(); });
  });
}

void JobServiceAdapter::PostWork(grpc::ServerUnaryReactor* reactor,
                                 std::function<absl::Status()> work) {
  const bool posted =
      files_.TryPost([reactor, work = std::move(work)] { reactor->Finish(ToApiGrpc(work())); });
  if (!posted) {
    reactor->Finish(ToApiGrpc(absl::ResourceExhaustedError(
        absl::StrCat("more than ", kQueuedWork, " file requests wait; try again later"))));
  }
}

grpc::ServerUnaryReactor* JobServiceAdapter::GetTrace(grpc::CallbackServerContext* context,
                                                      const v1::GetTraceRequest* request,
                                                      v1::GetTraceResponse* response) {
  grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
  Jobs(*context).Get(request->job_id(), [traces = parts_.traces, reactor, request,
                                         response](const absl::StatusOr<JobView>& view) {
    if (!view.ok()) {
      reactor->Finish(ToApiGrpc(view.status()));
      return;
    }
    traces->Collect(view->id, request->steps(), TargetsOf(*view),
                    [reactor, response](v1::GetTraceResponse trace) {
                      *response = std::move(trace);
                      reactor->Finish(grpc::Status::OK);
                    });
  });
  return reactor;
}

grpc::ServerUnaryReactor* JobServiceAdapter::GetShownPictures(
    grpc::CallbackServerContext* context, const v1::GetShownPicturesRequest* request,
    v1::GetShownPicturesResponse* response) {
  grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
  Jobs(*context).Shown(request->job_id(),
                       [reactor, request, response](const absl::StatusOr<ShownTexts>& shown) {
                         absl::Status status = shown.status();
                         if (status.ok()) {
                           auto proto = ShownToProto(*shown, request->with_files());
                           status = proto.status();
                           if (status.ok()) *response = *std::move(proto);
                         }
                         reactor->Finish(ToApiGrpc(status));
                       });
  return reactor;
}

grpc::ServerWriteReactor<v1::ReadLogsResponse>* JobServiceAdapter::ReadLogs(
    grpc::CallbackServerContext* context, const v1::ReadLogsRequest* request) {
  return ReadLogsReactor::Start({.manager = manager_, .stages = parts_.stages, .own = parts_.log},
                                Jobs(*context), *request);
}

}  // namespace stagecoach
