#include "tests/simulation/oracle.h"

#include <algorithm>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/errors/check.h"

namespace stagecoach {
namespace {

using RecordKind = JobRecord::Kind;

constexpr double kShortly = 5;  // from a fault's end to that of a job that met it

std::vector<double> EvaluationOf(const JobRecord& record) {
  std::vector<double> values = {record.loss};
  for (const Measure& measure : record.measures) values.push_back(measure.value);
  return values;
}

// Collects what is wrong with one job.
class Judge {
 public:
  Judge(const Scenario& scenario, const WorldEnding& ending, const JobEnding& job)
      : scenario_(scenario), ending_(ending), job_(job), truth_(TruthOf(job.job.family)) {}

  std::vector<std::string> Look() && {
    if (!job_.complaint.empty()) Say(job_.complaint);
    if (ending_.livelock) Say("events without end");
    if (job_.refused) return std::move(wrong_);
    if (!job_.ended || !job_.can_be_read) {
      if (job_.complaint.empty()) NotEnded();
      return std::move(wrong_);
    }
    LookAtEnd();
    LookAtRecords();
    LookAtCheckpoints();
    LookAtWatched();
    return std::move(wrong_);
  }

 private:
  template <typename... Words>
  void Say(const Words&... words) {
    wrong_.push_back(absl::StrCat(job_.job.id, ": ", words...));
  }

  template <typename Is>
  bool Struck(Is is) const {
    return std::any_of(ending_.struck.begin(), ending_.struck.end(),
                       [&](const auto& struck) { return is(struck.second); });
  }

  void NotEnded() {
    const bool lasts = Struck([](const Fault& f) { return f.until == Fault::kForever; });
    if (scenario_.safety && lasts) return;
    Say("not ended ", scenario_.safety ? kSafetySeconds : kBoundSeconds,
        " s after the last fault: ", JobPhaseName(job_.phase), ", ", job_.message);
  }

  void LookAtEnd() {
    switch (job_.phase) {
      case JobPhase::kSucceeded:
        return LookAtResults();
      case JobPhase::kCancelled:
        if (job_.job.cancel_at == Fault::kForever) Say("cancelled by nobody");
        return;
      case JobPhase::kFailed:
        if (!Justified()) Say("failed for no fault that justifies it: ", job_.message);
        return;
      default:
        return Say("has a record of its end and is ", JobPhaseName(job_.phase));
    }
  }

  void LookAtResults() {
    const Truth result = ResultOf(job_);
    if (result.digest != truth_.digest) {
      Say("weights ", result.digest, " and not ", truth_.digest);
    }
    const uint64_t last = truth_.checkpoints.rbegin()->first;
    // The last one may have been set aside since.
    if (!result.checkpoints.contains(last) && !Rotten()) Say("no checkpoint of step ", last);
    if (job_.cancelled) Say("succeeded after its cancellation was confirmed");
    if (MayLackRecords() || !job_.job.spec.resume.job.empty()) return;
    for (const auto& [step, values] : truth_.steps) {
      if (!result.steps.contains(step)) Say("no record of step ", step);
    }
    for (const auto& [step, values] : truth_.evaluations) {
      if (!result.evaluations.contains(step)) Say("no record of the evaluation at step ", step);
    }
  }

  bool Rotten() const {
    return Struck([](const Fault& f) { return f.kind == Fault::Kind::kRot; });
  }

  // What has a committed name is whole, and has the bits of its step whoever committed it.
  void LookAtCheckpoints() {
    for (const auto& [step, why] : job_.broken) {
      if (!Rotten()) Say("the checkpoint of step ", step, " is broken: ", why);
    }
    for (const auto& [step, tensors] : job_.checkpoints) {
      const auto found = truth_.checkpoints.find(step);
      if (found == truth_.checkpoints.end() || found->second != tensors) {
        Say("the checkpoint of step ", step, " has other tensors: ", tensors);
      }
    }
  }

  // Records that only memory had are lost with the coordinator, or with what came after the copy of
  // its journal.
  bool MayLackRecords() const {
    return Struck([](const Fault& f) { return IsOfJournal(f.kind); });
  }

  void LookAtRecords() {
    uint64_t number = 0, step = 0, committed = 0;
    bool repeats = true;  // or begins, perhaps with another job's checkpoint
    for (const JobRecord& record : job_.records) {
      if (record.number != ++number) Say("record ", record.number, " where ", number, " is due");
      number = record.number;
      if (record.kind == RecordKind::kRecovery || record.phase == JobPhase::kHeld) repeats = true;
      if (record.kind == RecordKind::kEvaluation) LookAtEvaluation(record);
      if (record.kind == RecordKind::kCheckpoint && record.message.empty()) {
        committed = std::max(committed, record.step);
      }
      if (record.kind != RecordKind::kStep) continue;
      if (record.step <= committed && !Rotten()) {
        Say("step ", record.step, " again, though step ", committed, " had a checkpoint");
      }
      if (!std::exchange(repeats, false) && record.step != step + 1) {
        Say("step ", record.step, " follows step ", step, " without a recovery");
      }
      step = record.step;
      LookAtStep(record);
    }
    if (job_.records.empty() || job_.records.back().kind != RecordKind::kFinished) {
      Say("the history does not end with the job's end");
    }
  }

  void LookAtStep(const JobRecord& record) {
    const auto found = truth_.steps.find(record.step);
    const Truth::Step is{record.loss, record.gradient_norm, record.learning_rate};
    if (found == truth_.steps.end() || found->second != is) {
      Say("step ", record.step, " has loss ", record.loss, ", norm ", record.gradient_norm,
          " and rate ", record.learning_rate);
    }
  }

  void LookAtEvaluation(const JobRecord& record) {
    const auto found = truth_.evaluations.find(record.step);
    if (found == truth_.evaluations.end() || found->second != EvaluationOf(record)) {
      Say("the evaluation at step ", record.step, " has loss ", record.loss);
    }
  }

  // What a user was told is what the journal has.
  void LookAtWatched() {
    if (ending_.old_journal) return;
    for (const JobRecord& seen : job_.watched) {
      const auto found =
          std::find_if(job_.records.begin(), job_.records.end(),
                       [&](const JobRecord& record) { return record.number == seen.number; });
      if (found == job_.records.end() || found->kind != seen.kind || found->step != seen.step ||
          found->message != seen.message) {
        Say("record ", seen.number, " was told to a user, and the journal has another");
      }
    }
  }

  bool Justified() const {
    const std::string& message = job_.message;
    const bool names_folder =
        absl::StrContains(message, "injected") || absl::StrContains(message, "full") ||
        absl::StrContains(message, "bytes are free") || absl::StrContains(message, "need") ||
        absl::StrContains(message, "HTTP 5") || absl::StrContains(message, "HTTP 403");  // of HEAD
    const auto was_on = [this](const Fault& f) { return f.until >= job_.ended_seconds - kShortly; };
    // A journal that cannot be written keeps the end from whom it is told.
    const bool told_late = Struck([](const Fault& f) { return IsOfJournal(f.kind); });
    if (names_folder &&
        Struck([&](const Fault& f) { return IsOfFolder(f.kind) && (told_late || was_on(f)); })) {
      return true;
    }
    if (!job_.job.spec.resume.job.empty() && CannotGoOn()) return true;
    const bool names_stages = absl::StrContains(message, "missing after");
    // Who was denied the folder is not asked again before it is started anew, and the message says
    // so.
    if (names_stages && absl::StrContains(message, "did not see the folder of checkpoints") &&
        Struck([](const Fault& f) {
          return (f.kind == Fault::Kind::kHostFolder || f.kind == Fault::Kind::kFolderFails) &&
                 f.other == static_cast<int>(absl::StatusCode::kPermissionDenied);
        })) {
      return true;
    }
    const double patience = job_.job.spec.pipeline.replacement_timeout_seconds;
    const auto away_for_long = [patience](const Fault& f) {
      return TakesStages(f.kind) && f.until - f.at >= patience;
    };
    return names_stages && Struck(away_for_long);
  }

  // The other job came to its end meanwhile, or the checkpoint that this one began with is broken.
  bool CannotGoOn() const {
    if (absl::StrContains(job_.message, "ask for more steps")) return true;
    const bool names_it = absl::StrContains(job_.message, "search for a checkpoint") ||
                          absl::StrContains(job_.message, "find_checkpoint") ||
                          absl::StrContains(job_.message, "resume_job=") ||
                          absl::StrContains(job_.message, "resume.step: ") ||
                          absl::StrContains(job_.message, "MANIFEST.json");
    return names_it && Struck([](const Fault& f) { return f.kind == Fault::Kind::kRot; });
  }

  const Scenario& scenario_;
  const WorldEnding& ending_;
  const JobEnding& job_;
  const Truth& truth_;
  std::vector<std::string> wrong_;
};

}  // namespace

Truth ResultOf(const JobEnding& ending) {
  Truth truth;
  truth.checkpoints = ending.checkpoints;
  for (const JobRecord& record : ending.records) {
    if (record.kind == RecordKind::kStep) {
      truth.steps[record.step] = {record.loss, record.gradient_norm, record.learning_rate};
    }
    if (record.kind == RecordKind::kEvaluation) {
      truth.evaluations[record.step] = EvaluationOf(record);
    }
    if (record.kind == RecordKind::kFinished) truth.digest = record.weights_digest;
  }
  return truth;
}

const Truth& TruthOf(int family) {
  static std::map<int, Truth>* const truths = new std::map<int, Truth>();
  const auto found = truths->find(family);
  if (found != truths->end()) return found->second;
  World world(Undisturbed(family), {});
  const WorldEnding ending = world.Run(kBoundSeconds);
  CHECK(ending.jobs.at(0).phase == JobPhase::kSucceeded) << ending.jobs[0].message;
  return (*truths)[family] = ResultOf(ending.jobs[0]);
}

std::vector<std::string> Violations(const Scenario& scenario, const WorldEnding& ending) {
  std::vector<std::string> violations;
  for (const JobEnding& job : ending.jobs) {
    const std::vector<std::string> wrong = Judge(scenario, ending, job).Look();
    violations.insert(violations.end(), wrong.begin(), wrong.end());
  }
  return violations;
}

}  // namespace stagecoach
