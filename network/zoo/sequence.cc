#include "network/zoo/sequence.h"

#include "network/network_kind.h"
#include "network/zoo/layer_chain.h"

namespace stagecoach {
namespace {

class Sequence final : public NetworkKindOf<SequenceSpec> {
  absl::StatusOr<Network> Write(const SequenceSpec& spec, const std::string& path) const override {
    return ChainOnTokens({spec.width, spec.context, spec.vocabulary}, spec.layers, path);
  }
};

}  // namespace

const NetworkKind* SequenceNetwork() {
  static const Sequence kind;
  return &kind;
}

}  // namespace stagecoach
