// AmoebaNet-B, GPipe's network of 557 million parameters on ImageNet (section 4). The published
// program ignores the dilation that the 5x5 separable convolution is named with.
#include "network/network_kind.h"
#include "network/zoo/amoebanet/amoebanet_frame.h"

namespace stagecoach {
namespace {

using enum CellPiece;

CellTable NormalCellB() {
  return {.sums = {{{{{kConvolution1x1, 1}, {kMaxPool3x3, 1}}},
                    {{{kIdentity, 1}, {kSeparable3x3, 0}}},
                    {{{kConvolution1x1, 1}, {kSeparable3x3, 0}}},
                    {{{kConvolution1x1, 2}, {kIdentity, 2}}},
                    {{{kAveragePool3x3, 1}, {kConvolution1x1, 5}}}}},
          .outputs = {0, 3, 4, 6}};
}

CellTable ReductionCellB() {
  return {.sums = {{{{{kMaxPool2x2, 0}, {kMaxPool3x3, 0}}},
                    {{{kIdentity, 2}, {kConvolution3x3, 1}}},
                    {{{kSeparable5x5, 2}, {kMaxPool3x3, 2}}},
                    {{{kIdentity, 3}, {kSeparable3x3, 1}}},
                    {{{kAveragePool3x3, 4}, {kConvolution1x1, 3}}}}},
          .outputs = {5, 6}};
}

class AmoebanetB final : public NetworkKindOf<AmoebanetBSpec> {
  absl::StatusOr<Network> Write(const AmoebanetBSpec& spec,
                                const std::string& path) const override {
    return WriteAmoebanet(spec, {"amoebanet_b", NormalCellB(), ReductionCellB()}, path);
  }
};

}  // namespace

const NetworkKind* AmoebanetBNetwork() {
  static const AmoebanetB kind;
  return &kind;
}

}  // namespace stagecoach
