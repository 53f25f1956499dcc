// Names of Hugging Face's models, by the tables of network/names/huggingface_families.h.
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "base/errors/status.h"
#include "base/files/name_patterns.h"
#include "network/names/huggingface_families.h"
#include "network/names/name_tables.h"

namespace stagecoach {
namespace {

using Place = FamilyPlace;

// A block is two layers.
Place PlaceOf(const Network& network, const NetworkLayer& layer) {
  const int layers = static_cast<int>(network.layers.size());
  if (layer.index == 0) return Place::kEmbedding;
  if (layer.index == layers - 1) return Place::kHead;
  if (layer.index == layers - 2) return Place::kBeforeHead;
  return layer.index % 2 == 1 ? Place::kAttention : Place::kMlp;
}

bool IsKind(std::string_view function, std::string_view kind) {
  return function.starts_with(kind) &&
         (function.size() == kind.size() || function[kind.size()] == ':');
}

// Is it a residual of a norm and a layer of that kind, or of the layer with a norm behind it?
bool IsBlock(const ModelNames& family, std::string_view function, std::string_view kind) {
  constexpr std::string_view kBegin = "residual(";
  const size_t end = function.rfind(')');
  if (!function.starts_with(kBegin) || end == function.npos) return false;
  const std::vector<std::string> inner =
      absl::StrSplit(std::string(function.substr(kBegin.size(), end - kBegin.size())), ' ');
  const std::string_view behind = function.substr(end + 1);
  if (family.post_norm) {
    return inner.size() == 1 && IsKind(inner[0], kind) && behind.starts_with(' ') &&
           IsKind(behind.substr(1), family.norm);
  }
  return behind.empty() && inner.size() == 2 && IsKind(inner[0], family.norm) &&
         IsKind(inner[1], kind);
}

bool IsOf(const ModelNames& family, Place place, const std::string& function) {
  switch (place) {
    case Place::kEmbedding:
      return MatchesPattern(family.embedding, function);
    case Place::kAttention:
      return IsBlock(family, function, "attention") &&
             absl::StrContains(function, ":full") != family.causal &&
             absl::StrContains(function, ":rotary=") == family.rotary;
    case Place::kMlp:
      return IsBlock(family, function, family.mlp);
    case Place::kBeforeHead:
      return MatchesPattern(family.before_head, function);
    case Place::kHead:
      return IsKind(function, "linear");
  }
  return false;
}

// Rows of the queries in qkv: the columns of the projection behind the heads.
int64_t QueryRows(const NetworkLayer& layer) {
  for (const ParameterSpec& parameter : layer.parameters) {
    if (parameter.name.ends_with("/attention.proj.weight")) return parameter.shape[1];
  }
  return 0;
}

Shape WithRows(const Shape& shape, int64_t rows) {
  std::vector<int64_t> extents = shape.extents();
  extents[0] = rows;
  return Shape(std::move(extents));
}

// Parts without the family's base in front.
std::vector<WeightPart> PartsOf(const ModelNames& family, const FamilyRow& row, const Shape& shape,
                                const NetworkLayer& layer) {
  switch (row.form) {
    case ArrayForm::kSame:
      return {WholeTensor(row.theirs, shape)};
    case ArrayForm::kInOut:
      return {PermutedTensor(row.theirs, shape, {1, 0})};
    case ArrayForm::kQueryKeyValue:
      break;
  }
  const int64_t queries = QueryRows(layer), keys = (shape[0] - queries) / 2;
  std::vector<WeightPart> parts;
  for (const auto& [name, rows] : {std::pair(family.query, queries), std::pair(family.key, keys),
                                   std::pair(family.value, keys)}) {
    parts.push_back(
        WholeTensor(absl::StrReplaceAll(row.theirs, {{"*", name}}), WithRows(shape, rows)));
  }
  return parts;
}

// A norm's tensor once had another end.
void AddOldNorm(const ModelNames& family, const std::string& tensor, WeightPart* part) {
  if (!family.old_norms) return;
  for (const auto& [now, once] :
       {std::pair(".LayerNorm.weight", "gamma"), std::pair(".LayerNorm.bias", "beta")}) {
    if (!tensor.ends_with(now)) continue;
    part->aliases.push_back(tensor.substr(0, tensor.rfind('.') + 1) + once);
  }
}

// Saved without its head, a network has none of the base in front.
void SetNames(const ModelNames& family, const std::string& block, WeightPart* part) {
  if (part->tensor.starts_with(family.head)) return AddOldNorm(family, part->tensor, part);
  const std::string within = block + part->tensor;
  part->tensor = family.base + within;
  part->aliases = {within};
  AddOldNorm(family, part->tensor, part);
  AddOldNorm(family, within, part);
}

absl::Status NameLayer(const ModelNames& family, Place place, const NetworkLayer& layer,
                       size_t* next, std::vector<WeightName>* names) {
  const std::string block = place == Place::kAttention || place == Place::kMlp
                                ? absl::StrCat(family.blocks, (layer.index - 1) / 2, ".")
                                : "";
  std::vector<const FamilyRow*> missing;
  for (const FamilyRow& row : family.rows) {
    if (row.place == place) missing.push_back(&row);
  }
  const auto name = [&](const std::string& path, WeightName* entry) -> absl::Status {
    for (auto row = missing.begin(); row != missing.end(); ++row) {
      if (path != (*row)->ours) continue;
      entry->parts = PartsOf(family, **row, entry->shape, layer);
      for (WeightPart& part : entry->parts) SetNames(family, block, &part);
      missing.erase(row);
      return absl::OkStatus();
    }
    return absl::InvalidArgumentError(absl::StrCat("has ", entry->ours));
  };
  RETURN_IF_ERROR(ForNamesOf(layer, next, names, name));
  for (const FamilyRow* row : missing) {
    if (row->optional) continue;
    return absl::InvalidArgumentError(
        absl::StrCat("has no ", row->ours, " in layer ", layer.index));
  }
  return absl::OkStatus();
}

// A head that is the embedding has no array of its own.
void AddTiedHead(const ModelNames& family, const Network& network, WeightTable* table) {
  for (const ParameterSpec& parameter : network.layers.back().parameters) {
    if (!parameter.tied() || parameter.tied_to != table->names.front().ours) continue;
    table->copies.push_back(
        {family.head_weight, absl::StrCat(family.base, family.rows.front().theirs)});
  }
  if (family.head_bias != nullptr) {
    table->copies.push_back({family.head_bias_copy, family.head_bias});
  }
}

absl::Status NameFamily(const ModelNames& family, const Network& network, WeightTable* table) {
  constexpr size_t kAround = 3;  // embedding, the layer in front of the head, head
  const size_t layers = network.layers.size();
  if (layers < kAround + 2 || layers % 2 == 0) {
    return absl::InvalidArgumentError(absl::StrCat("has ", layers, " layers"));
  }
  size_t next = 0;
  for (const NetworkLayer& layer : network.layers) {
    const Place place = PlaceOf(network, layer);
    if (!IsOf(family, place, layer.function)) {
      return absl::InvalidArgumentError(
          absl::StrCat("has ", layer.function, " as layer ", layer.index));
    }
    RETURN_IF_ERROR(NameLayer(family, place, layer, &next, &table->names));
  }
  AddTiedHead(family, network, table);
  for (const char* const pattern : family.ignored) table->ignored.emplace_back(pattern);
  return absl::OkStatus();
}

}  // namespace

absl::Status NameGpt2(const Network& network, std::string_view, WeightTable* table) {
  return NameFamily(Gpt2Names(), network, table);
}

absl::Status NameLlama(const Network& network, std::string_view, WeightTable* table) {
  return NameFamily(LlamaNames(), network, table);
}

absl::Status NameBert(const Network& network, std::string_view, WeightTable* table) {
  return NameFamily(BertNames(), network, table);
}

}  // namespace stagecoach
