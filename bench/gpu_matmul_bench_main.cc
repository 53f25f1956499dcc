// gpu-matmul-bench: what a device really reaches on a large square product, through the back end
// that trains: the ceiling that the share of training is measured against. y = x w^T, uniform
// random values (a card is faster on zeros), the best and the median of several rounds of queued
// products.
//
//   gpu-matmul-bench [--device cuda:0] [--precision bfloat16] [--size 8192] [--seconds 2]
//
// Prints one line of JSON: {"device":...,"size":...,"tflops_median":...,"tflops_best":...}.
#include <cstdio>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "base/errors/status.h"
#include "bench/operations/bench_device.h"
#include "bench/operations/ceilings.h"
#include "services/common/flags/flag_parser.h"

namespace stagecoach {
namespace {

struct Options {
  std::string device = "cuda:0";
  std::string precision = "bfloat16";
  int64_t size = 8192;
  double seconds = 2;  // about, of all rounds
  int threads = 1;     // of the cpu device
};

absl::Status Run(const Options& options) {
  Precision precision = Precision::kFloat32;
  if (options.precision == "bfloat16") precision = Precision::kBfloat16;
  if (options.precision == "tensorfloat32") precision = Precision::kTensorFloat32;
  ASSIGN_OR_RETURN(const std::unique_ptr<Backend> backend,
                   MakeBenchBackend(options.device, {.threads = options.threads}));
  ASSIGN_OR_RETURN(const Rates rates,
                   ProductRates(*backend, precision, options.size, options.seconds));
  std::printf(
      "{\"device\":\"%s\",\"fingerprint\":\"%s\",\"precision\":\"%s\",\"size\":%lld,"
      "\"products\":%lld,\"tflops_median\":%.4f,\"tflops_best\":%.4f}\n",
      options.device.c_str(), backend->fingerprint().c_str(), options.precision.c_str(),
      static_cast<long long>(options.size), static_cast<long long>(rates.runs), rates.median / 1e12,
      rates.best / 1e12);
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
