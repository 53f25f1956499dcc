// A cell of an AmoebaNet (network/zoo/amoebanet/amoebanet.h) as a table, and its layer.
// Errors: INVALID_ARGUMENT with the path of the network in the job.
#ifndef STAGECOACH_NETWORK_ZOO_AMOEBANET_AMOEBANET_CELL_H_
#define STAGECOACH_NETWORK_ZOO_AMOEBANET_AMOEBANET_CELL_H_

#include <array>
#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "network/zoo/layer_pieces.h"

namespace stagecoach {

// Every convolution has a ReLU in front and batch norm behind. The 3x3, 1x7 and 7x1 ones lie
// between two 1x1, with a quarter of the channels. A separable one runs twice depthwise k x k and
// then 1x1, with nothing between.
enum class CellPiece {
  kIdentity,
  kConvolution1x1,
  kConvolution3x3,
  kConvolution1x7And7x1,
  kSeparable3x3,
  kSeparable5x5,
  kAveragePool3x3,
  kMaxPool3x3,
  kMaxPool2x2,
};

struct CellTerm {
  CellPiece piece;
  int state;  // its input: s0, s1, or an earlier sum
};
struct CellTable {
  std::array<std::array<CellTerm, 2>, 5> sums;  // s2 to s6
  std::vector<int> outputs;                     // states in the output, in this order
};

struct CellShape {
  int64_t channels = 0;          // c
  int64_t stride = 1;            // of pieces on s0 and s1
  bool keep_second = false;      // s1 is x2 as it is, and pieces bring its channels to c
  bool average_for_max = false;  // torchgpipe's replacement of the 3x3 maximum
  double drop_path = 0;  // rate at which a piece other than an identity is left out for a sample
};

absl::StatusOr<ValueId> WriteCell(const CellTable& table, const CellShape& shape, ValueId x1,
                                  ValueId x2, LayerPieces& layer);

}  // namespace stagecoach

#endif  // STAGECOACH_NETWORK_ZOO_AMOEBANET_AMOEBANET_CELL_H_
