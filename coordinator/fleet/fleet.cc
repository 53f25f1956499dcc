#include "coordinator/fleet/fleet.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/errors/check.h"

namespace stagecoach {
namespace {

absl::Status ValidateRegistration(const StageRegistration& registration) {
  const auto check = [](const std::string& value, const char* field) {
    if (!value.empty() && value.size() <= 253) return absl::OkStatus();
    return absl::InvalidArgumentError(
        absl::StrCat("stage.", field, " has ", value.size(), " characters; give 1 to 253"));
  };
  if (absl::Status status = check(registration.name, "name"); !status.ok()) return status;
  if (absl::Status status = check(registration.incarnation, "incarnation"); !status.ok()) {
    return status;
  }
  if (absl::Status status = registration.identity.empty()
                                ? absl::OkStatus()
                                : check(registration.identity, "identity");
      !status.ok()) {
    return status;
  }
  return check(registration.address, "address");
}

}  // namespace

const char* StageStateName(StageState state) {
  switch (state) {
    case StageState::kReady:
      return "ready";
    case StageState::kBusy:
      return "busy";
    case StageState::kDraining:
      return "draining";
    case StageState::kLost:
      return "lost";
  }
  CHECK(false) << "stage state " << static_cast<int>(state) << " has no name";
}

Fleet::Fleet(double lease_seconds) : lease_seconds_(lease_seconds) {
  CHECK(lease_seconds > 0) << "a lease of no time loses every stage at once";
}

absl::Status Fleet::Register(const StageRegistration& registration, Moment now,
                             std::vector<LostStage>* lost) {
  if (absl::Status status = ValidateRegistration(registration); !status.ok()) return status;
  const auto found = entries_.find(registration.name);
  if (found == entries_.end()) {
    if (absl::Status status = MakePlace(registration, true); !status.ok()) return status;
  }
  Entry entry;
  if (found != entries_.end()) {
    Entry& old = found->second;
    const bool lives = !old.lost && now.seconds - old.renewed_seconds < lease_seconds_;
    if (!old.lost && old.registration == registration) {  // a retry of the same process
      old.doubted = false;
      old.renewed_seconds = now.seconds;
      old.renewed_unix_seconds = now.unix_seconds;
      return absl::OkStatus();
    }
    if (lives) {
      if (absl::Status status = CheckHolder(old, registration); !status.ok()) return status;
    }
    if (old.registration.certificate != registration.certificate) {
      // "gpu-2000" may be one of the names of the certificate "gpu", and another certificate's own.
      if (old.registration.certificate == registration.name) {
        return absl::PermissionDeniedError(
            absl::StrCat("stage ", registration.name,
                         ": the name is that of another certificate, whose stage is ",
                         "not forgotten yet; give this stage another --name"));
      }
      if (absl::Status status = MakePlace(registration, false); !status.ok()) return status;
    }
    if (!old.lost) {
      lost->push_back({old.registration.name, old.registration.incarnation, old.job,
                       absl::StrCat("a new process took the name of stage ", registration.name)});
    }
    entry.former = std::move(old.former);
    std::erase(entry.former, registration.incarnation);
    if (old.registration.incarnation != registration.incarnation) {
      entry.former.push_back(old.registration.incarnation);
      if (entry.former.size() > kFormer) entry.former.erase(entry.former.begin());
    }
  }
  if (found != entries_.end() &&
      found->second.registration.incarnation == registration.incarnation) {
    entry.sees_folder = found->second.sees_folder;  // the same process, back after a silence
  }
  entry.registration = registration;
  entry.renewed_seconds = now.seconds;
  entry.renewed_unix_seconds = now.unix_seconds;
  entries_.insert_or_assign(registration.name, std::move(entry));
  next_expiry_seconds_ = std::min(next_expiry_seconds_, now.seconds + lease_seconds_);
  return absl::OkStatus();
}

absl::Status Fleet::MakePlace(const StageRegistration& registration, bool is_new) {
  const std::string& certificate = registration.certificate;
  const auto of_certificate = [&](const auto& entry) {
    return entry.second.registration.certificate == certificate;
  };
  if (!certificate.empty() &&
      std::count_if(entries_.begin(), entries_.end(), of_certificate) >= kMostOfCertificate &&
      !ForgetOldestLost(&certificate)) {
    return absl::ResourceExhaustedError(
        absl::StrCat("stage ", registration.name, ": the certificate of ", certificate, " has ",
                     kMostOfCertificate, " stages already, and all live; give it one of its own"));
  }
  if (!is_new || entries_.size() < kMaxStages || ForgetOldestLost(nullptr)) {
    return absl::OkStatus();
  }
  return absl::ResourceExhaustedError(absl::StrCat("stage ", registration.name, ": ", kMaxStages,
                                                   " stages are known already, and all live"));
}

bool Fleet::ForgetOldestLost(const std::string* certificate) {
  auto oldest = entries_.end();
  for (auto it = entries_.begin(); it != entries_.end(); ++it) {
    if (!it->second.lost) continue;
    if (certificate != nullptr && it->second.registration.certificate != *certificate) continue;
    const bool older =
        oldest == entries_.end() || it->second.renewed_seconds < oldest->second.renewed_seconds;
    if (older) oldest = it;
  }
  if (oldest == entries_.end()) return false;
  entries_.erase(oldest);
  return true;
}

absl::Status Fleet::CheckHolder(const Entry& holder, const StageRegistration& registration) const {
  const StageRegistration& held = holder.registration;
  const std::string both =
      absl::StrCat("the name ", held.name, " is held by a process that lives, at ", held.address,
                   "; this one is at ", registration.address);
  if (held.identity.empty() || held.identity != registration.identity) {
    return absl::AlreadyExistsError(
        absl::StrCat(both, ": give one of them another --name, or end the other one"));
  }
  if (std::find(holder.former.begin(), holder.former.end(), registration.incarnation) ==
      holder.former.end()) {
    return absl::OkStatus();
  }
  // Its successor registered, and yet it is there: two live with one identity.
  return absl::AlreadyExistsError(
      absl::StrCat(both,
                   " and has the same identity, so a --state-dir was copied: end one of them, "
                   "or give it another --name and --state-dir"));
}

absl::StatusOr<bool> Fleet::Renew(const StageHeartbeat& heartbeat, Moment now) {
  const auto found = entries_.find(heartbeat.name);
  if (found == entries_.end() || found->second.lost ||
      found->second.registration.incarnation != heartbeat.incarnation) {
    return absl::NotFoundError(absl::StrCat("stage ", heartbeat.name, ", incarnation ",
                                            heartbeat.incarnation,
                                            ", holds no lease here; register again"));
  }
  Entry& entry = found->second;
  const bool usable_again = std::exchange(entry.doubted, false);
  entry.renewed_seconds = std::max(entry.renewed_seconds, now.seconds);
  entry.renewed_unix_seconds = std::max(entry.renewed_unix_seconds, now.unix_seconds);
  entry.draining = heartbeat.state == kDrainingState;
  entry.signs.waiting_for = heartbeat.waiting_for;
  entry.signs.loads = heartbeat.state == kLoadingState && heartbeat.fence.job == entry.job;
  if (heartbeat.progress != entry.progress) {
    entry.progress = heartbeat.progress;
    entry.signs.moved_seconds = now.seconds;
    if (!entry.job.empty()) ++job_moves_[entry.job];
  }
  if (std::exchange(entry.shard_progress, heartbeat.shard_progress) != heartbeat.shard_progress) {
    entry.signs.wrote_seconds = now.seconds;
  }
  entry.totals = heartbeat.totals;
  return usable_again;
}

std::vector<LostStage> Fleet::Expire(double heard_seconds) {
  std::vector<LostStage> lost;
  if (heard_seconds < std::min(next_expiry_seconds_, next_forgetting_seconds_)) return lost;
  next_expiry_seconds_ = next_forgetting_seconds_ = std::numeric_limits<double>::infinity();
  for (auto it = entries_.begin(); it != entries_.end();) {
    Entry& entry = it->second;
    const double silent = heard_seconds - entry.renewed_seconds;
    if (!entry.lost && silent >= lease_seconds_) {
      lost.push_back({entry.registration.name, entry.registration.incarnation, entry.job,
                      absl::StrFormat("stage %s was silent for %.1f s, longer than its lease",
                                      entry.registration.name, silent)});
      entry.lost = true;
      entry.job.clear();
    }
    if (entry.lost && silent >= kForgetLostSeconds) {
      it = entries_.erase(it);
      continue;
    }
    double& bound = entry.lost ? next_forgetting_seconds_ : next_expiry_seconds_;
    const double limit = entry.lost ? kForgetLostSeconds : lease_seconds_;
    bound = std::min(bound, entry.renewed_seconds + limit);
    ++it;
  }
  return lost;
}

bool Fleet::Hold(const std::string& job, const std::vector<std::string>& names) {
  bool changed = false;
  if (names.empty()) job_moves_.erase(job);
  for (auto& [name, entry] : entries_) {
    const bool wanted = std::find(names.begin(), names.end(), name) != names.end();
    if (wanted && !entry.lost && entry.job != job) {
      entry.job = job;
      changed = true;
    } else if (!wanted && entry.job == job) {
      entry.job.clear();
      changed = true;
    }
  }
  return changed;
}

void Fleet::Doubt(const std::string& name, const std::string& incarnation) {
  const auto found = entries_.find(name);
  if (found == entries_.end() || found->second.registration.incarnation != incarnation) return;
  found->second.doubted = true;
}

void Fleet::NoteFolder(const StageProcess& process, bool sees) {
  const auto found = entries_.find(process.name);
  if (found == entries_.end()) return;
  if (found->second.registration.incarnation == process.incarnation) {
    found->second.sees_folder = sees;
  }
}

bool Fleet::SeesFolder(const std::string& name) const {
  const auto found = entries_.find(name);
  return found == entries_.end() || found->second.sees_folder;
}

std::vector<StageRegistration> Fleet::UsableBy(const std::string& job) const {
  std::vector<StageRegistration> usable;
  for (const auto& [name, entry] : entries_) {
    if (entry.lost || entry.doubted || entry.draining) continue;
    if (entry.job.empty() || entry.job == job) usable.push_back(entry.registration);
  }
  return usable;
}

std::vector<StageRegistration> Fleet::HeldBy(const std::string& job) const {
  std::vector<StageRegistration> held = UsableBy(job);
  std::erase_if(held, [&](const StageRegistration& stage) { return HolderOf(stage.name) != job; });
  return held;
}

std::string Fleet::HolderOf(const std::string& name) const {
  const auto found = entries_.find(name);
  return found == entries_.end() ? "" : found->second.job;
}

int Fleet::alive() const {
  return static_cast<int>(std::count_if(entries_.begin(), entries_.end(),
                                        [](const auto& entry) { return !entry.second.lost; }));
}

int Fleet::alive_with_folder() const {
  return static_cast<int>(std::count_if(entries_.begin(), entries_.end(), [](const auto& entry) {
    return !entry.second.lost && entry.second.sees_folder;
  }));
}

StageSigns Fleet::SignsOf(const std::string& name) const {
  const auto found = entries_.find(name);
  return found == entries_.end() ? StageSigns() : found->second.signs;
}

uint64_t Fleet::JobProgressFor(const std::string& name) const {
  const auto stage = entries_.find(name);
  if (stage == entries_.end()) return 0;
  const auto moves = job_moves_.find(stage->second.job);
  return moves == job_moves_.end() ? 0 : moves->second;
}

std::vector<StageView> Fleet::View() const {
  std::vector<StageView> views;
  for (const auto& [name, entry] : entries_) {
    StageView view;
    view.registration = entry.registration;
    view.state = entry.lost          ? StageState::kLost
                 : entry.draining    ? StageState::kDraining
                 : entry.job.empty() ? StageState::kReady
                                     : StageState::kBusy;
    view.job = entry.job;
    view.last_heartbeat_unix_seconds = entry.renewed_unix_seconds;
    view.waiting_for = entry.signs.waiting_for;
    view.totals = entry.totals;
    views.push_back(std::move(view));
  }
  return views;
}

}  // namespace stagecoach
