#include "services/cli/spec/beside_job_file.h"

#include <filesystem>
#include <system_error>

#include "plan/data/bucket_path.h"

namespace stagecoach {
namespace {

// The same path without "..", each resolved as the system does: behind a link it leaves the folder
// that the link leads to. Of what is not on this machine the text is all there is.
std::string WithoutDotdots(const std::filesystem::path& path) {
  std::filesystem::path walked;
  for (const std::filesystem::path& name : path) {
    if (name == "..") {
      std::error_code error;
      const std::filesystem::path real = std::filesystem::canonical(walked, error);
      walked = (error ? walked : real).parent_path();
    } else if (!name.empty() && name != ".") {
      walked /= name;
    }
  }
  return walked.string();
}

}  // namespace

std::string BesideJobFile(const std::string& file, const std::string& path) {
  if (IsClusterPath(path) || IsMisspeltBucketPath(path)) return path;
  const std::filesystem::path folder = std::filesystem::absolute(file).parent_path();
  return WithoutDotdots(folder / path);  // an absolute one is left
}

}  // namespace stagecoach
