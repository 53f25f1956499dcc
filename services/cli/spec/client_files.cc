#include "services/cli/spec/client_files.h"

#include <algorithm>
#include <string>
#include <utility>

#include "checkpoint/files/file_system.h"
#include "plan/data/bucket_path.h"
#include "services/cli/spec/data_check.h"
#include "stage/tokens/tokenizer.h"

namespace stagecoach {

bool DataIsClients(const v1::JobSpec& spec) {
  return spec.data().dataset().empty() && spec.data().on_stages().empty();
}

bool AllDataIsClients(const v1::JobSpec& spec, const DataSpec& data) {
  if (!DataIsClients(spec)) return false;
  const std::vector<DataFile> files = DataFiles(data);
  return std::none_of(files.begin(), files.end(),
                      [](const DataFile& file) { return IsClusterPath(file.path); });
}

bool WeightsAreClients(const v1::JobSpec& spec) {
  const v1::Initialize& initialize = spec.initialize();
  return !initialize.from().empty() && initialize.dataset().empty() &&
         initialize.on_stages().empty() && !IsClusterPath(initialize.from());
}

std::vector<DataFile> ClientFiles(const v1::JobSpec& spec, const DataSpec& data) {
  std::vector<DataFile> files;
  if (!DataIsClients(spec)) return files;
  for (const DataFile& file : FilesRead(data, spec.has_write())) {
    if (IsClusterPath(file.path)) continue;
    files.push_back(file);
    if (file.field != "tokenizer" || file.beside) continue;
    const std::string config = TokenizerConfigPath(file.path);
    if (!PosixFileSystem()->Exists(config)) continue;
    files.push_back({.field = file.field, .path = config, .beside = true});
  }
  return files;
}

}  // namespace stagecoach
