#include "services/coordinator/api/callers_jobs.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "services/common/grpc/access/peer_identity.h"

namespace stagecoach {

JobCaller JobCallerOf(const Caller& caller) {
  if (caller.identity.ok()) {
    return {absl::StrCat(PeerRoleName(caller.identity->role), "/", caller.identity->name),
            caller.identity->role != PeerRole::kOperator};
  }
  // Of another error than that there is no role: a token that was taken out of the file since the
  // call was let in. It has nothing.
  return {"", !absl::IsNotFound(caller.identity.status())};
}

void CallersJobs::Submit(const std::string& id_or_empty, const JobSpec& spec, OnView done,
                         std::function<bool()> wanted) const {
  manager_->Submit(id_or_empty, spec, std::move(done), std::move(wanted), caller_);
}

void CallersJobs::PlanJob(const JobSpec& spec, std::function<void(absl::StatusOr<Plan>)> done,
                          std::function<bool()> wanted) const {
  manager_->PlanJob(spec, std::move(done), std::move(wanted), caller_);
}

void CallersJobs::ListPage(uint64_t before, size_t most,
                           std::function<void(absl::StatusOr<JobManager::Page>)> done) const {
  manager_->ListPage(before, most, std::move(done), caller_);
}

void CallersJobs::Check(const std::string& id, std::function<void(absl::Status)> done) const {
  if (!caller_.own_only) return done(absl::OkStatus());
  manager_->CheckCaller(caller_, id, std::move(done));
}

template <typename Answer>
void CallersJobs::IfItMay(
    const std::string& id, std::function<void(absl::StatusOr<Answer>)> done,
    std::function<void(std::function<void(absl::StatusOr<Answer>)>)> act) const {
  Check(id, [done = std::move(done), act = std::move(act)](const absl::Status& may) {
    if (!may.ok()) return done(may);
    act(done);
  });
}

void CallersJobs::Get(const std::string& id, OnView done) const {
  IfItMay<JobView>(id, std::move(done),
                   [manager = manager_, id](OnView then) { manager->Get(id, std::move(then)); });
}

void CallersJobs::Shown(const std::string& id,
                        std::function<void(absl::StatusOr<ShownTexts>)> done) const {
  IfItMay<ShownTexts>(id, std::move(done),
                      [manager = manager_, id](auto then) { manager->Shown(id, std::move(then)); });
}

void CallersJobs::Cancel(const std::string& id, OnView done) const {
  IfItMay<JobView>(id, std::move(done),
                   [manager = manager_, id](OnView then) { manager->Cancel(id, std::move(then)); });
}

void CallersJobs::Resume(const std::string& id, int64_t stages, OnView done) const {
  IfItMay<JobView>(id, std::move(done), [manager = manager_, id, stages](OnView then) {
    manager->Resume(id, stages, std::move(then));
  });
}

void CallersJobs::RemoveJob(const std::string& id,
                            std::function<void(absl::StatusOr<JobUsage>)> done) const {
  IfItMay<JobUsage>(id, std::move(done), [manager = manager_, id](auto then) {
    manager->RemoveJob(id, std::move(then));
  });
}

void CallersJobs::RemoveCheckpoints(
    const std::string& id, const std::vector<uint64_t>& steps, bool missing_ok,
    std::function<void(absl::StatusOr<RemovedCheckpoints>)> done) const {
  IfItMay<RemovedCheckpoints>(id, std::move(done),
                              [manager = manager_, id, steps, missing_ok](auto then) {
                                manager->RemoveCheckpoints(id, steps, missing_ok, std::move(then));
                              });
}

}  // namespace stagecoach
