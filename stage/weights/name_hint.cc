#include "stage/weights/name_hint.h"

#include <algorithm>
#include <set>
#include <string_view>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/utf8.h"
#include "network/names/weight_names.h"

namespace stagecoach {
namespace {

using FileNames = std::set<std::string, std::less<>>;

// Does the file have most of the names, behind the prefix?
bool HasMost(const FileNames& file, const std::vector<WeightName>& names,
             const std::string& prefix) {
  const auto has = [&](const WeightName& name) {
    return file.contains(prefix + name.other) ||
           (!name.older.empty() && file.contains(prefix + name.older));
  };
  return 2 * std::count_if(names.begin(), names.end(), has) > std::ssize(names);
}

// Each is compared with all names.
constexpr size_t kMostPrefixes = 16;

// What stands in the file before the name, the shortest one first: "module." of
// "module.conv1.weight".
std::vector<std::string> PrefixesOf(const FileNames& file, const std::string& name) {
  std::vector<std::string> prefixes;
  for (const std::string& other : file) {
    if (other.ends_with("." + name))
      prefixes.push_back(other.substr(0, other.size() - name.size()));
  }
  std::stable_sort(prefixes.begin(), prefixes.end(),
                   [](const std::string& a, const std::string& b) { return a.size() < b.size(); });
  if (prefixes.size() > kMostPrefixes) prefixes.resize(kMostPrefixes);
  return prefixes;
}

std::string PrefixHint(const FileNames& file, const std::vector<WeightName>& names,
                       const std::string& table) {
  // No other name of the table ends with the longest one.
  const std::string& longest =
      std::max_element(names.begin(), names.end(), [](const WeightName& a, const WeightName& b) {
        return a.other.size() < b.other.size();
      })->other;
  for (const std::string& prefix : PrefixesOf(file, longest)) {
    if (!HasMost(file, names, prefix)) continue;
    return absl::StrCat("its tensors have the names of ", table, " behind \"", ShownName(prefix),
                        "\"; write the file without that (docs/formats.md)");
  }
  return "";
}

}  // namespace

std::string NameHint(std::span<const TensorEntry> tensors, const Network& network,
                     const std::string& table) {
  FileNames file;
  for (const TensorEntry& tensor : tensors) file.insert(tensor.name);
  std::vector<std::string> tables = {table};
  for (const std::string_view other : {kOwnNames, kTorchvisionNames, kTimmNames}) {
    if (other != table) tables.emplace_back(other);
  }
  for (const std::string& other : tables) {
    const absl::StatusOr<std::vector<WeightName>> names = WeightNames(network, other);
    if (!names.ok() || names->empty()) continue;
    if (HasMost(file, *names, "")) {
      if (other == table) return "";
      return absl::StrCat("its tensors have the names of ", other, ", not of ", table,
                          "; set initialize.names: ", other);
    }
    if (std::string hint = PrefixHint(file, *names, other); !hint.empty()) return hint;
  }
  return "";
}

}  // namespace stagecoach
