#include <algorithm>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/errors/status.h"
#include "network/names/name_tables.h"

namespace stagecoach {
namespace {

enum class VitPart { kEmbedding, kAttention, kMlp, kHead };

// What stands in the place of the beginning of a path; the rest of it, as "weight", is the same.
struct VitRow {
  VitPart part;
  const char* ours;
  const char* torchvision;
  const char* timm;
  const char* older = nullptr;  // of torchvision
};

constexpr VitRow kVitRows[] = {
    {VitPart::kEmbedding, "patch.", "conv_proj.", "patch_embed.proj."},
    {VitPart::kEmbedding, "class_token", "class_token", "cls_token"},
    {VitPart::kEmbedding, "position", "encoder.pos_embedding", "pos_embed"},
    {VitPart::kAttention, "layer_norm.", "ln_1.", "norm1."},
    {VitPart::kAttention, "attention.qkv.", "self_attention.in_proj_", "attn.qkv."},
    {VitPart::kAttention, "attention.proj.", "self_attention.out_proj.", "attn.proj."},
    {VitPart::kMlp, "layer_norm.", "ln_2.", "norm2."},
    {VitPart::kMlp, "mlp.up.", "mlp.0.", "mlp.fc1.", "mlp.linear_1."},
    {VitPart::kMlp, "mlp.down.", "mlp.3.", "mlp.fc2.", "mlp.linear_2."},
    {VitPart::kHead, "layer_norm.", "encoder.ln.", "norm."},
    {VitPart::kHead, "linear.", "heads.head.", "head."},
};

// A block is two layers, between the embedding and the head.
VitPart PartOf(const Network& network, const NetworkLayer& layer) {
  if (layer.index == 0) return VitPart::kEmbedding;
  if (layer.index + 1 == static_cast<int>(network.layers.size())) return VitPart::kHead;
  return layer.index % 2 == 1 ? VitPart::kAttention : VitPart::kMlp;
}

std::string PrefixOf(VitPart part, const NetworkLayer& layer, bool timm) {
  if (part == VitPart::kEmbedding || part == VitPart::kHead) return "";
  const int block = (layer.index - 1) / 2;
  return timm ? absl::StrCat("blocks.", block, ".")
              : absl::StrCat("encoder.layers.encoder_layer_", block, ".");
}

WeightPart PartFor(const WeightName& name, VitPart part, const std::string& path,
                   std::string tensor) {
  if (name.shape.rank() == 4) return ConvolutionTensor(std::move(tensor), name.shape);
  const bool rows = part == VitPart::kEmbedding && (path == "class_token" || path == "position");
  return rows ? TensorWithOnes(std::move(tensor), name.shape)
              : WholeTensor(std::move(tensor), name.shape);
}

bool BeginsWithPatches(const Network& network) {
  return !network.layers.empty() &&
         absl::StartsWith(network.layers.front().function, "patch_embedding:");
}

}  // namespace

void MarkPositions(const Network& network, std::vector<WeightName>* names) {
  if (!BeginsWithPatches(network)) return;
  const NetworkLayer& embedding = network.layers.front();
  const std::string prefix = NamePrefix(embedding.index);
  const auto named = [names, &prefix](const char* path) {
    return std::find_if(names->begin(), names->end(),
                        [&](const WeightName& name) { return name.ours == prefix + path; });
  };
  const auto weight = named("patch.weight"), positions = named("position");
  // A network may come from another program: its function is a claim.
  if (weight == names->end() || positions == names->end() || embedding.inputs.empty()) return;
  const Shape& image = network.wire(embedding.inputs.front()).type.shape;
  const Shape& patch = weight->shape;
  if (image.rank() != 3 || patch.rank() != 4 || patch.elements() == 0) return;
  if (positions->shape.rank() != 2) return;
  const GridSize size{.height = image[0] / patch[1], .width = image[1] / patch[2]};
  const int64_t patches = size.height * size.width;
  if (patches < 1 || patches > positions->shape[0]) return;
  positions->patches = {.first_row = positions->shape[0] - patches, .size = size};
}

absl::Status NameVit(const Network& network, std::string_view program, WeightTable* table) {
  if (network.layers.size() < 2 || !BeginsWithPatches(network) ||
      network.layers.back().function != "class_token_head") {
    return absl::InvalidArgumentError("does not begin with patches or end with a class token");
  }
  const bool timm = program == kTimmNames;
  size_t next = 0;
  for (const NetworkLayer& layer : network.layers) {
    const VitPart part = PartOf(network, layer);
    const std::string prefix = PrefixOf(part, layer, timm);
    const auto name = [&](const std::string& path, WeightName* entry) -> absl::Status {
      for (const VitRow& row : kVitRows) {
        if (row.part != part || !absl::StartsWith(path, row.ours)) continue;
        const std::string rest = path.substr(std::string_view(row.ours).size());
        entry->parts = {PartFor(*entry, part, path,
                                absl::StrCat(prefix, timm ? row.timm : row.torchvision, rest))};
        if (!timm && row.older != nullptr) {
          entry->parts[0].aliases = {absl::StrCat(prefix, row.older, rest)};
        }
        return absl::OkStatus();
      }
      return absl::InvalidArgumentError(absl::StrCat("has ", path));
    };
    RETURN_IF_ERROR(ForNamesOf(layer, &next, &table->names, name));
  }
  return absl::OkStatus();
}

}  // namespace stagecoach
