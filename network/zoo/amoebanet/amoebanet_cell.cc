#include "network/zoo/amoebanet/amoebanet_cell.h"

#include <map>
#include <string>

#include "absl/strings/str_cat.h"
#include "base/errors/check.h"
#include "base/errors/status.h"
#include "network/layers/pools.h"
#include "operations/images/pad.h"

namespace stagecoach {
namespace {

class CellWriter {
 public:
  CellWriter(const CellShape& shape, LayerPieces& layer) : shape_(shape), layer_(layer) {}

  absl::StatusOr<ValueId> First(ValueId x1) { return Relu1x1(x1, "s0."); }

  absl::StatusOr<ValueId> Second(ValueId x1, ValueId x2) {
    const Shape &one = layer_.type(x1).shape, &two = layer_.type(x2).shape;
    if (one[0] != two[0] || one[1] != two[1]) return FactorizedReduction(x2);
    if (shape_.keep_second || two[2] == shape_.channels) return x2;
    return Relu1x1(x2, "s1.");
  }

  absl::StatusOr<ValueId> Term(CellPiece piece, ValueId x, int64_t stride,
                               const std::string& name) {
    const int64_t c = shape_.channels;
    switch (piece) {
      case CellPiece::kIdentity:
        CHECK_EQ(stride, 1);
        if (layer_.channels(x) == c) return x;
        return Relu1x1(x, name);
      case CellPiece::kConvolution1x1:
        return layer_.AddConvolution(Square(c, 1, stride), name, Relu(x));
      case CellPiece::kConvolution3x3:
        return Bottleneck({Square(c / 4, 3, stride)}, x, name);
      case CellPiece::kConvolution1x7And7x1:
        return Bottleneck(
            {{.out = c / 4, .kernel = {1, 7}, .stride = {1, stride}, .padding = {0, 3}},
             {.out = c / 4, .kernel = {7, 1}, .stride = {stride, 1}, .padding = {3, 0}}},
            x, name);
      case CellPiece::kSeparable3x3:
        return Separable(3, stride, x, name);
      case CellPiece::kSeparable5x5:
        return Separable(5, stride, x, name);
      case CellPiece::kAveragePool3x3:
        return Pool(AveragePoolSpec{.kernel = {3}, .stride = {stride}, .padding = {1}}, x, name);
      case CellPiece::kMaxPool3x3:
        if (shape_.average_for_max) return Term(CellPiece::kAveragePool3x3, x, stride, name);
        return Pool(MaxPoolSpec{.kernel = {3}, .stride = {stride}, .padding = {1}}, x, name);
      case CellPiece::kMaxPool2x2:
        break;
    }
    return Pool(MaxPoolSpec{.kernel = {2}, .stride = {stride}}, x, name);
  }

 private:
  // One for all that read x.
  ValueId Relu(ValueId x) {
    const auto [found, is_new] = relus_.try_emplace(x);
    if (is_new) found->second = layer_.Relu(x);
    return found->second;
  }

  absl::StatusOr<ValueId> Relu1x1(ValueId x, const std::string& name) {
    return layer_.AddConvolution(Square(shape_.channels, 1), name, Relu(x));
  }

  absl::StatusOr<ValueId> Bottleneck(const std::vector<ConvolutionSpec>& inner, ValueId x,
                                     const std::string& name) {
    ASSIGN_OR_RETURN(ValueId y, layer_.AddConvolution(Square(shape_.channels / 4, 1),
                                                      name + "reduce.", Relu(x)));
    for (size_t i = 0; i < inner.size(); ++i) {
      ASSIGN_OR_RETURN(
          y, layer_.AddConvolution(inner[i], absl::StrCat(name, "inner", i, "."), layer_.Relu(y)));
    }
    return layer_.AddConvolution(Square(shape_.channels, 1), name + "expand.", layer_.Relu(y));
  }

  absl::StatusOr<ValueId> Separable(int64_t kernel, int64_t stride, ValueId x,
                                    const std::string& name) {
    for (const char* half : {"first.", "second."}) {
      const int64_t in = layer_.channels(x);
      ConvolutionSpec depthwise = Square(in, kernel, stride, in);
      depthwise.bias = false;
      ASSIGN_OR_RETURN(ValueId y, layer_.Add(depthwise, name + half + "depthwise", Relu(x)));
      ASSIGN_OR_RETURN(x, layer_.AddConvolution(Square(shape_.channels, 1), name + half, y));
      stride = 1;
    }
    return x;
  }

  absl::StatusOr<ValueId> Pool(const LayerSpec& pool, ValueId x, const std::string& name) {
    ASSIGN_OR_RETURN(const ValueId y, layer_.Add(pool, name + "pool", x));
    if (layer_.channels(y) == shape_.channels) return y;
    return layer_.AddConvolution(Square(shape_.channels, 1), name, y);
  }

  // Half the channels from the pixels at even places, half from those at odd ones; zeros beyond the
  // image.
  absl::StatusOr<ValueId> FactorizedReduction(ValueId x) {
    const ValueId even = Relu(x);
    const PadAttributes up_and_left{.top = -1, .bottom = 1, .left = -1, .right = 1};
    const ValueId odd = layer_.writer().Emit("pad", ToAttributes(up_and_left), {even})[0];
    ConvolutionSpec half = Square(shape_.channels / 2, 1, 2);
    half.bias = false;
    ASSIGN_OR_RETURN(const ValueId a, layer_.Add(half, "s1.even.convolution", even));
    ASSIGN_OR_RETURN(const ValueId b, layer_.Add(half, "s1.odd.convolution", odd));
    return layer_.AddNorm("s1.", layer_.Concatenate({a, b}));
  }

  const CellShape shape_;
  LayerPieces& layer_;
  std::map<ValueId, ValueId> relus_;
};

}  // namespace

absl::StatusOr<ValueId> WriteCell(const CellTable& table, const CellShape& shape, ValueId x1,
                                  ValueId x2, LayerPieces& layer) {
  CellWriter writer(shape, layer);
  std::vector<ValueId> states(2);
  ASSIGN_OR_RETURN(states[0], writer.First(x1));
  ASSIGN_OR_RETURN(states[1], writer.Second(x1, x2));
  for (const auto& [left, right] : table.sums) {
    std::vector<ValueId> terms;
    for (const CellTerm& term : {left, right}) {
      const std::string name =
          absl::StrCat("s", states.size(), terms.empty() ? ".left." : ".right.");
      const int64_t stride = term.state < 2 ? shape.stride : 1;
      ASSIGN_OR_RETURN(terms.emplace_back(),
                       writer.Term(term.piece, states[term.state], stride, name));
      if (shape.drop_path > 0 && term.piece != CellPiece::kIdentity) {
        terms.back() = layer.DropPath(shape.drop_path, terms.back());
      }
    }
    states.push_back(layer.Sum(terms[0], terms[1]));
  }
  std::vector<ValueId> outputs;
  for (const int state : table.outputs) outputs.push_back(states[state]);
  return layer.Concatenate(outputs);
}

}  // namespace stagecoach
