// GPT-2's names, and those of Llama, which Mistral, Qwen2 and Qwen3 have too.
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/errors/status.h"
#include "network/names/name_tables.h"

namespace stagecoach {
namespace {

enum class Place { kEmbedding, kAttention, kMlp, kNorm, kHead };

// How the library stores an array. kInOut: [in, out]. kQueryKeyValue: as q_proj, k_proj and v_proj.
enum class Form { kSame, kInOut, kQueryKeyValue };

struct Row {
  Place place;
  const char* ours;
  const char* theirs;
  Form form = Form::kSame;
  bool optional = false;
};

struct Family {
  const char *base, *blocks;  // prefixes of names; a whole network's and, within it, a block's
  const char *norm, *mlp;     // kinds of layers
  bool rotary;
  std::vector<Row> rows;
};

constexpr char kHead[] = "lm_head.weight";  // beside the base, not within

const Family& Gpt2() {
  static const auto* const kFamily = new Family{
      .base = "transformer.",
      .blocks = "h.",
      .norm = "layer_norm",
      .mlp = "mlp",
      .rotary = false,
      .rows = {{Place::kEmbedding, "token.weight", "wte.weight"},
               {Place::kEmbedding, "position.weight", "wpe.weight"},
               {Place::kAttention, "layer_norm.weight", "ln_1.weight"},
               {Place::kAttention, "layer_norm.bias", "ln_1.bias"},
               {Place::kAttention, "attention.qkv.weight", "attn.c_attn.weight", Form::kInOut},
               {Place::kAttention, "attention.qkv.bias", "attn.c_attn.bias"},
               {Place::kAttention, "attention.proj.weight", "attn.c_proj.weight", Form::kInOut},
               {Place::kAttention, "attention.proj.bias", "attn.c_proj.bias"},
               {Place::kMlp, "layer_norm.weight", "ln_2.weight"},
               {Place::kMlp, "layer_norm.bias", "ln_2.bias"},
               {Place::kMlp, "mlp.up.weight", "mlp.c_fc.weight", Form::kInOut},
               {Place::kMlp, "mlp.up.bias", "mlp.c_fc.bias"},
               {Place::kMlp, "mlp.down.weight", "mlp.c_proj.weight", Form::kInOut},
               {Place::kMlp, "mlp.down.bias", "mlp.c_proj.bias"},
               {Place::kNorm, "weight", "ln_f.weight"},
               {Place::kNorm, "bias", "ln_f.bias"}}};
  return *kFamily;
}

const Family& Llama() {
  constexpr bool kOptional = true;
  static const auto* const kFamily = new Family{
      .base = "model.",
      .blocks = "layers.",
      .norm = "rms_norm",
      .mlp = "swiglu",
      .rotary = true,
      .rows = {{Place::kEmbedding, "token.weight", "embed_tokens.weight"},
               {Place::kAttention, "rms_norm.weight", "input_layernorm.weight"},
               {Place::kAttention, "attention.qkv.weight", "weight", Form::kQueryKeyValue},
               {Place::kAttention, "attention.qkv.bias", "bias", Form::kQueryKeyValue, kOptional},
               {Place::kAttention, "attention.query_norm.weight", "self_attn.q_norm.weight",
                Form::kSame, kOptional},
               {Place::kAttention, "attention.key_norm.weight", "self_attn.k_norm.weight",
                Form::kSame, kOptional},
               {Place::kAttention, "attention.proj.weight", "self_attn.o_proj.weight"},
               {Place::kAttention, "attention.proj.bias", "self_attn.o_proj.bias", Form::kSame,
                kOptional},
               {Place::kMlp, "rms_norm.weight", "post_attention_layernorm.weight"},
               {Place::kMlp, "swiglu.gate.weight", "mlp.gate_proj.weight"},
               {Place::kMlp, "swiglu.up.weight", "mlp.up_proj.weight"},
               {Place::kMlp, "swiglu.down.weight", "mlp.down_proj.weight"},
               {Place::kNorm, "weight", "norm.weight"}}};
  return *kFamily;
}

// A block is two layers, between the embedding and the norm in front of the head.
Place PlaceOf(const Network& network, const NetworkLayer& layer) {
  const int layers = static_cast<int>(network.layers.size());
  if (layer.index == 0) return Place::kEmbedding;
  if (layer.index == layers - 1) return Place::kHead;
  if (layer.index == layers - 2) return Place::kNorm;
  return layer.index % 2 == 1 ? Place::kAttention : Place::kMlp;
}

bool IsKind(std::string_view function, std::string_view kind) {
  return function.starts_with(kind) &&
         (function.size() == kind.size() || function[kind.size()] == ':');
}

// Is it a residual of a norm and a layer of that kind?
bool IsBlock(const Family& family, const std::string& function, std::string_view kind) {
  constexpr std::string_view kBegin = "residual(";
  if (!function.starts_with(kBegin) || !function.ends_with(')')) return false;
  const std::vector<std::string> inner =
      absl::StrSplit(function.substr(kBegin.size(), function.size() - kBegin.size() - 1), ' ');
  return inner.size() == 2 && IsKind(inner[0], family.norm) && IsKind(inner[1], kind);
}

bool IsOf(const Family& family, Place place, const std::string& function) {
  switch (place) {
    case Place::kEmbedding:
      return function == "embedding";
    case Place::kAttention:
      return IsBlock(family, function, "attention") && !absl::StrContains(function, ":full") &&
             absl::StrContains(function, ":rotary=") == family.rotary;
    case Place::kMlp:
      return IsBlock(family, function, family.mlp);
    case Place::kNorm:
      return IsKind(function, family.norm);
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
std::vector<WeightPart> PartsOf(const Row& row, const Shape& shape, const NetworkLayer& layer) {
  switch (row.form) {
    case Form::kSame:
      return {WholeTensor(row.theirs, shape)};
    case Form::kInOut:
      return {PermutedTensor(row.theirs, shape, {1, 0})};
    case Form::kQueryKeyValue:
      break;
  }
  const int64_t queries = QueryRows(layer), keys = (shape[0] - queries) / 2;
  std::vector<WeightPart> parts;
  for (const auto& [name, rows] :
       {std::pair("q_proj.", queries), std::pair("k_proj.", keys), std::pair("v_proj.", keys)}) {
    parts.push_back(
        WholeTensor(absl::StrCat("self_attn.", name, row.theirs), WithRows(shape, rows)));
  }
  return parts;
}

// The names of one layer. Saved without its head, a network has none of the base in front.
absl::Status NameLayer(const Family& family, Place place, const NetworkLayer& layer, size_t* next,
                       std::vector<WeightName>* names) {
  const std::string block = place == Place::kAttention || place == Place::kMlp
                                ? absl::StrCat(family.blocks, (layer.index - 1) / 2, ".")
                                : "";
  std::vector<const Row*> missing;
  for (const Row& row : family.rows) {
    if (row.place == place) missing.push_back(&row);
  }
  const auto name = [&](const std::string& path, WeightName* entry) -> absl::Status {
    if (place == Place::kHead && path == "weight") {
      entry->parts = {WholeTensor(kHead, entry->shape)};
      return absl::OkStatus();
    }
    for (auto row = missing.begin(); row != missing.end(); ++row) {
      if (path != (*row)->ours) continue;
      entry->parts = PartsOf(**row, entry->shape, layer);
      for (WeightPart& part : entry->parts) {
        part.alias = block + part.tensor;
        part.tensor = family.base + part.alias;
      }
      missing.erase(row);
      return absl::OkStatus();
    }
    return absl::InvalidArgumentError(absl::StrCat("has ", entry->ours));
  };
  RETURN_IF_ERROR(ForNamesOf(layer, next, names, name));
  for (const Row* row : missing) {
    if (row->optional) continue;
    return absl::InvalidArgumentError(
        absl::StrCat("has no ", row->ours, " in layer ", layer.index));
  }
  return absl::OkStatus();
}

// A head that is the embedding has no array of its own.
void AddTiedHead(const Family& family, const Network& network, WeightTable* table) {
  for (const ParameterSpec& parameter : network.layers.back().parameters) {
    if (!parameter.tied() || parameter.tied_to != table->names.front().ours) continue;
    table->copies.push_back({kHead, absl::StrCat(family.base, family.rows.front().theirs)});
  }
}

absl::Status NameFamily(const Family& family, const Network& network, WeightTable* table) {
  constexpr size_t kAround = 3;  // embedding, norm and head
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
  // Masks and angles, which earlier versions of the library stored.
  for (const char* buffer : {"*.attn.bias", "*.attn.masked_bias", "*rotary_emb.inv_freq"}) {
    table->ignored.emplace_back(buffer);
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status NameGpt2(const Network& network, std::string_view, WeightTable* table) {
  return NameFamily(Gpt2(), network, table);
}

absl::Status NameLlama(const Network& network, std::string_view, WeightTable* table) {
  return NameFamily(Llama(), network, table);
}

}  // namespace stagecoach
