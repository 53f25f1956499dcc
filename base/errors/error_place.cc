#include "base/errors/error_place.h"

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

namespace stagecoach {
namespace {

constexpr char kPlace[] = " [at ";

}  // namespace

std::string TextAt(const std::string& text, const std::string& place) {
  const size_t last = text.rfind(kPlace);
  // The bracket at the end closes a place only if none was opened behind it.
  const bool has_place = last != std::string::npos && absl::EndsWith(text, "]") &&
                         text.find('[', last + 2) == std::string::npos;
  if (!has_place) return absl::StrCat(text, kPlace, place, "]");
  return absl::StrCat(text.substr(0, text.size() - 1), "; ", place, "]");
}

absl::Status AnnotateAt(const absl::Status& status, const std::string& place) {
  if (status.ok()) return status;
  absl::Status placed(status.code(), TextAt(std::string(status.message()), place));
  status.ForEachPayload([&placed](absl::string_view url, const absl::Cord& payload) {
    placed.SetPayload(url, payload);
  });
  return placed;
}

}  // namespace stagecoach
