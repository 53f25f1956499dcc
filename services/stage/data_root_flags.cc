#include "services/stage/data_root_flags.h"

#include <spdlog/spdlog.h>

#include <filesystem>
#include <string>
#include <system_error>
#include <vector>

namespace stagecoach {

absl::StatusOr<std::unique_ptr<DataRoots>> MakeDataRoots(const StageFlags& flags,
                                                         DataSets* data_sets) {
  std::vector<std::string> never;
  for (const std::string& path :
       {flags.state_dir, flags.server.tls.server_key, flags.server.http_token_file}) {
    if (!path.empty()) never.push_back(path);
  }
  for (const std::string& root : flags.data_roots) {
    if (root.empty()) {
      return absl::InvalidArgumentError("--data-root: is empty; name a folder or a file of data");
    }
    std::error_code error;
    // A volume may be mounted later, so this is no reason not to start.
    if (!std::filesystem::exists(root, error)) {
      spdlog::warn("--data-root={}: is not there yet; jobs with files beneath it will fail", root);
    }
  }
  if (!flags.data_roots.empty()) {
    return std::make_unique<DataRoots>(DataRoots::Options{.roots = flags.data_roots,
                                                          .follow_links = flags.data_follow_links,
                                                          .never = std::move(never),
                                                          .cache_folder = flags.cache_dir,
                                                          .data_sets = data_sets});
  }
  if (flags.data_follow_links) {
    return absl::InvalidArgumentError(
        "--data-follow-links: says how files beneath a --data-root are read; name one");
  }
  if (IsLoopback(flags.server.listen)) {
    spdlog::info("no --data-root: jobs may read every file that this process may read");
    return DataRoots::Everything(std::move(never), flags.cache_dir, data_sets);
  }
  spdlog::warn(
      "no --data-root: jobs that read files of this machine are refused; name the folder of the "
      "data");
  return std::make_unique<DataRoots>(
      DataRoots::Options{.cache_folder = flags.cache_dir, .data_sets = data_sets});
}

}  // namespace stagecoach
