// DescribeOnHost: memory and way of a call on a processor (stage/backends/cpu). It has scratch of
// products, units of attention, tiles and shares of convolutions, and rows widened from bfloat16.
//   The sizes of attention, of widened operands and of tables are exact. Those of products are
//   bounds that were fitted to the library (product_scratch.h). Those of convolutions are loose:
//   the library tells no sizes before it is on the machine.
// Threads:   pure functions.
#ifndef STAGECOACH_DEVICES_HOST_DESCRIBE_H_
#define STAGECOACH_DEVICES_HOST_DESCRIBE_H_

#include <cstdint>

#include "base/numbers/dtype.h"
#include "devices/call_description.h"
#include "devices/host/host_profile.h"
#include "operations/operation.h"

namespace stagecoach {

// samples: of the micro-batch. The description of a product holds for one sample less too.
// activation: the type that Element::kActivation has. CHECKs that the catalogue has the operation.
CallDescription DescribeOnHost(const HostProfile& host, const Call& call, const CallTypes& types,
                               int64_t samples, DType activation);

// Memory for the squared norm of so many elements, and for an update that needs two such sums.
CallDescription DescribeNormsOnHost(int64_t elements);

}  // namespace stagecoach

#endif  // STAGECOACH_DEVICES_HOST_DESCRIBE_H_
