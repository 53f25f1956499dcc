#include "stage/data/formats/left_out.h"

#include <algorithm>
#include <iterator>
#include <tuple>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/utf8.h"

namespace stagecoach {
namespace {

constexpr size_t kMostEndingBytes = 16;
constexpr const char* kOtherPictures[] = {".avif", ".bmp", ".gif", ".heic", ".heif",
                                          ".ico",  ".jp2", ".jxl", ".pbm",  ".pgm",
                                          ".pnm",  ".ppm", ".psd", ".tga"};

// ".tar.gz" of "0.tar.gz"; "without an ending" of "readme".
std::string EndingOf(const std::string& name) {
  const size_t dot = name.rfind('.');
  if (dot == std::string::npos || name.size() - dot > kMostEndingBytes) return "without an ending";
  const size_t tar = name.substr(0, dot).rfind(".tar");
  const bool packed = tar != std::string::npos && tar + 4 == dot;
  return absl::AsciiStrToLower(ShownName(name.substr(packed ? tar : dot)));
}

}  // namespace

void LeftOut::Add(const std::string& name, const std::string& why) {
  if (name.starts_with('.')) {
    ++counts_[{"with a dot in front", ""}];
    return;
  }
  const std::string ending = EndingOf(name);
  const bool picture = std::find(std::begin(kOtherPictures), std::end(kOtherPictures), ending) !=
                       std::end(kOtherPictures);
  const std::string reason = picture ? "a format that is not read: write PNG" : "";
  ++counts_[{ending, why.empty() ? reason : why}];
}

void LeftOut::Add(const LeftOut& others) {
  for (const auto& [kind, count] : others.counts_) counts_[kind] += count;
}

std::string LeftOut::Text() const {
  std::vector<std::tuple<int64_t, std::string>> parts;
  for (const auto& [kind, count] : counts_) {
    const auto& [ending, reason] = kind;
    parts.emplace_back(-count,
                       absl::StrCat(count, " ", ending, reason.empty() ? "" : ", ", reason));
  }
  std::sort(parts.begin(), parts.end());
  int64_t others = 0;
  for (size_t i = kMostLeftOutKinds; i < parts.size(); ++i) others -= std::get<0>(parts[i]);
  parts.resize(std::min(parts.size(), kMostLeftOutKinds));
  std::string text = absl::StrJoin(
      parts, "; ", [](std::string* out, const auto& part) { out->append(std::get<1>(part)); });
  if (others > 0) absl::StrAppend(&text, "; ", others, " others");
  return text;
}

}  // namespace stagecoach
