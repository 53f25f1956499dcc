#include "stage/backends/simulated/simulated_backend.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/errors/check.h"
#include "base/numbers/bfloat16.h"
#include "base/threads/progress.h"
#include "operations/catalogue.h"
#include "operations/elementwise_flops.h"
#include "stage/backends/kernel_table.h"

namespace stagecoach {
namespace {

double Elements(const Tensor& tensor) { return static_cast<double>(tensor.elements()); }

}  // namespace

absl::StatusOr<SimulatedDevice> ParseSimulatedDevice(const std::string& device) {
  const std::vector<std::string> parts = absl::StrSplit(device, ':');
  SimulatedDevice result;
  std::vector<double> rates;  // in units of 1e9 a second
  for (size_t i = 1; i < parts.size(); ++i) {
    double rate = 0;
    if (absl::SimpleAtod(parts[i], &rate) && rate >= 1e-3 && rate <= 1e9) rates.push_back(rate);
  }
  if (parts[0] != "simulated" || parts.size() > 3 || rates.size() + 1 != parts.size()) {
    return absl::InvalidArgumentError(
        absl::StrCat("device ", device,
                     ": want simulated, simulated:RATE or simulated:RATE:BANDWIDTH, in "
                     "GFLOP/s and GB/s from 0.001 to 1e9"));
  }
  if (rates.empty()) return result;
  result.flops_per_second = rates.front() * 1e9;
  result.bytes_per_second = rates.back() * 1e9;
  return result;
}

namespace {

// What a call reads, or adds to. Of a table no more is moved than the rows that ids pick, and those
// are counted where they go to or come from.
std::vector<const Tensor*> OperandsOf(const CallTypes& types, const KernelArguments& arguments) {
  const bool picks =
      std::any_of(types.inputs.begin(), types.inputs.end(),
                  [](const ValueType& type) { return type.element == Element::kIds; });
  std::vector<const Tensor*> operands;
  for (size_t i = 0; i < arguments.inputs.size(); ++i) {
    if (picks && types.inputs[i].leading == Leading::kOne) continue;
    operands.push_back(&arguments.inputs[i]);
  }
  for (size_t i = 0; !picks && i < arguments.adds.size(); ++i) {
    operands.push_back(&arguments.adds[i]);
  }
  return operands;
}

// Who reads the sums divides by the terms and shows the loss: it is that of a network which gives
// zeros.
void WriteLossOfZeros(const CallTypes& types, int64_t samples, const KernelArguments& arguments) {
  const Tensor& sums = arguments.outputs[arguments.outputs.size() - 1];
  const ValueType& output = types.inputs[0];
  const auto terms = static_cast<double>(TypeElements(types.inputs[1], samples));
  const bool classes = types.inputs[1].element == Element::kIds;
  std::fill_n(sums.data<double>(), sums.elements(), 0.0);
  sums.data<double>()[0] =
      classes ? terms * std::log(static_cast<double>(output.shape.back())) : terms;
  sums.data<double>()[1] = terms;
}

}  // namespace

SimulatedBackend::SimulatedBackend(const BackendOptions& options, const SimulatedDevice& device,
                                   const Clock* clock, DeviceTimeline::SleepUntil sleep_until)
    : device_(device),
      allocator_(MakeHostAllocator(options.memory_limit_bytes)),
      timeline_(clock, std::move(sleep_until)) {}

absl::StatusOr<Kernel> SimulatedBackend::Prepare(const Call& call, const CallTypes& types, DType) {
  const absl::StatusOr<const Operation*> operation = FindOperation(call.operation);
  if (!operation.ok()) return NoKernel(call, "simulated");
  const bool loss = !(*operation)->Sums(call.attributes).empty();
  return [this, operation = *operation, attributes = call.attributes, types, loss](
             const KernelContext& context, const KernelArguments& arguments) {
    const Cost cost = operation->CostOf(attributes, types, context.run.sequences);
    std::vector<const Tensor*> outputs;
    for (size_t i = 0; i < arguments.outputs.size(); ++i) outputs.push_back(&arguments.outputs[i]);
    RunOn(static_cast<double>(cost.flops), outputs, OperandsOf(types, arguments));
    if (loss) WriteLossOfZeros(types, context.run.sequences, arguments);
  };
}

absl::StatusOr<CallDescription> SimulatedBackend::Describe(const Call& call, const CallTypes&,
                                                           int64_t, DType) {
  if (!FindOperation(call.operation).ok()) return NoKernel(call, "simulated");
  return CallDescription{};
}

void SimulatedBackend::RunOn(double flops, TensorList outputs, TensorList operands) {
  double bytes = 0;
  for (const TensorList tensors : {outputs, operands}) {
    for (const Tensor* tensor : tensors) {
      if (tensor->valid()) bytes += static_cast<double>(tensor->bytes());
    }
  }
  const double seconds = flops / device_.flops_per_second + bytes / device_.bytes_per_second;
  timeline_.Queue(static_cast<int64_t>(seconds * 1e9));
  // What was in that memory before is none of the neighbour's business.
  for (const Tensor* output : outputs) {
    if (output->valid() && output->bytes() > 0) {
      std::memset(output->raw(), 0, static_cast<size_t>(output->bytes()));
    }
  }
  timeline_.Wait();
  TickProgress();
}

void SimulatedBackend::Fill(const Tensor& tensor, float value) {
  Run(0, {&tensor}, {});
  if (value == 0) return;
  if (tensor.dtype() == DType::kBF16) {
    std::fill_n(tensor.data<Bfloat16>(), tensor.elements(), Bfloat16(value));
  } else {
    std::fill_n(tensor.data<float>(), tensor.elements(), value);
  }
}

void SimulatedBackend::Swap(const Tensor& a, const Tensor& b) {
  Run(kMoveFlops * Elements(a), {}, {&a, &b});
}

void SimulatedBackend::SquaredNorm(const Tensor& tensor, const Tensor& result) {
  Run(2 * Elements(tensor), {&result}, {&tensor});
}

void SimulatedBackend::Convert(const Tensor& source, const Tensor& target) {
  Run(0, {&target}, {&source});
}

void SimulatedBackend::CopyFromHost(std::span<const std::byte> source, const Tensor& target) {
  CHECK_EQ(static_cast<int64_t>(source.size()), target.bytes()) << target.shape().ToString();
  if (!source.empty()) std::memcpy(target.raw(), source.data(), source.size());
}

void SimulatedBackend::CopyToHost(const Tensor& source, std::span<std::byte> target) {
  CHECK_EQ(static_cast<int64_t>(target.size()), source.bytes()) << source.shape().ToString();
  timeline_.Finish();
  if (!target.empty()) std::memcpy(target.data(), source.raw(), target.size());
}

absl::Status SimulatedBackend::Synchronize() {
  timeline_.Finish();
  return absl::OkStatus();
}

std::unique_ptr<Backend> MakeSimulatedBackend(const BackendOptions& options,
                                              const SimulatedDevice& device) {
  return std::make_unique<SimulatedBackend>(options, device, SystemClock::Get(), PreciseSleepUntil);
}

}  // namespace stagecoach
