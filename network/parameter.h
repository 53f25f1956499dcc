// ParameterSpec: one array of a network that is trained, unless a job freezes it.
#ifndef STAGECOACH_NETWORK_PARAMETER_H_
#define STAGECOACH_NETWORK_PARAMETER_H_

#include <string>

#include "base/numbers/shape.h"

namespace stagecoach {

// Its global name is K-free: "model/<layer, 4 digits>/<path>", for example
// "model/0003/mlp.up.weight"; the byte order of names is the order of layers.
struct ParameterSpec {
  enum class Init { kZeros, kOnes, kNormal };
  // What it is to adapters (network/passes/lora.h). A base is frozen: each load takes it from the
  // file of weights again, and no checkpoint holds it.
  enum class Part { kWhole, kBase, kAdapter };
  std::string name;  // global
  Shape shape;
  Init init = Init::kZeros;
  double init_stddev = 0.0;
  int index = 0;        // within the layer; also names the random stream of its initial values
  bool decay = false;   // weight decay applies (rank >= 2)
  bool trained = true;  // false: it stays as it is (network/passes/freeze.h)
  // Name of the parameter that this layer uses in its place (network/passes/tied.h). Empty: it has
  // a value of its own. A tied parameter begins with its owner's value. It has no optimizer state
  // and no place in a checkpoint.
  std::string tied_to = {};
  Part part = Part::kWhole;
  bool tied() const { return !tied_to.empty(); }
  friend bool operator==(const ParameterSpec&, const ParameterSpec&) = default;
};

// Paths of parameters inside one layer, used for names on both sides. Examples are
// "attention.qkv.weight" for an attention inside a residual, "token.weight" for the embedding
// itself. A residual prefixes the kinds of its inner layers, with a number if a kind comes again.
// Initial values: normal(0, 0.02), biases zero, weights of norms one. Projections back into the
// trunk have another deviation: see BranchStddev in network/layer_kinds.h. They are "proj.weight"
// of attention and "down.weight" of mlp and swiglu, inside a residual.

}  // namespace stagecoach

#endif  // STAGECOACH_NETWORK_PARAMETER_H_
