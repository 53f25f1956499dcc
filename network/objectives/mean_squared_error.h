// mean_squared_error: of the network's output and numbers of its shape
// (operations/losses/mean_squared_error.h). For example, an autoencoder's output against its input.
#ifndef STAGECOACH_NETWORK_OBJECTIVES_MEAN_SQUARED_ERROR_H_
#define STAGECOACH_NETWORK_OBJECTIVES_MEAN_SQUARED_ERROR_H_

namespace stagecoach {

struct MeanSquaredErrorSpec {
  static constexpr const char* kKind = "mean_squared_error";
  template <typename Visitor>
  void Visit(Visitor&) {}
};

}  // namespace stagecoach

#endif  // STAGECOACH_NETWORK_OBJECTIVES_MEAN_SQUARED_ERROR_H_
