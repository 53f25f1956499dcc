// Throughput: a job's samples in a second, in the unit of its data.
// Threads: pure functions.
#ifndef STAGECOACH_SERVICES_CLI_OUTPUT_THROUGHPUT_H_
#define STAGECOACH_SERVICES_CLI_OUTPUT_THROUGHPUT_H_

#include "stagecoach/v1/data.pb.h"
#include "stagecoach/v1/model.pb.h"

namespace stagecoach {

struct Throughput {
  const char* what = "tokens";  // or "pictures"
  double per_second = 0;
};

// Throughput of the last step: tokens of texts, otherwise pictures, however many targets each has.
inline Throughput ThroughputOf(const v1::JobSpec& spec, double tokens_per_second,
                               double step_seconds) {
  switch (spec.data().kind_case()) {
    case v1::Data::kText:
    case v1::Data::kParallelText:
    case v1::Data::kJsonLines:
    case v1::Data::kTokenFile:
    case v1::Data::KIND_NOT_SET:
      return {.per_second = tokens_per_second};
    default:
      break;
  }
  const auto pictures = static_cast<double>(spec.training().batch_size());
  return {.what = "pictures", .per_second = step_seconds > 0 ? pictures / step_seconds : 0};
}

}  // namespace stagecoach

#endif  // STAGECOACH_SERVICES_CLI_OUTPUT_THROUGHPUT_H_
