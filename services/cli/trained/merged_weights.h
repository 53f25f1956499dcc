// MergedWeights: the weights of a job with adapters as one network without them: W + scale * B A
// (Hu et al., 2106.09685, section 4.1).
// Threads: any; reads and writes one array at a time.
// Errors:  DATA_LOSS naming file and tensor: the adapters are not the job's. FAILED_PRECONDITION: they
//          were trained with other weights than initialize.from has now. Those of the weights to begin
//          with name initialize.from (stage/weights/weight_file.h).
#ifndef STAGECOACH_SERVICES_CLI_TRAINED_MERGED_WEIGHTS_H_
#define STAGECOACH_SERVICES_CLI_TRAINED_MERGED_WEIGHTS_H_

#include <string>

#include "absl/status/status.h"
#include "checkpoint/files/file_system.h"
#include "plan/job/job_spec.h"

namespace stagecoach {

// job: with training.lora; initialize says where the base is. adapters_file: exported weights of the
// job. target: a new safetensors file of float32 arrays by our names.
absl::Status WriteMergedWeights(FileSystem& files, const JobSpec& job,
                                const std::string& adapters_file, const std::string& target);

}  // namespace stagecoach

#endif  // STAGECOACH_SERVICES_CLI_TRAINED_MERGED_WEIGHTS_H_
