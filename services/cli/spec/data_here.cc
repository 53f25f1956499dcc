#include "services/cli/spec/data_here.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/errors/status.h"
#include "base/utf8.h"
#include "plan/data/bucket_path.h"
#include "plan/job/data_kinds.h"
#include "services/cli/spec/client_files.h"
#include "services/cli/spec/data_check.h"
#include "services/cli/spec/file_head.h"
#include "services/cli/spec/weights_here.h"

namespace stagecoach {
namespace {

// Why nothing can be read there; empty if it can.
std::string WhyUnreadable(const DataFile& file) {
  const char* const path = file.path.c_str();
  struct stat info;
  if (stat(path, &info) != 0) return std::strerror(errno);
  if (!file.folder && S_ISDIR(info.st_mode)) return "a folder, not a file; name the file in it";
  if (!file.folder && !S_ISREG(info.st_mode)) return "is not a regular file";
  if (file.folder && !S_ISDIR(info.st_mode)) {
    const std::string kind = OtherKindText(FileHead(file.path).value_or(""), "a folder");
    return kind.empty() ? "is not a folder" : kind;
  }
  if (access(path, file.folder ? R_OK | X_OK : R_OK) != 0) return std::strerror(errno);
  return "";
}

// An error about the content of a file, with its place in the job file.
absl::Status LocateHere(const SpecFile& spec_file, const absl::Status& status) {
  if (status.ok()) return status;
  return LocateError(spec_file, absl::InvalidArgumentError(
                                    absl::StrCat(status.message(), " (the file on this machine)")));
}

}  // namespace

absl::Status CheckDataHere(const ValidSpecFile& spec_file, StagesAre stages) {
  const JobSpec& spec = spec_file.job;
  const v1::JobSpec& given = spec_file.spec;
  const bool here = stages == StagesAre::kHere;
  const std::vector<DataFile> files =
      here ? FilesRead(spec.data, spec.write.has_value()) : ClientFiles(given, spec.data);
  for (const DataFile& file : files) {
    const std::string why = WhyUnreadable(file);
    if (why.empty()) continue;
    return LocateError(
        spec_file, absl::InvalidArgumentError(absl::StrCat(DataFieldPath(spec.data, file), ": ",
                                                           file.path, ": on this machine: ", why)));
  }
  if (here || WeightsAreClients(given)) {
    RETURN_IF_ERROR(LocateHere(spec_file, CheckWeightsHere(spec, spec_file.network)));
  }
  if (!here && !DataIsClients(given)) return absl::OkStatus();
  return LocateHere(spec_file, CheckDataFiles(spec, spec_file.network));
}

absl::Status CheckAllIsHere(const ValidSpecFile& spec_file) {
  std::string field, what;
  for (const DataFile& file : DataFiles(spec_file.job.data)) {
    if (!IsClusterPath(file.path)) continue;
    field = DataFieldPath(spec_file.job.data, file);
    what = file.path;
  }
  if (IsClusterPath(spec_file.job.initialize.from)) {
    field = "initialize.from";
    what = spec_file.job.initialize.from;
  }
  const v1::JobSpec& spec = spec_file.spec;
  if (!spec.initialize().dataset().empty()) {
    field = "initialize.dataset";
    what = spec.initialize().dataset();
  }
  if (!spec.data().dataset().empty()) {
    field = "data.dataset";
    what = spec.data().dataset();
  }
  if (field.empty()) return absl::OkStatus();
  return LocateError(
      spec_file,
      absl::InvalidArgumentError(absl::StrCat(
          field, ": ", ShownName(what),
          IsBucketPath(what) ? ": is in a bucket, which `stagecoach local` does not read; download "
                               "it and name the files on this machine"
                             : ": a cluster keeps it, and `stagecoach local` asks none; name the "
                               "files on this machine",
          ", or use `stagecoach submit`")));
}

}  // namespace stagecoach
