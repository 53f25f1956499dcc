// Descriptor: one object of cuDNN's graphs, for operations that cudnn-frontend's own graphs do not
// have. It is set attribute by attribute, then finished, then given to others.
// Ownership: owns cuDNN's object. Objects that Set gave it must outlive it.
// Threads:   one at a time.
// Errors:    Finish returns the first error of all calls, as ToStatus (frontend_calls.h) says.
#ifndef STAGECOACH_STAGE_BACKENDS_CUDA_CUDNN_FRONTEND_DESCRIPTORS_H_
#define STAGECOACH_STAGE_BACKENDS_CUDA_CUDNN_FRONTEND_DESCRIPTORS_H_

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "stage/backends/cuda/cudnn/frontend/frontend_calls.h"

namespace stagecoach::cudnn {

class Descriptor {
 public:
  explicit Descriptor(cudnnBackendDescriptorType_t type);
  Descriptor(Descriptor&& other) noexcept;
  ~Descriptor();

  cudnnBackendDescriptor_t get() const { return descriptor_; }
  bool ok() const { return first_ == CUDNN_STATUS_SUCCESS; }

  void Set(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type, int64_t count,
           const void* values);
  template <typename T>
  void Set(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type, const T& value) {
    Set(name, type, 1, &value);
  }
  void Set(cudnnBackendAttributeName_t name, const Descriptor& other) {
    Set(name, CUDNN_TYPE_BACKEND_DESCRIPTOR, other.get());
  }
  // The attribute's values, `most` at most; empty if cuDNN does not answer.
  template <typename T>
  std::optional<std::vector<T>> Get(cudnnBackendAttributeName_t name,
                                    cudnnBackendAttributeType_t type, int64_t most) const {
    std::vector<T> values(static_cast<size_t>(most));
    int64_t count = 0;
    if (fe::detail::get_attribute(descriptor_, name, type, most, &count, values.data()) !=
        CUDNN_STATUS_SUCCESS) {
      return std::nullopt;
    }
    values.resize(static_cast<size_t>(count));
    return values;
  }

  // For the error's text. step: "looking for an engine"; version: FrontendVersion.
  absl::Status Finish(const std::string& version, const char* step);

 private:
  void Note(cudnnStatus_t status);

  cudnnBackendDescriptor_t descriptor_ = nullptr;
  cudnnStatus_t first_ = CUDNN_STATUS_SUCCESS;
  std::string message_;  // of the first error
};

// A started library, or the properties of an absent card. With the latter, plans are made but not
// run.
struct PlanningFor {
  cudnnHandle_t handle = nullptr;
  cudnnBackendDescriptor_t properties = nullptr;  // if there is no handle
};

// A plan and the descriptors that it may refer to.
struct FoundPlan {
  std::vector<Descriptor> parts;  // the last one is the plan
  int64_t workspace_bytes = 0;
  int64_t engine = -1;
  cudnnBackendDescriptor_t get() const { return parts.back().get(); }
};

// The first suitable plan in the order of cuDNN's heuristics. Its engine has none of the barred
// notes, is not compiled at run time and is not another library's. The plan can be built and takes
// at most workspace_bytes. Nothing is timed, so the choice repeats. UNIMPLEMENTED if there is none.
// parts: finished descriptors of the operation's parts, and last the operation.
absl::StatusOr<FoundPlan> FindPlan(std::vector<Descriptor> parts, const PlanningFor& where,
                                   const std::vector<cudnnBackendNumericalNote_t>& barred,
                                   int64_t workspace_bytes, const std::string& version);

}  // namespace stagecoach::cudnn

#endif  // STAGECOACH_STAGE_BACKENDS_CUDA_CUDNN_FRONTEND_DESCRIPTORS_H_
