#include "coordinator/fleet/placement.h"

#include <algorithm>
#include <set>
#include <utility>

namespace stagecoach {
namespace {

// With fewer than so many the job waits.
int Needed(const WaitingJob& job) {
  return job.wanted == 0 || job.accepts_fewer ? std::max(1, job.least) : job.wanted;
}

// How many of `ready` stages the job takes now; 0: it waits.
int Share(const WaitingJob& job, int ready) {
  const int useful = std::min(ready, job.useful);
  if (job.wanted > 0 && useful >= job.wanted) return job.wanted;
  return useful >= Needed(job) ? useful : 0;
}

class Placer {
 public:
  Placer(const Fleet& fleet, std::span<const WaitingJob> jobs)
      : fleet_(fleet), alive_(fleet.alive()), alive_with_folder_(fleet.alive_with_folder()) {
    for (const WaitingJob& job : jobs) {
      if (!job.saving) behind_.insert(job.id);
    }
  }

  void Place(const WaitingJob& job) {
    behind_.erase(job.id);
    std::vector<StageRegistration> ready = FreeFor(job);
    if (job.saving) {
      for (const StageRegistration& stage : ready) taken_.insert(stage.name);
      return;
    }
    if (Share(job, static_cast<int>(ready.size())) == 0) TakeFromThoseBehind(job, &ready);
    std::vector<std::string> passed_over;
    if (OthersSuffice(job, ready)) {
      std::erase_if(ready, [&](const StageRegistration& stage) {
        if (fleet_.SeesFolder(stage.name)) return false;
        passed_over.push_back(stage.name);
        return true;
      });
    }
    const auto holds = [&job](const StageRegistration& stage) {
      return std::find(job.holders.begin(), job.holders.end(), stage.name) != job.holders.end();
    };
    std::stable_partition(ready.begin(), ready.end(), holds);
    const auto suspect = [&](const StageRegistration& stage) {
      return !fleet_.SeesFolder(stage.name) ||
             std::find(job.suspects.begin(), job.suspects.end(), stage.name) != job.suspects.end();
    };
    std::stable_partition(ready.begin(), ready.end(),
                          [&suspect](const StageRegistration& stage) { return !suspect(stage); });
    const int count = static_cast<int>(ready.size());
    const int share = Share(job, count);
    if (share > 0) {
      ready.resize(static_cast<size_t>(share));
      if (!job.holders.empty()) {  // each in its old place, where what it holds is its own
        std::sort(ready.begin(), ready.end(),
                  [](const auto& a, const auto& b) { return a.name < b.name; });
      }
      for (const StageRegistration& stage : ready) taken_.insert(stage.name);
      placement_.offers.push_back({job.id, std::move(ready), std::move(passed_over)});
      return;
    }
    const int needed = Needed(job);
    placement_.shortages.push_back({job.id, needed, count, alive_, std::move(passed_over), ready});
    if (job.recovering || needed <= alive_) {
      for (const StageRegistration& stage : ready) taken_.insert(stage.name);
    }
  }

  Placement Take() && { return std::move(placement_); }

 private:
  std::vector<StageRegistration> FreeFor(const WaitingJob& job) const {
    return Fitting(job, fleet_.UsableBy(job.id));
  }

  std::vector<StageRegistration> Fitting(const WaitingJob& job,
                                         std::vector<StageRegistration> stages) const {
    std::erase_if(stages, [&](const StageRegistration& stage) {
      const StageProcess process{stage.name, stage.incarnation};
      const bool unfit = std::find(job.unfit.begin(), job.unfit.end(), process) != job.unfit.end();
      return unfit || taken_.contains(stage.name);
    });
    return stages;
  }

  // As few as will do, and none if they will not.
  void TakeFromThoseBehind(const WaitingJob& job, std::vector<StageRegistration>* ready) const {
    std::vector<StageRegistration> more = *ready;
    for (const std::string& other : behind_) {
      for (const StageRegistration& stage : Fitting(job, fleet_.HeldBy(other))) {
        more.push_back(stage);
        if (Share(job, static_cast<int>(more.size())) == 0) continue;
        *ready = std::move(more);
        return;
      }
    }
  }

  // Without those that are known not to see the folder of checkpoints. A queued job waits for
  // stages that others hold; one that recovers fails if it waits for long, so it counts what it
  // could have now.
  bool OthersSuffice(const WaitingJob& job, const std::vector<StageRegistration>& free) const {
    if (!job.recovering) return alive_with_folder_ >= Needed(job);
    const auto sees = [this](const StageRegistration& s) { return fleet_.SeesFolder(s.name); };
    return std::count_if(free.begin(), free.end(), sees) >= Needed(job);
  }

  const Fleet& fleet_;
  const int alive_, alive_with_folder_;
  std::set<std::string> behind_;  // jobs that have not been looked at yet
  std::set<std::string> taken_;
  Placement placement_;
};

}  // namespace

Placement PlaceJobs(const Fleet& fleet, std::span<const WaitingJob> jobs) {
  Placer placer(fleet, jobs);
  for (const WaitingJob& job : jobs) {
    if (job.recovering) placer.Place(job);
  }
  for (const WaitingJob& job : jobs) {
    if (!job.recovering) placer.Place(job);
  }
  return std::move(placer).Take();
}

}  // namespace stagecoach
