#include "services/common/process/open_files.h"

#include <algorithm>

namespace stagecoach {
namespace {

rlim_t PartOf(FileShare share) {
  switch (share) {
    case FileShare::kGrpc:
      return 2;
    case FileShare::kHttp:
      return 8;
    case FileShare::kProbes:
      break;
  }
  return 16;
}

}  // namespace

int MostConnections(FileShare share, int asked, rlim_t open_files) {
  return static_cast<int>(std::min(static_cast<rlim_t>(asked), open_files / PartOf(share)));
}

}  // namespace stagecoach
