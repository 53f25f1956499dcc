// The files of a job that JobService has made and lists for clients: exports and records.
#include <spdlog/spdlog.h>

#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/errors/status.h"
#include "checkpoint/names.h"
#include "coordinator/loop/hidden_places.h"
#include "services/common/grpc/grpc_status.h"
#include "services/common/store/store_names.h"
#include "services/coordinator/api/job_service.h"
#include "services/coordinator/api/served_files.h"

namespace stagecoach {
namespace {

absl::Status SetAside(const JobView& view) {
  return absl::FailedPreconditionError(
      absl::StrCat("job ", view.id, ": its spec is not known: ", view.message));
}

}  // namespace

grpc::ServerUnaryReactor* JobServiceAdapter::ExportWeights(grpc::CallbackServerContext* context,
                                                           const v1::ExportWeightsRequest* request,
                                                           v1::ExportWeightsResponse* response) {
  grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
  Jobs(*context).Get(
      request->job_id(), [this, reactor, request, response](const absl::StatusOr<JobView>& view) {
        if (!view.ok()) {
          reactor->Finish(ToApiGrpc(view.status()));
          return;
        }
        if (view->spec == nullptr) {
          reactor->Finish(ToApiGrpc(SetAside(*view)));
          return;
        }
        PostReading(reactor, request->job_id(),
                    [this, request, response, spec = view->spec, owner = view->owner] {
                      const absl::Status status = ExportTo(*request, *spec, response);
                      if (!HiddenPlaces::Concern(owner)) return status;
                      return Told(status, absl::StrCat("export of job ", request->job_id()));
                    });
      });
  return reactor;
}

grpc::ServerUnaryReactor* JobServiceAdapter::GetRecordFiles(
    grpc::CallbackServerContext* context, const v1::GetRecordFilesRequest* request,
    v1::GetRecordFilesResponse* response) {
  grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
  Jobs(*context).Get(request->job_id(),
                     [this, reactor, request, response](const absl::StatusOr<JobView>& view) {
                       if (!view.ok()) {
                         reactor->Finish(ToApiGrpc(view.status()));
                         return;
                       }
                       PostWork(reactor, [this, request, response, owner = view->owner] {
                         const absl::Status status = FindRecords(request->job_id(), response);
                         if (!HiddenPlaces::Concern(owner)) return status;
                         return Told(status, absl::StrCat("records of job ", request->job_id()));
                       });
                     });
  return reactor;
}

absl::Status JobServiceAdapter::FindRecords(const std::string& job,
                                            v1::GetRecordFilesResponse* response) const {
  ASSIGN_OR_RETURN(const auto files,
                   RecordFilesIn(*parts_.file_system, JoinPath(parts_.record_folder, job)));
  response->set_store_folder(absl::StrCat(kRecordsArea, "/", job));
  response->set_grant(parts_.grants->Make(response->store_folder(), ObjectGrants::Use::kRead));
  response->mutable_files()->Add(files.begin(), files.end());
  return absl::OkStatus();
}

absl::Status JobServiceAdapter::Told(const absl::Status& status, const std::string& what) const {
  HiddenPlaces places;
  places.AddFolder(parts_.checkpoints->root(), "CHECKPOINTS");
  places.AddFolder(parts_.export_folder, "EXPORTS");
  places.AddFolder(parts_.record_folder, "RECORDS");
  const absl::Status told = places.Hide(status);
  if (told == status) return status;
  const std::string id = NumberForTheLog();
  spdlog::error("{}: {}: {}", id, what, status.ToString());
  return absl::Status(
      told.code(),
      absl::StrCat(told.message(), "; the coordinator's log has the paths under ", id));
}

absl::Status JobServiceAdapter::ExportTo(const v1::ExportWeightsRequest& request,
                                         const JobSpec& spec, v1::ExportWeightsResponse* response) {
  if (request.has_step() && request.step() < 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("step=", request.step(), ": want >= 0, or none for the newest checkpoint"));
  }
  std::vector<std::string> quarantined;
  const int64_t step = request.has_step() ? request.step() : -1;
  ASSIGN_OR_RETURN(const CheckpointRef ref,
                   parts_.checkpoints->FindLoadable(request.job_id(), step, &quarantined));
  ASSIGN_OR_RETURN(const Manifest manifest, parts_.checkpoints->ReadManifest(ref));
  // No job can be called so: their names have no dot.
  const std::string folder = absl::StrCat(parts_.export_folder, "/", request.job_id(), ".step-",
                                          ref.step, request.average() ? "-average" : "");
  const auto hold =
      parts_.exports != nullptr ? parts_.exports->Hold() : std::unique_lock<std::mutex>();
  RETURN_IF_ERROR(parts_.file_system->MakeFolders(folder));
  ASSIGN_OR_RETURN(const std::string digest,
                   ::stagecoach::ExportWeights(*parts_.file_system, ref, manifest, folder,
                                               parts_.codec->Encode(spec), request.average()));
  response->set_folder(folder);
  const std::string store_folder = absl::StrCat(kExportsArea, "/", NameOf(folder));
  response->set_store_folder(store_folder);
  response->set_grant(parts_.grants->Make(store_folder, ObjectGrants::Use::kRead));
  if (parts_.exports != nullptr) RETURN_IF_ERROR(ExportSweep::Touch(folder));
  ASSIGN_OR_RETURN(const auto files, ExportFilesIn(*parts_.file_system, folder));
  response->mutable_files()->Add(files.begin(), files.end());
  response->set_weights_digest(digest);
  response->set_step(ref.step);
  // Of "FOLDER: why" the folder alone: the reason has paths, which users are not told.
  for (const std::string& damaged : quarantined) {
    response->add_damaged(damaged.substr(0, damaged.find(':')));
  }
  return absl::OkStatus();
}

}  // namespace stagecoach
