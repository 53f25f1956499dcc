#include "stage/backends/cuda/cudnn/cudnn_offer.h"

#include <algorithm>
#include <iterator>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"

namespace stagecoach::cudnn {
namespace {

// Parts of cuDNN's names of errors that are the machine's: no libnvrtc, a file of cuDNN missing or
// of another version, an old driver, memory, a broken card.
constexpr const char* kOfTheMachine[] = {"PREREQUISITE_MISSING", "SUBLIBRARY",
                                         "INCOMPATIBLE",         "INTERNAL_ERROR",
                                         "EXECUTION_FAILED",     "NOT_INITIALIZED"};

}  // namespace

std::string VersionText(int version) {
  return absl::StrCat(version / 10000, ".", version % 10000 / 100, ".", version % 100);
}

// cuDNN says a status and, behind it, the condition in its source that led there, which may name
// other statuses: "CUDNN_STATUS_NOT_SUPPORTED; Reason: (CUDNN_STATUS_NOT_INITIALIZED == status) ||
// ...".
bool RefusesTheGraph(const std::string& message) {
  for (const absl::string_view line : absl::StrSplit(message, '\n')) {
    const absl::string_view status = line.substr(0, line.find("Reason:"));
    if (std::any_of(std::begin(kOfTheMachine), std::end(kOfTheMachine),
                    [&](const char* part) { return absl::StrContains(status, part); })) {
      return false;
    }
  }
  return true;
}

bool LacksMemory(const std::string& message) {
  return absl::StrContains(message, "ALLOCATION_FAILED");
}

}  // namespace stagecoach::cudnn
