// Layer kinds: the few facts about a layer that expansion, costs and text share.
// Units and shapes: widths in elements.
#ifndef STAGECOACH_PLAN_LAYER_KINDS_H_
#define STAGECOACH_PLAN_LAYER_KINDS_H_

#include <cstdint>
#include <string>

#include "plan/model_spec.h"

namespace stagecoach {

// Visitor out of lambdas, one per kind of layer.
template <typename... Fs>
struct Overloaded : Fs... {
  using Fs::operator()...;
};
template <typename... Fs>
Overloaded(Fs...) -> Overloaded<Fs...>;

const char* LayerKindName(const LayerSpec& layer);  // "layer_norm", as in YAML and parameter names
std::string LayerLabel(const LayerSpec& layer);     // "residual(layer_norm, attention)"

// What a valid layer gives for `width_in`; the embedding's width is the model's, so `width_in` too.
int64_t LayerWidthOut(const LayerSpec& layer, int64_t width_in);

}  // namespace stagecoach

#endif  // STAGECOACH_PLAN_LAYER_KINDS_H_
