#include "stage/backends/simulated/simulated_backend.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "base/bfloat16.h"
#include "base/check.h"
#include "base/progress.h"
#include "operations/catalogue.h"
#include "operations/elementwise_flops.h"
#include "stage/backends/function_kernels.h"

namespace stagecoach {
namespace {

double Elements(const Tensor& tensor) { return static_cast<double>(tensor.elements()); }

// A product of [rows, in] and [in, out]; the weight has in * out elements.
double Product(const Tensor& rows_by_one_side, int64_t width, const Tensor& weight) {
  return 2 * Elements(rows_by_one_side) / static_cast<double>(width) * Elements(weight);
}

double Scores(const AttentionShape& shape) {
  return static_cast<double>(shape.sequences * shape.heads * shape.context) *
         static_cast<double>(shape.context + 1) / 2;
}

// `products` of them per score, each over the width of a head.
double AttentionFlops(const AttentionShape& shape, int products) {
  const double head = static_cast<double>(shape.width / shape.heads);
  const double dropout = shape.dropout > 0 ? kDropoutFlops.forward : 0;
  return Scores(shape) * (2 * products * head + kSoftmaxFlops.forward + dropout);
}

}  // namespace

absl::StatusOr<SimulatedDevice> ParseSimulatedDevice(const std::string& device) {
  constexpr char kName[] = "simulated";
  SimulatedDevice result;
  if (device == kName) return result;
  const std::string prefix = absl::StrCat(kName, ":");
  double gigaflops = 0;
  if (device.rfind(prefix, 0) == 0 && absl::SimpleAtod(device.substr(prefix.size()), &gigaflops) &&
      gigaflops >= 1e-3 && gigaflops <= 1e9) {
    result.flops_per_second = result.bytes_per_second = gigaflops * 1e9;
    return result;
  }
  return absl::InvalidArgumentError(absl::StrCat(
      "device ", device, ": want simulated or simulated:RATE, in GFLOP/s from 0.001 to 1e9"));
}

namespace {

// Of a table no more is moved than the rows that ids pick, and those are counted where they come from or go to.
bool PicksRows(const CallTypes& types) {
  return std::any_of(types.inputs.begin(), types.inputs.end(),
                     [](const ValueType& type) { return type.element == Element::kIds; });
}

// Who reads the sums divides by the terms and shows the loss: it is that of a network which gives zeros.
void WriteLossOfZeros(const CallTypes& types, int64_t samples, const KernelArguments& arguments) {
  const Tensor& sums = arguments.outputs[arguments.outputs.size() - 1];
  const ValueType& output = types.inputs[0];
  const auto terms = static_cast<double>(TypeElements(types.inputs[1], samples));
  const bool classes = types.inputs[1].element == Element::kIds;
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
  if (std::optional<Kernel> kernel = KernelByFunction(*this, call, types)) return *kernel;
  const absl::StatusOr<const Operation*> operation = FindOperation(call.operation);
  if (!operation.ok()) return NoKernel(call, "simulated");
  const bool loss = !(*operation)->Sums(call.attributes).empty();
  return
      [this, operation = *operation, attributes = call.attributes, types, loss,
       table = PicksRows(types)](const KernelContext& context, const KernelArguments& arguments) {
        const Cost cost = operation->CostOf(attributes, types, context.run.sequences);
        std::vector<const Tensor*> outputs, operands;
        for (size_t i = 0; i < arguments.outputs.size(); ++i)
          outputs.push_back(&arguments.outputs[i]);
        for (size_t i = 0; i < arguments.inputs.size(); ++i) {
          if (!table || types.inputs[i].leading != Leading::kOne) {
            operands.push_back(&arguments.inputs[i]);
          }
        }
        for (size_t i = 0; !table && i < arguments.adds.size(); ++i) {
          operands.push_back(&arguments.adds[i]);
        }
        RunOn(static_cast<double>(cost.flops), outputs, operands);
        if (loss) WriteLossOfZeros(types, context.run.sequences, arguments);
      };
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

void SimulatedBackend::LinearForward(const LinearForwardArgs& args) {
  CHECK_EQ(args.x.shape()[1], args.weight.shape()[1]) << "linear";
  double flops = Product(args.x, args.x.shape()[1], args.weight);
  CHECK(!args.residual.valid() || !args.activation.valid()) << "linear with GELU and residual";
  if (args.activation.valid()) flops += kGeluFlops.forward * Elements(args.activation);
  if (args.residual.valid()) flops += kAddFlops.forward * Elements(args.residual);
  Run(flops, {&args.y, &args.activation}, {&args.x, &args.weight, &args.bias, &args.residual});
}

void SimulatedBackend::LinearBackwardInput(const LinearBackwardInputArgs& args) {
  CHECK_EQ(args.dy.shape()[1], args.weight.shape()[0]) << "linear backward";
  double flops = Product(args.dy, args.dy.shape()[1], args.weight);
  if (args.gelu_input.valid()) flops += kGeluFlops.backward * Elements(args.gelu_input);
  Run(flops, {&args.dx}, {&args.dy, &args.weight, &args.gelu_input});
}

void SimulatedBackend::LinearBackwardWeight(const LinearBackwardWeightArgs& args) {
  CHECK_EQ(args.dy.shape()[1], args.d_weight.shape()[0]) << "linear backward";
  Run(Product(args.dy, args.dy.shape()[1], args.d_weight), {},
      {&args.dy, &args.x, &args.d_weight, &args.d_bias});
}

void SimulatedBackend::AttentionForward(const AttentionForwardArgs& args) {
  Run(AttentionFlops(args.shape, 2), {&args.out, &args.log_sum_exp}, {&args.qkv});
}

void SimulatedBackend::AttentionBackward(const AttentionBackwardArgs& args) {
  Run(AttentionFlops(args.shape, 5), {&args.d_qkv}, {&args.d_out, &args.qkv, &args.out});
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

void SimulatedBackend::Sgd(const SgdArgs& args) {
  Run(kSgdFlops * Elements(args.value), {},
      {&args.value, &args.gradient, &args.velocity, &args.compute});
}

void SimulatedBackend::AdamW(const AdamWArgs& args) {
  Run(kAdamWFlops * Elements(args.value), {},
      {&args.value, &args.gradient, &args.m, &args.v, &args.compute});
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
