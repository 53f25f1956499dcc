// HyperParameters: the fields by which TensorBoard's HPARAMS tab compares jobs, and their bytes.
// Threads: pure functions.
// See:     docs/formats.md, "A job's records".
#ifndef STAGECOACH_SERVICES_RECORDS_HYPERPARAMETERS_H_
#define STAGECOACH_SERVICES_RECORDS_HYPERPARAMETERS_H_

#include <string>
#include <variant>
#include <vector>

#include "plan/job/job_spec.h"

namespace stagecoach {

struct HyperParameter {
  std::string name;  // as in a job file
  std::variant<double, std::string> value;
  friend bool operator==(const HyperParameter&, const HyperParameter&) = default;
};

// The fields that decide the result. Also steps, schedule and stages, which tell runs apart.
std::vector<HyperParameter> HyperParametersOf(const JobSpec& spec);

// The hparams plugin's start of a session, as a record of an event file.
std::string SessionStartEvent(double unix_seconds, const std::string& job,
                              const std::vector<HyperParameter>& parameters);

}  // namespace stagecoach

#endif  // STAGECOACH_SERVICES_RECORDS_HYPERPARAMETERS_H_
