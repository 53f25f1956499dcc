// linear: y = x weight^T [+ bias] [+ residual], over the last extent; with gelu also the GELU of y.
#ifndef STAGECOACH_OPERATIONS_LINEAR_H_
#define STAGECOACH_OPERATIONS_LINEAR_H_

namespace stagecoach {

// Inputs: x, weight, then those of the flags, in this order. Outputs: y, with gelu also gelu(y).
struct LinearAttributes {
  bool bias = false;
  bool residual = false;  // added before the one rounding; not together with gelu
  bool gelu = false;
  template <typename Visitor>
  void Visit(Visitor& visit) {
    visit.Flag("bias", bias);
    visit.Flag("residual", residual);
    visit.Flag("gelu", gelu);
  }
};

// Inputs: dy, weight; with gelu also y of the linear before. The result is then that linear's dy.
struct LinearInputGradientAttributes {
  bool gelu = false;
  template <typename Visitor>
  void Visit(Visitor& visit) {
    visit.Flag("gelu", gelu);
  }
};

// Inputs: dy, x. Adds to d_weight and, with bias, to d_bias.
struct LinearWeightGradientAttributes {
  bool bias = false;
  template <typename Visitor>
  void Visit(Visitor& visit) {
    visit.Flag("bias", bias);
  }
};

}  // namespace stagecoach

#endif  // STAGECOACH_OPERATIONS_LINEAR_H_
