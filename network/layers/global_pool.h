// global_pool: the mean over an image, channel by channel; gives [channels]. No parameters.
#ifndef STAGECOACH_NETWORK_LAYERS_GLOBAL_POOL_H_
#define STAGECOACH_NETWORK_LAYERS_GLOBAL_POOL_H_

namespace stagecoach {

struct GlobalPoolSpec {
  static constexpr const char* kKind = "global_pool";
  template <typename Visitor>
  void Visit(Visitor&) {}
};

}  // namespace stagecoach

#endif  // STAGECOACH_NETWORK_LAYERS_GLOBAL_POOL_H_
