#include "coordinator/journal/merged_runs.h"

#include <algorithm>
#include <filesystem>
#include <map>
#include <memory>
#include <set>
#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/errors/status.h"
#include "base/job_name.h"
#include "coordinator/journal/journal.h"

namespace stagecoach {
namespace {

namespace fs = std::filesystem;

constexpr int kRecordsAtATime = 1000;

// The journal of a run, opened as a copy: opening one writes to it.
absl::StatusOr<std::unique_ptr<Journal>> OpenCopy(const fs::path& run, const fs::path& copy) {
  for (const char* part : {"", "-wal"}) {
    const fs::path from = run / absl::StrCat("journal.sqlite", part);
    std::error_code error;
    if (*part != '\0' && !fs::exists(from, error)) continue;
    fs::copy_file(from, copy.string() + part, fs::copy_options::overwrite_existing, error);
    if (error) return absl::UnavailableError(absl::StrCat(from.string(), ": ", error.message()));
  }
  return Journal::Open(copy.string());
}

struct RunJob {
  Journal* journal = nullptr;
  std::string run;  // its name
  JournalJob job;
};

absl::Status AppendJobs(Journal& journal, const std::string& run, std::vector<RunJob>* jobs) {
  return journal.EachJob([&](const JournalJob& job) { jobs->push_back({&journal, run, job}); });
}

// By id, of how many runs it is.
std::map<std::string, int> CountIds(const std::vector<RunJob>& jobs) {
  std::map<std::string, int> count;
  for (const RunJob& each : jobs) ++count[each.job.id];
  return count;
}

std::string FreeId(const RunJob& job, const std::set<std::string>& taken) {
  if (IsJobName(job.run) && !taken.contains(job.run)) return job.run;
  for (int number = 2;; ++number) {
    const std::string end = absl::StrCat("-", number);
    const std::string id = absl::StrCat(job.job.id.substr(0, kMaxJobNameLength - end.size()), end);
    if (!taken.contains(id)) return id;
  }
}

// Up to one that cannot be read.
absl::Status CopyRecords(Journal& from, const std::string& id, Journal& to, JournalUpdate update) {
  uint64_t after = 0;
  while (true) {
    absl::StatusOr<std::vector<JobRecord>> records = from.Records(id, after, kRecordsAtATime);
    if (!records.ok() && !absl::IsDataLoss(records.status())) return records.status();
    if (!records.ok() || records->empty()) break;
    after = records->back().number;
    update.records = *std::move(records);
    RETURN_IF_ERROR(to.Write({&update, 1}));
  }
  return absl::OkStatus();
}

absl::Status CopyJob(const RunJob& run_job, const std::string& id, uint64_t sequence, Journal& to) {
  JournalJob job = run_job.job;
  job.id = id;
  job.sequence = sequence;
  RETURN_IF_ERROR(to.AddJob(job));
  Journal& from = *run_job.journal;
  JournalUpdate update{.job = id, .state = job.state};
  if (absl::StatusOr<ShownTexts> shown = from.Shown(run_job.job.id); shown.ok()) {
    update.shown = *std::move(shown);
    RETURN_IF_ERROR(to.Write({&update, 1}));
    update.shown = {};
  }
  return CopyRecords(from, run_job.job.id, to, std::move(update));
}

}  // namespace

absl::StatusOr<std::vector<std::string>> MergeRuns(const std::vector<std::string>& run_folders,
                                                   const std::string& folder) {
  std::vector<std::string> left_out;
  std::vector<std::unique_ptr<Journal>> journals;
  std::vector<RunJob> jobs;
  for (const std::string& run : run_folders) {
    const fs::path copy = fs::path(folder) / absl::StrCat("run-", journals.size(), ".sqlite");
    absl::StatusOr<std::unique_ptr<Journal>> journal = OpenCopy(run, copy);
    absl::Status status = journal.status();
    const size_t before = jobs.size();
    if (status.ok()) status = AppendJobs(**journal, fs::path(run).filename().string(), &jobs);
    if (status.ok()) {
      journals.push_back(*std::move(journal));
      continue;
    }
    jobs.erase(jobs.begin() + static_cast<ptrdiff_t>(before), jobs.end());
    left_out.push_back(absl::StrCat(run, ": ", status.message()));
  }
  // What changed on the disk is no job to show: whose it was nobody knows.
  std::erase_if(jobs, [&](const RunJob& each) {
    if (each.job.intact && IsJobName(each.job.id)) return false;
    left_out.push_back(absl::StrCat("run ", each.run, ": an entry of its journal has changed"));
    return true;
  });
  std::stable_sort(jobs.begin(), jobs.end(), [](const RunJob& a, const RunJob& b) {
    return a.job.submitted_unix_seconds < b.job.submitted_unix_seconds;
  });
  ASSIGN_OR_RETURN(const std::unique_ptr<Journal> merged,
                   Journal::Open((fs::path(folder) / "journal.sqlite").string()));
  const std::map<std::string, int> count = CountIds(jobs);
  std::set<std::string> taken;
  for (const auto& [id, runs] : count) taken.insert(id);
  uint64_t sequence = 0;
  for (const RunJob& each : jobs) {
    const std::string id = count.at(each.job.id) == 1 ? each.job.id : FreeId(each, taken);
    taken.insert(id);
    RETURN_IF_ERROR(CopyJob(each, id, ++sequence, *merged));
  }
  journals.clear();
  for (size_t i = 0; i <= run_folders.size(); ++i) {
    for (const char* part : {"", "-wal", "-shm"}) {
      std::error_code error;
      fs::remove(fs::path(folder) / absl::StrCat("run-", i, ".sqlite", part), error);
    }
  }
  return left_out;
}

}  // namespace stagecoach
