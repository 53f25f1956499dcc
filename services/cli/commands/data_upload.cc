#include "services/cli/commands/data_upload.h"

#include <algorithm>
#include <chrono>
#include <string>

#include "absl/strings/str_cat.h"
#include "base/errors/status.h"
#include "base/threads/clock.h"
#include "services/cli/commands/follow_command.h"
#include "services/cli/data/job_data.h"
#include "services/cli/data/local_parts.h"
#include "services/cli/output/progress.h"
#include "services/cli/output/text.h"

namespace stagecoach {
namespace {

constexpr auto kSubmitPause = std::chrono::milliseconds(200);
// A rate of the first moments says nothing.
constexpr double kFirstRateSeconds = 1;

std::string SizeOfFiles(int64_t files, int64_t bytes) {
  return absl::StrCat(FormatBytes(bytes), " in ", files, files == 1 ? " file" : " files");
}

// A line that is drawn over while bytes move.
class ByteBar {
 public:
  ByteBar(std::string what, Console* console) : what_(std::move(what)), console_(console) {}
  ~ByteBar() { console_->ClearBar(); }
  ByteBar(const ByteBar&) = delete;
  ByteBar& operator=(const ByteBar&) = delete;

  void Draw(int64_t done, int64_t total) {
    if (!console_->has_bar() || total == 0) return;
    const double now = SystemClock::Get()->MonotonicSeconds();
    if (first_ < 0) {
      first_ = done;
      began_ = now;
    }
    std::string line = absl::StrCat(what_, ": ", 100 * done / total, " %");
    if (now - began_ >= kFirstRateSeconds && done > first_) {
      const double rate = static_cast<double>(done - first_) / (now - began_);
      absl::StrAppend(&line, ", ", FormatBytes(static_cast<int64_t>(rate)), "/s, ",
                      FormatDuration(static_cast<double>(total - done) / rate), " left");
    }
    console_->DrawBar(LoadingBar(line, console_->columns()));
  }

 private:
  const std::string what_;
  Console* const console_;
  int64_t first_ = -1;  // bytes that were there at the first call
  double began_ = 0;
};

absl::StatusOr<LocalParts> ReadSet(const FileSet& files, CommandContext& context) {
  ByteBar bar("reads the data", context.console);
  DigestCache cache(DigestCache::Path());
  absl::StatusOr<LocalParts> parts = MakeParts(
      files,
      [&](int64_t done, int64_t total) {
        bar.Draw(done, total);
        return !context.stop->requested();
      },
      &cache);
  cache.Save();
  return context.stop->requested() ? context.stop->reason() : std::move(parts);
}

// Files that are others by the same times: the digests that are kept of them are wrong.
void ForgetDigests(const LocalPart& part) {
  DigestCache cache(DigestCache::Path());
  for (const LocalFile* const file : part.files) cache.Forget(*file);
  cache.Save();
}

// A coordinator that restarts is back within seconds, as for a submission.
absl::Status WaitForCoordinator(DataClient& client, StopSignal* stop) {
  const double give_up = SystemClock::Get()->MonotonicSeconds() + kSubmitPatienceSeconds;
  while (true) {
    const absl::Status status = client.PrepareUpload(v1::PrepareUploadRequest()).status();
    if (!absl::IsUnavailable(status)) return status;
    if (SystemClock::Get()->MonotonicSeconds() >= give_up) return status;
    if (stop->WaitFor(kSubmitPause)) return stop->reason();
  }
}

}  // namespace

absl::StatusOr<v1::DataSet> UploadFiles(DataClient& client, const FileSet& files,
                                        const DataSetName& name, CommandContext& context,
                                        const CheckParts& check) {
  Console& console = *context.console;
  RETURN_IF_ERROR(WaitForCoordinator(client, context.stop));
  if (files.hidden() > 0) {
    console.Note(absl::StrCat("leaves out ", files.hidden(),
                              files.hidden() == 1 ? " name that begins" : " names that begin",
                              " with a dot"));
  }
  ASSIGN_OR_RETURN(const LocalParts parts, ReadSet(files, context));
  if (check) RETURN_IF_ERROR(check(parts));
  const std::string all = SizeOfFiles(parts.files, parts.bytes);
  int64_t missing = 0;
  bool began = false;
  absl::StatusOr<v1::DataSet> set = [&] {
    ByteBar bar("uploads the data", &console);
    const OnUploaded draw = [&](int64_t done, int64_t total) {
      if (!began) {
        missing = total;
        console.Note(total == 0 ? absl::StrCat("the cluster has the data: ", all)
                                : absl::StrCat("uploads ", FormatBytes(total), ", of ", all));
      }
      began = true;
      bar.Draw(done, total);
    };
    return Upload(client, parts, name, draw, context.stop, ForgetDigests);
  }();
  if (!set.ok() && context.stop->requested() && missing > 0) {
    console.Note("what was uploaded stays; run the command again to go on there");
  }
  return set;
}

absl::Status UploadDataOf(JobClient& client, v1::JobSpec* spec, CommandContext& context,
                          const JobUpload& upload) {
  ASSIGN_OR_RETURN(const JobData data, FilesOfJob(*spec, upload.not_here));
  if (data.files.files().empty()) return absl::OkStatus();
  ASSIGN_OR_RETURN(const v1::DataSet set,
                   UploadFiles(client.data(), data.files, {.name = "", .again = upload.again},
                               context, upload.check));
  ChangeJobPaths(data, set.id(), spec);
  return absl::OkStatus();
}

}  // namespace stagecoach
