#include "devices/host/describe.h"

#include <algorithm>
#include <map>
#include <string_view>

#include "base/errors/check.h"
#include "base/numbers/saturate.h"
#include "devices/host/host_calls.h"
#include "operations/catalogue.h"
#include "operations/joint.h"

namespace stagecoach {
namespace {

constexpr int64_t kWidenedAtOnce = 3;  // operands
// 64 rows of 64 columns of each operand, and two sums (column_sums.h).
constexpr int64_t kColumnRoom = kFloat32Bytes * (4 * 64 * 64 + 2 * 64);
constexpr int64_t kSumsRoom = kColumnRoom / 64;  // of columns that are not widened

using HostTable = std::map<std::string_view, HostEntry>;

HostTable MakeTable() {
  HostTable table;
  for (const auto give : {AttentionsOnHost, ConvolutionsOnHost, LossesOnHost, NormsOnHost,
                          ProductsOnHost, UpdatesOnHost}) {
    for (const HostEntry& entry : give()) {
      OperationNamed(entry.operation);
      CHECK(table.emplace(entry.operation, entry).second) << entry.operation;
    }
  }
  return table;
}

const HostTable& Table() {
  static const auto* const table = new HostTable(MakeTable());
  return *table;
}

// The parts run one after the other, or a kernel of its own does both at once with the same memory.
CallDescription DescribeParts(const JointParts& parts, const HostCall& of) {
  CallDescription description = DescribeRest(of);
  const Call& call = of.call;
  const Call input{.operation = std::string(parts.input_gradient), .attributes = call.attributes};
  const Call weight{.operation = std::string(parts.weight_gradient)};
  const DType activation = of.narrow ? DType::kBF16 : DType::kF32;
  for (const CallDescription& part :
       {DescribeOnHost(of.host, input, {of.types.inputs, of.types.outputs, {}}, of.samples,
                       activation),
        DescribeOnHost(of.host, weight, WeightPartOf(parts, of.types), of.samples, activation)}) {
    description.Raise(part.room, part.shared);
  }
  return description;
}

}  // namespace

CallDescription DescribeRest(const HostCall& of) {
  if (!of.narrow) return {.room = kSumsRoom};
  int64_t widest = 0;
  for (const auto* side : {&of.types.inputs, &of.types.outputs, &of.types.adds}) {
    for (const ValueType& type : *side) {
      if (type.shape.rank() > 0) widest = std::max(widest, type.shape.back());
    }
  }
  const int64_t piece = std::max(kPieceElements, SaturatingRoundUp(widest, 16));
  return {.room = std::max(kColumnRoom, kFloat32Bytes * kWidenedAtOnce * piece)};
}

CallDescription DescribeOnHost(const HostProfile& host, const Call& call, const CallTypes& types,
                               int64_t samples, DType activation) {
  const HostCall of{host, call, types, samples, activation == DType::kBF16};
  const auto found = Table().find(call.operation);
  if (found != Table().end()) return found->second.describe(of);
  const JointParts* const parts = OperationNamed(call.operation).Parts();
  return parts != nullptr ? DescribeParts(*parts, of) : DescribeRest(of);
}

CallDescription DescribeNormsOnHost(int64_t elements) {
  return {.shared = 2 * kFloat64Bytes * (elements / kBlockElements + 1)};
}

}  // namespace stagecoach
