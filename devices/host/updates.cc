// Updates that compare the sizes of a parameter and its step: two sums for each block.
#include "devices/host/describe.h"
#include "devices/host/host_calls.h"

namespace stagecoach {
namespace {

CallDescription DescribeSizedUpdate(const HostCall& of) {
  return DescribeNormsOnHost(of.types.adds[1].shape.elements());
}

}  // namespace

HostEntries UpdatesOnHost() {
  return {{"adafactor_update", DescribeSizedUpdate}, {"lamb_update", DescribeSizedUpdate}};
}

}  // namespace stagecoach
