// SimulatedBackend: no arithmetic. Tensors have their real sizes and are accounted. Operations take
// the time that a device of a given rate would need, and write zeros. It serves pipelines larger
// than the machine: schedules, links, memory and recovery are real, numbers are not. Gradients are
// zero, so training changes no weight; the loss is that of logits that are all zero.
// Ownership, threads: as Backend.
// Units:     an operation takes FLOPs / flops_per_second + bytes / bytes_per_second. The FLOPs are
//            those of Operation::CostOf. Every byte of its tensors is read or written once.
#ifndef STAGECOACH_STAGE_BACKENDS_SIMULATED_SIMULATED_BACKEND_H_
#define STAGECOACH_STAGE_BACKENDS_SIMULATED_SIMULATED_BACKEND_H_

#include <initializer_list>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "base/threads/clock.h"
#include "stage/backends/backend.h"
#include "stage/backends/simulated/device_timeline.h"

namespace stagecoach {

struct SimulatedDevice {
  double flops_per_second = 50e9;
  double bytes_per_second = 50e9;
};

// "simulated", "simulated:20" (GFLOP/s; memory moves as many bytes as there are FLOPs), or
// "simulated:20:0.6" (GFLOP/s and GB/s). INVALID_ARGUMENT otherwise.
absl::StatusOr<SimulatedDevice> ParseSimulatedDevice(const std::string& device);

class SimulatedBackend final : public Backend {
 public:
  SimulatedBackend(const BackendOptions& options, const SimulatedDevice& device, const Clock* clock,
                   DeviceTimeline::SleepUntil sleep_until);

  // Without the rate: stages of different speed may work together.
  std::string fingerprint() const override { return "simulated, no arithmetic"; }
  Allocator& allocator() override { return *allocator_; }
  // Takes every operation of the catalogue, and no memory beside its operands.
  absl::StatusOr<CallDescription> Describe(const Call& call, const CallTypes& types,
                                           int64_t samples, DType activation) override;
  std::vector<std::string> WithoutKernels() const override { return {}; }
  absl::StatusOr<Kernel> Prepare(const Call& call, const CallTypes& types,
                                 DType activation) override;

  void Fill(const Tensor& tensor, float value) override;
  void Swap(const Tensor& a, const Tensor& b) override;
  void SquaredNorm(const Tensor& tensor, const Tensor& result) override;
  void Convert(const Tensor& source, const Tensor& target) override;
  void CopyFromHost(std::span<const std::byte> source, const Tensor& target) override;
  void CopyToHost(const Tensor& source, std::span<std::byte> target) override;
  absl::Status Synchronize() override;

 private:
  using TensorList = std::span<const Tensor* const>;
  // Runs one operation. outputs: set to zero; operands: tensors that it reads or adds to.
  void Run(double flops, std::initializer_list<const Tensor*> outputs,
           std::initializer_list<const Tensor*> operands) {
    RunOn(flops, TensorList(outputs.begin(), outputs.size()),
          TensorList(operands.begin(), operands.size()));
  }
  void RunOn(double flops, TensorList outputs, TensorList operands);

  const SimulatedDevice device_;
  const std::unique_ptr<Allocator> allocator_;
  DeviceTimeline timeline_;
};

// The back end in real time.
std::unique_ptr<Backend> MakeSimulatedBackend(const BackendOptions& options,
                                              const SimulatedDevice& device);

}  // namespace stagecoach

#endif  // STAGECOACH_STAGE_BACKENDS_SIMULATED_SIMULATED_BACKEND_H_
