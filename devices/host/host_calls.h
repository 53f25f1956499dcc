// The parts of DescribeOnHost: a file for each family of operations, with a list of functions by
// the operation's name. Operations in no list take what DescribeRest says.
#ifndef STAGECOACH_DEVICES_HOST_HOST_CALLS_H_
#define STAGECOACH_DEVICES_HOST_HOST_CALLS_H_

#include <cstdint>
#include <string_view>
#include <vector>

#include "devices/call_description.h"
#include "devices/host/host_profile.h"
#include "operations/operation.h"

namespace stagecoach {

struct HostCall {
  const HostProfile& host;
  const Call& call;
  const CallTypes& types;
  int64_t samples = 0;
  bool narrow = false;  // activations are bfloat16
};

struct HostEntry {
  std::string_view operation;
  CallDescription (*describe)(const HostCall& of);
};
using HostEntries = std::vector<HostEntry>;

HostEntries AttentionsOnHost();
HostEntries ConvolutionsOnHost();
HostEntries LossesOnHost();
HostEntries NormsOnHost();
HostEntries ProductsOnHost();
HostEntries UpdatesOnHost();

// Rows of bfloat16 are widened piece by piece, and columns are summed block by block.
CallDescription DescribeRest(const HostCall& of);

inline constexpr int64_t kFloat32Bytes = 4, kFloat64Bytes = 8, kBfloat16Bytes = 2;
// Units of the kernels (stage/backends/cpu).
inline constexpr int64_t kPieceElements = 2048;   // widened at a time (cpu_backend.cc)
inline constexpr int64_t kBlockElements = 16384;  // with a sum of their own (cpu_backend.h)
inline constexpr int64_t kLineBytes = 64;         // pieces of a room begin at whole lines

inline int64_t BlocksOf(int64_t n, int64_t block) { return n / block + (n % block != 0 ? 1 : 0); }

}  // namespace stagecoach

#endif  // STAGECOACH_DEVICES_HOST_HOST_CALLS_H_
