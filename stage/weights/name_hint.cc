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

bool HasAll(const FileNames& file, const WeightName& name, const std::string& prefix) {
  return std::all_of(name.parts.begin(), name.parts.end(), [&](const WeightPart& part) {
    return file.contains(prefix + part.tensor) ||
           std::any_of(part.aliases.begin(), part.aliases.end(),
                       [&](const std::string& alias) { return file.contains(prefix + alias); });
  });
}

// Does the file have most of the arrays, behind the prefix?
bool HasMost(const FileNames& file, const std::vector<WeightName>& names,
             const std::string& prefix) {
  const auto has = [&](const WeightName& name) { return HasAll(file, name, prefix); };
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

std::string LongestTensor(const std::vector<WeightName>& names) {
  std::string longest;
  for (const WeightName& name : names) {
    for (const WeightPart& part : name.parts) {
      if (part.tensor.size() > longest.size()) longest = part.tensor;
    }
  }
  return longest;
}

std::string PrefixHint(const FileNames& file, const std::vector<WeightName>& names,
                       const std::string& table) {
  // No other name of the table ends with the longest one.
  for (const std::string& prefix : PrefixesOf(file, LongestTensor(names))) {
    if (!HasMost(file, names, prefix)) continue;
    return absl::StrCat("its tensors have the names of ", table, " behind \"", ShownName(prefix),
                        "\"; write the file without that (docs/formats.md)");
  }
  return "";
}

// The one array of a network that Hugging Face's file lacks because the embedding is its head.
std::string TiedHint(const FileNames& file, const std::vector<WeightName>& names) {
  std::string missing;
  for (const WeightName& name : names) {
    if (HasAll(file, name, "")) continue;
    if (!missing.empty()) return "";
    missing = name.parts.front().tensor;
  }
  if (missing != "lm_head.weight") return "";
  return absl::StrCat("there is no ", missing,
                      ": the embedding is the head as well; set tied_embeddings: true");
}

// A family of networks by names that all of its files have.
struct Family {
  std::string_view end, other_end;  // of names that the family has
  const char *name, *model;
};
constexpr Family kFamilies[] = {
    {".attn.c_attn.weight", ".mlp.c_fc.weight", "GPT-2", "model.gpt"},
    {".attention.self.query.weight", ".intermediate.dense.weight", "BERT", "model.bert"},
    {".self_attn.q_proj.weight", ".mlp.gate_proj.weight", "Llama", "model.llama"},
};

// For a network that these weights are not of.
std::string FamilyHint(const FileNames& file) {
  const auto has = [&file](std::string_view end) {
    return std::any_of(file.begin(), file.end(),
                       [end](const std::string& name) { return name.ends_with(end); });
  };
  for (const Family& family : kFamilies) {
    if (!has(family.end) || !has(family.other_end)) continue;
    return absl::StrCat(
        "its tensors have Hugging Face's names for a ", family.name,
        ", and the network is another: set initialize.names: ", std::string(kHuggingFaceNames),
        ", and ", family.model, " with the numbers of the config.json beside them");
  }
  return "";
}

}  // namespace

std::string NameHint(std::span<const TensorEntry> tensors, const Network& network,
                     const std::string& table) {
  FileNames file;
  for (const TensorEntry& tensor : tensors) file.insert(tensor.name);
  std::vector<std::string> tables = {table};
  for (const std::string& other : WeightTables()) {
    if (other != table) tables.push_back(other);
  }
  for (const std::string& other : tables) {
    const absl::StatusOr<WeightTable> names = WeightNames(network, other);
    if (!names.ok() || names->names.empty()) continue;
    if (HasMost(file, names->names, "")) {
      if (other == table) return TiedHint(file, names->names);
      return absl::StrCat("its tensors have the names of ", other, ", not of ", table,
                          "; set initialize.names: ", other);
    }
    if (std::string hint = PrefixHint(file, names->names, other); !hint.empty()) return hint;
  }
  return FamilyHint(file);
}

}  // namespace stagecoach
