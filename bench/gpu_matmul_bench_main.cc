// gpu-matmul-bench: what a device really reaches on a large square product, through the back end
// that trains: the ceiling that the share of training is measured against. y = x w^T, uniform
// random values (a card is faster on zeros), the best and the median of several rounds of queued
// products.
//
//   gpu-matmul-bench [--device cuda:0] [--precision bfloat16] [--size 8192] [--seconds 2]
//
// Prints one line of JSON: {"device":...,"size":...,"tflops_median":...,"tflops_best":...}.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <functional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "base/device_name.h"
#include "base/random.h"
#include "base/status.h"
#include "services/common/flags/flag_parser.h"
#include "stage/backends/cuda/make_cuda_backend.h"
#include "stage/backends/operation_testing.h"

namespace stagecoach {
namespace {

constexpr int kRounds = 7;
constexpr int kWarmUps = 3;
constexpr size_t kPattern = size_t{1} << 20;  // random values, repeated

struct Options {
  std::string device = "cuda:0";
  std::string precision = "bfloat16";
  int64_t size = 8192;
  double seconds = 2;  // about, of all rounds
  int threads = 1;     // of the cpu device
};

double Now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

absl::StatusOr<std::unique_ptr<Backend>> MakeBackend(const Options& options) {
  if (options.device == "cpu") return MakeCpuBackend({.threads = options.threads});
  ASSIGN_OR_RETURN(const int ordinal, ParseCudaDevice(options.device));
  return MakeCudaBackend({}, ordinal);
}

// [size, size] of uniform values in (-1, 1).
absl::StatusOr<Tensor> Uniform(Backend& backend, DType dtype, int64_t size, uint32_t operation) {
  std::vector<float> values(static_cast<size_t>(size * size));
  const RandomStream stream = {.seed = 1, .operation = operation};
  for (size_t i = 0; i < values.size(); ++i) {
    values[i] = i < kPattern
                    ? static_cast<float>(static_cast<int32_t>(RandomBits(stream, i))) * 0x1p-31f
                    : values[i - kPattern];
  }
  ASSIGN_OR_RETURN(Tensor wide, MakeTensor(backend.allocator(), MemoryKind::kActivations,
                                           DType::kF32, {size, size}));
  backend.CopyFromHost(std::as_bytes(std::span(values)), wide);
  RETURN_IF_ERROR(backend.Synchronize());
  if (dtype == DType::kF32) return wide;
  ASSIGN_OR_RETURN(Tensor narrow,
                   MakeTensor(backend.allocator(), MemoryKind::kActivations, dtype, {size, size}));
  backend.Convert(wide, narrow);
  RETURN_IF_ERROR(backend.Synchronize());
  return narrow;
}

absl::StatusOr<double> SecondsOf(Backend& backend, const std::function<void()>& product,
                                 int64_t times) {
  const double start = Now();
  for (int64_t i = 0; i < times; ++i) product();
  RETURN_IF_ERROR(backend.Synchronize());
  return Now() - start;
}

absl::Status Run(const Options& options) {
  Precision precision = Precision::kFloat32;
  if (options.precision == "bfloat16") precision = Precision::kBfloat16;
  if (options.precision == "tensorfloat32") precision = Precision::kTensorFloat32;
  ASSIGN_OR_RETURN(const std::unique_ptr<Backend> backend, MakeBackend(options));
  backend->SetPrecision(precision);
  const DType dtype = ComputeDType(precision);
  ASSIGN_OR_RETURN(const Tensor x, Uniform(*backend, dtype, options.size, 1));
  ASSIGN_OR_RETURN(const Tensor weight, Uniform(*backend, dtype, options.size, 2));
  ASSIGN_OR_RETURN(const Tensor y, MakeTensor(backend->allocator(), MemoryKind::kActivations, dtype,
                                              {options.size, options.size}));
  const std::function<void()> product =
      PrepareOn(*backend, {.operation = "linear", .inputs = {x, Whole(weight)}, .outputs = {y}});
  RETURN_IF_ERROR(SecondsOf(*backend, product, kWarmUps).status());
  ASSIGN_OR_RETURN(const double one, SecondsOf(*backend, product, 1));
  const auto times = static_cast<int64_t>(options.seconds / kRounds / std::max(one, 1e-6)) + 1;
  std::vector<double> tflops;
  for (int round = 0; round < kRounds; ++round) {
    ASSIGN_OR_RETURN(const double seconds, SecondsOf(*backend, product, times));
    const auto side = static_cast<double>(options.size);
    tflops.push_back(2 * side * side * side * static_cast<double>(times) / seconds / 1e12);
  }
  std::sort(tflops.begin(), tflops.end());
  std::printf(
      "{\"device\":\"%s\",\"fingerprint\":\"%s\",\"precision\":\"%s\",\"size\":%lld,"
      "\"products\":%lld,\"tflops_median\":%.4f,\"tflops_best\":%.4f}\n",
      options.device.c_str(), backend->fingerprint().c_str(), options.precision.c_str(),
      static_cast<long long>(options.size), static_cast<long long>(times * kRounds),
      tflops[kRounds / 2], tflops.back());
  return absl::OkStatus();
}

}  // namespace
}  // namespace stagecoach

int main(int argc, char** argv) {
  stagecoach::Options options;
  stagecoach::FlagParser parser("Speed of a large matrix product on a device.");
  parser.Text("--device", &options.device, "cuda[:N] or cpu");
  parser.OneOf("--precision", &options.precision, "of the operands",
               {"bfloat16", "float32", "tensorfloat32"});
  parser.Number("--size", &options.size, "of the square", 16, 32768);
  parser.Number("--seconds", &options.seconds, "of measuring, about", 0.01, 600.0);
  parser.Number("--threads", &options.threads, "of the cpu device", 1, 1024);
  if (const std::optional<int> code = parser.Parse(argc, argv)) return *code;
  const absl::Status status = stagecoach::Run(options);
  if (status.ok()) return 0;
  std::fprintf(stderr, "gpu-matmul-bench: %s\n", std::string(status.message()).c_str());
  return 1;
}
