#include "services/coordinator/stages/data_grants.h"

#include <utility>

#include "plan/data/data_sets_of.h"
#include "services/coordinator/store/object_names.h"

namespace stagecoach {

void DataGrants::Grant(const Cell& cell, Grants* granted) const {
  for (const std::string& set : cell.sets) {
    v1::DataGrant& grant = *granted->Add();
    grant.set_data_set(set);
    grant.set_folder(SetObject(set));
    grant.set_unproven(unproven_);
    grant.set_grant(grants_->Make(grant.folder(), ObjectGrants::Use::kRead));
  }
}

void DataGrants::ForLoad(const StagePeer& stage, const std::string& job, const JobSpec& spec,
                         Grants* granted) {
  if (grants_ == nullptr) return;
  Cell cell{job, DataSetsOf(spec), clock_->MonotonicSeconds()};
  Grant(cell, granted);
  std::lock_guard<std::mutex> lock(mutex_);
  if (cell.sets.empty()) {
    cells_.erase(stage);
  } else {
    cells_[stage] = std::move(cell);
  }
}

void DataGrants::ForRun(const StagePeer& stage, const std::string& job, Grants* granted) {
  if (grants_ == nullptr) return;
  std::lock_guard<std::mutex> lock(mutex_);
  const auto found = cells_.find(stage);
  if (found == cells_.end() || found->second.job != job) return;
  const double now = clock_->MonotonicSeconds();
  if (now - found->second.granted_seconds < kPeriodSeconds) return;
  found->second.granted_seconds = now;
  Grant(found->second, granted);
}

void DataGrants::Forget(const StagePeer& stage) {
  std::lock_guard<std::mutex> lock(mutex_);
  cells_.erase(stage);
}

}  // namespace stagecoach
