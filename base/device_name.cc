#include "base/device_name.h"

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"

namespace stagecoach {
namespace {

constexpr char kPrefix[] = "cuda:";
constexpr size_t kPrefixLength = sizeof(kPrefix) - 1;
constexpr int kMostOrdinals = 1024;

}  // namespace

bool IsCudaDevice(const std::string& device) {
  return device == "cuda" || absl::StartsWith(device, kPrefix);
}

absl::StatusOr<int> ParseCudaDevice(const std::string& device) {
  if (device == "cuda") return 0;
  int ordinal = 0;
  if (absl::StartsWith(device, kPrefix)) {
    const std::string number = device.substr(kPrefixLength);
    // SimpleAtoi takes signs and spaces too.
    const bool digits = std::all_of(number.begin(), number.end(),
                                    [](unsigned char c) { return absl::ascii_isdigit(c); });
    if (digits && absl::SimpleAtoi(number, &ordinal) && ordinal < kMostOrdinals) return ordinal;
  }
  return absl::InvalidArgumentError(absl::StrCat(
      "device ", device, ": want cuda or cuda:N with the card's number, as in cuda:0"));
}

}  // namespace stagecoach
