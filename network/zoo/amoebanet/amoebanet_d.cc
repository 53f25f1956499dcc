// AmoebaNet-D, as GPipe's table 1 sizes it. Real et al. give s4, s5 and s6 of a normal cell; only
// the four states of the published program have GPipe's numbers of parameters.
#include "network/network_kind.h"
#include "network/zoo/amoebanet/amoebanet_frame.h"

namespace stagecoach {
namespace {

using enum CellPiece;

CellTable NormalCellD() {
  return {.sums = {{{{{kConvolution1x1, 1}, {kMaxPool3x3, 1}}},
                    {{{kIdentity, 1}, {kConvolution1x7And7x1, 0}}},
                    {{{kConvolution1x1, 0}, {kConvolution1x7And7x1, 0}}},
                    {{{kMaxPool3x3, 2}, {kIdentity, 2}}},
                    {{{kAveragePool3x3, 1}, {kConvolution1x1, 5}}}}},
          .outputs = {0, 3, 4, 6}};
}

CellTable ReductionCellD() {
  return {.sums = {{{{{kMaxPool2x2, 0}, {kMaxPool3x3, 0}}},
                    {{{kIdentity, 2}, {kConvolution3x3, 1}}},
                    {{{kConvolution1x7And7x1, 2}, {kMaxPool3x3, 2}}},
                    {{{kIdentity, 3}, {kMaxPool2x2, 1}}},
                    {{{kAveragePool3x3, 2}, {kConvolution1x1, 3}}}}},
          .outputs = {4, 5, 6}};
}

class AmoebanetD final : public NetworkKindOf<AmoebanetDSpec> {
  absl::StatusOr<Network> Write(const AmoebanetDSpec& spec,
                                const std::string& path) const override {
    return WriteAmoebanet(spec, {"amoebanet_d", NormalCellD(), ReductionCellD(), spec.variant},
                          path);
  }
};

}  // namespace

const NetworkKind* AmoebanetDNetwork() {
  static const AmoebanetD kind;
  return &kind;
}

}  // namespace stagecoach
