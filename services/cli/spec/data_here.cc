#include "services/cli/spec/data_here.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <string>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "services/cli/spec/data_check.h"

namespace stagecoach {
namespace {

// Why nothing can be read there; empty if it can.
std::string WhyUnreadable(const std::string& path) {
  struct stat info;
  if (stat(path.c_str(), &info) != 0) return std::strerror(errno);
  if (!S_ISREG(info.st_mode)) return "is not a regular file";
  if (access(path.c_str(), R_OK) != 0) return std::strerror(errno);
  return "";
}

}  // namespace

absl::Status CheckDataHere(const SpecFile& spec_file) {
  if (!spec_file.spec.data().has_text()) return absl::OkStatus();
  const std::string& path = spec_file.spec.data().text().path();
  const std::string why = WhyUnreadable(path);
  if (why.empty()) return CheckContentHere(spec_file);
  return LocateError(spec_file, absl::InvalidArgumentError(absl::StrCat(
                                    "data.text.path: ", path, ": on this machine: ", why)));
}

absl::Status CheckContentHere(const SpecFile& spec_file) {
  ASSIGN_OR_RETURN(const JobSpec spec, ValidateSpecFile(spec_file));
  const absl::Status status = CheckData(spec);
  if (status.ok()) return status;
  return LocateError(
      spec_file,
      absl::Status(status.code(), absl::StrCat(status.message(), " (the file on this machine)")));
}

}  // namespace stagecoach
