#include "network/zoo/resnet.h"

#include <map>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/errors/field_check.h"
#include "base/errors/status.h"
#include "network/layers/linear.h"
#include "network/layers/norms.h"
#include "network/layers/pools.h"
#include "network/network_kind.h"
#include "network/zoo/image_network_writer.h"

namespace stagecoach {
namespace {

// Of the bottleneck's last convolution.
constexpr int64_t kExpansion = 4;

// What depth and form stand for.
struct Layout {
  std::vector<int64_t> blocks;  // of each stage
  bool bottlenecks = false;
  int64_t width = 0;
  bool large_stem = false;
};

// Table 1 of the paper.
const std::map<int64_t, Layout>& ImagenetLayouts() {
  static const auto* const layouts =
      new std::map<int64_t, Layout>{{18, {.blocks = {2, 2, 2, 2}}},
                                    {34, {.blocks = {3, 4, 6, 3}}},
                                    {50, {.blocks = {3, 4, 6, 3}, .bottlenecks = true}},
                                    {101, {.blocks = {3, 4, 23, 3}, .bottlenecks = true}},
                                    {152, {.blocks = {3, 8, 36, 3}, .bottlenecks = true}}};
  return *layouts;
}

absl::StatusOr<Layout> FormOf(const ResnetSpec& spec, const std::string& path) {
  Layout layout;
  if (spec.form == ResnetForm::kImagenet) {
    const auto found = ImagenetLayouts().find(spec.depth);
    if (found == ImagenetLayouts().end()) {
      return FieldError(path + ".depth", absl::StrCat(spec.depth),
                        "must be 18, 34, 50, 101 or 152 with form: imagenet");
    }
    layout = found->second;
  } else {
    if (spec.depth % 6 != 2) {
      const int64_t below = (spec.depth - 2) / 6 * 6 + 2;
      const char* const other = ImagenetLayouts().contains(spec.depth)
                                    ? "; or is it the one for ImageNet? Give form: imagenet"
                                    : "";
      return FieldError(path + ".depth", absl::StrCat(spec.depth),
                        absl::StrCat("must be 6n + 2, as ", below, " or ", below + 6, other));
    }
    const int64_t blocks = (spec.depth - 2) / 6;
    layout.blocks = {blocks, blocks, blocks};
  }
  layout.width = spec.width > 0 ? spec.width : spec.form == ResnetForm::kImagenet ? 64 : 16;
  layout.large_stem = spec.stem == ResnetStem::kOfForm ? spec.form == ResnetForm::kImagenet
                                                       : spec.stem == ResnetStem::kImagenet;
  return layout;
}

int64_t WidestOf(const Layout& layout) {
  return (layout.width << (layout.blocks.size() - 1)) * (layout.bottlenecks ? kExpansion : 1);
}

struct Block {
  int64_t channels = 0, stride = 1;
  bool bottleneck = false;
  int64_t out() const { return bottleneck ? channels * kExpansion : channels; }
};

class ResnetWriter {
 public:
  ResnetWriter(const ResnetSpec& spec, const Layout& layout, const std::string& path)
      : spec_(spec),
        layout_(layout),
        writer_({spec.image, spec.classes},
                spec.norm == ResnetNorm::kGroup ? LayerSpec(GroupNormSpec{.groups = spec.groups})
                                                : LayerSpec(BatchNormSpec{}),
                path) {}

  absl::StatusOr<Network> Write() {
    RETURN_IF_ERROR(Add("stem",
                        FunctionOf(layout_.large_stem ? "resnet_imagenet_stem" : "resnet_stem"),
                        [this](ValueId x, LayerPieces& layer) { return Stem(x, layer); }));
    RETURN_IF_ERROR(AddBlocks());
    RETURN_IF_ERROR(Add("head", "resnet_head",
                        [this](ValueId x, LayerPieces& layer) { return Head(x, layer); }));
    return writer_.Finish(last_);
  }

 private:
  template <typename Write>
  absl::Status Add(const std::string& label, const std::string& function, const Write& write) {
    const auto layer = [&](const std::vector<ValueId>& in, LayerPieces& pieces) {
      return write(in[0], pieces);
    };
    ASSIGN_OR_RETURN(last_, writer_.Add(label, function, {last_}, layer));
    return absl::OkStatus();
  }

  // The text of batch norm's stays as it was.
  std::string FunctionOf(const std::string& function) const {
    return spec_.norm == ResnetNorm::kBatch ? function
                                            : absl::StrCat(function, ":groups:", spec_.groups);
  }

  absl::StatusOr<ValueId> Stem(ValueId x, LayerPieces& layer) const {
    const ConvolutionSpec first =
        layout_.large_stem ? Square(layout_.width, 7, 2) : Square(layout_.width, 3);
    ASSIGN_OR_RETURN(x, layer.AddConvolution(first, "", x));
    x = layer.Relu(x);
    if (!layout_.large_stem) return x;
    return layer.Add(MaxPoolSpec{.kernel = {3}, .stride = {2}, .padding = {1}}, "max_pool", x);
  }

  absl::Status AddBlocks() {
    int64_t all = 0, number = 0;
    for (const int64_t blocks : layout_.blocks) all += blocks;
    for (size_t stage = 0; stage < layout_.blocks.size(); ++stage) {
      for (int64_t i = 0; i < layout_.blocks[stage]; ++i) {
        const Block block{.channels = layout_.width << stage,
                          .stride = i == 0 && stage > 0 ? 2 : 1,
                          .bottleneck = layout_.bottlenecks};
        const std::string label = block.bottleneck ? "bottleneck" : "basic_block";
        const double drop =
            spec_.drop_path * static_cast<double>(++number) / static_cast<double>(all);
        RETURN_IF_ERROR(
            Add(label, FunctionOf(absl::StrCat(label, ":", block.channels, ":", block.stride)),
                [&](ValueId x, LayerPieces& layer) { return WriteBlock(block, drop, x, layer); }));
      }
    }
    return absl::OkStatus();
  }

  absl::StatusOr<ValueId> WriteBlock(const Block& block, double drop, ValueId x,
                                     LayerPieces& layer) const {
    ASSIGN_OR_RETURN(ValueId y, Branch(block, x, layer));
    if (spec_.zero_init_residual) layer.BeginLastNormAtZero();
    if (spec_.drop_path > 0) y = layer.DropPath(drop, y);
    ValueId shortcut = x;
    if (layer.type(x) != layer.type(y)) {
      ASSIGN_OR_RETURN(shortcut,
                       layer.AddConvolution(Square(block.out(), 1, block.stride), "shortcut.", x));
    }
    return layer.Relu(layer.Sum(shortcut, y));
  }

  static absl::StatusOr<ValueId> Branch(const Block& block, ValueId x, LayerPieces& layer) {
    if (!block.bottleneck) {
      ASSIGN_OR_RETURN(x,
                       layer.AddConvolution(Square(block.channels, 3, block.stride), "first.", x));
      return layer.AddConvolution(Square(block.channels, 3), "second.", layer.Relu(x));
    }
    ASSIGN_OR_RETURN(x, layer.AddConvolution(Square(block.channels, 1), "first.", x));
    ASSIGN_OR_RETURN(
        x, layer.AddConvolution(Square(block.channels, 3, block.stride), "second.", layer.Relu(x)));
    return layer.AddConvolution(Square(block.out(), 1), "third.", layer.Relu(x));
  }

  absl::StatusOr<ValueId> Head(ValueId x, LayerPieces& layer) const {
    ASSIGN_OR_RETURN(x, layer.Add(GlobalPoolSpec{}, "global_pool", x));
    return layer.Add(LinearSpec{.out = spec_.classes}, "linear", x);
  }

  const ResnetSpec& spec_;
  const Layout layout_;
  ImageNetworkWriter writer_;
  WireId last_ = writer_.images();
};

class Resnet final : public NetworkKindOf<ResnetSpec> {
  absl::StatusOr<Network> Write(const ResnetSpec& spec, const std::string& path) const override {
    RETURN_IF_ERROR(CheckImageShape({spec.image, spec.classes}, path));
    ASSIGN_OR_RETURN(const Layout layout, FormOf(spec, path));
    const int64_t widest = WidestOf(layout);
    if (widest > kMaxWidth) {
      return FieldError(
          path + ".width", absl::StrCat(layout.width),
          absl::StrCat("the last stage would give ", widest, " channels; at most ", kMaxWidth));
    }
    if (spec.norm == ResnetNorm::kBatch && spec.groups != kDefaultNormGroups) {
      return FieldError(path + ".groups", absl::StrCat(spec.groups),
                        "batch norm has no groups: give norm: group with it");
    }
    if (spec.norm == ResnetNorm::kGroup && layout.width % spec.groups != 0) {
      return FieldError(path + ".groups", absl::StrCat(spec.groups),
                        absl::StrCat("must divide the ", layout.width,
                                     " channels of the first stage, the width"));
    }
    return ResnetWriter(spec, layout, path).Write();
  }
};

}  // namespace

const NetworkKind* ResnetNetwork() {
  static const Resnet kind;
  return &kind;
}

}  // namespace stagecoach
