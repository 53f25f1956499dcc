#include "bench/operations/call_timer.h"

#include <algorithm>
#include <chrono>
#include <memory>
#include <optional>
#include <tuple>
#include <utility>

#include "base/errors/status.h"
#include "operations/catalogue.h"

namespace stagecoach {
namespace {

constexpr int kRounds = 5, kWarmUps = 2;
constexpr int64_t kMostRuns = 10'000, kMostSets = 16;
constexpr int64_t kBeyondCaches = 256'000'000;  // bytes; the L2 of a large card has 50 MB

double Now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

// Ids have to be below the rows of their table, or of the classes that a loss has.
int64_t ClassesOf(const NetworkCall& call) {
  const Operation& operation = OperationNamed(call.call.operation);
  if (const auto rows = operation.RowsOfTable(call.call.attributes, call.types)) return *rows;
  int64_t classes = 1;
  for (const ValueType& type : call.types.inputs) {
    if (type.element != Element::kIds && type.shape.rank() > 0) {
      classes = type.shape.back();
      break;
    }
  }
  for (const ValueType& type : call.types.adds) return type.shape[0];  // the gradient of a table
  return classes;
}

}  // namespace

struct CallTimer::Set {
  Tensors inputs, outputs, adds;
  Operands in, out, sums;
};

absl::StatusOr<double> CallTimer::Round(const std::function<void(int64_t)>& run, int64_t runs) {
  const bool marks = backend_.MarkTime();
  const double start = Now();
  for (int64_t i = 0; i < runs; ++i) run(next_++);
  if (marks) backend_.MarkTime();
  const absl::Status status = backend_.Synchronize();
  const double waited = Now() - start;
  const std::vector<int64_t> times =
      backend_.TakeTimes();  // of a run that failed, too: they are not the next one's
  RETURN_IF_ERROR(status);
  if (!marks) return waited / static_cast<double>(runs);
  if (times.size() != 2) return absl::InternalError("the device's clock has not two marks");
  return static_cast<double>(times[1] - times[0]) * 1e-9 / static_cast<double>(runs);
}

absl::StatusOr<TimedCall> CallTimer::Time(const std::function<void(int64_t)>& run) {
  for (int i = 0; i < kWarmUps; ++i) RETURN_IF_ERROR(Round(run, 1).status());
  ASSIGN_OR_RETURN(const double one, Round(run, 1));
  const double wanted = seconds_ / kRounds / std::max(one, 1e-7);
  const int64_t runs = std::clamp(static_cast<int64_t>(wanted), int64_t{1}, kMostRuns);
  backend_.TakeWays();
  TimedCall timed;
  std::vector<double> rounds;
  for (int i = 0; i < kRounds; ++i) {
    ASSIGN_OR_RETURN(const double seconds, Round(run, runs));
    rounds.push_back(seconds);
    timed.runs += runs;
  }
  std::sort(rounds.begin(), rounds.end());
  timed.median_seconds = rounds[kRounds / 2];
  timed.least_seconds = rounds.front();
  timed.ways = backend_.TakeWays();
  return timed;
}

absl::StatusOr<std::function<void(int64_t)>> CallTimer::Runs(const NetworkCall& call,
                                                             int64_t samples, DType activation) {
  ASSIGN_OR_RETURN(const Kernel kernel, backend_.Prepare(call.call, call.types, activation));
  const int64_t bytes = std::max<int64_t>(1, LeastBytes(call.types, samples, activation));
  const int64_t sets = std::clamp(kBeyondCaches / bytes, int64_t{1}, kMostSets);
  const int64_t classes = ClassesOf(call);
  auto all = std::make_shared<std::vector<std::unique_ptr<Set>>>();
  for (int64_t i = 0; i < sets; ++i) {
    auto set = std::make_unique<Set>();
    for (const auto& [types, tensors, places, padded] :
         {std::tuple(&call.types.inputs, &set->inputs, &set->in, call.padded_input),
          std::tuple(&call.types.outputs, &set->outputs, &set->out, call.padded_output),
          std::tuple(&call.types.adds, &set->adds, &set->sums, false)}) {
      for (size_t n = 0; n < types->size(); ++n) {
        ASSIGN_OR_RETURN(Tensor tensor, make_.Operand((*types)[n], samples, activation, classes,
                                                      padded && n == 0));
        tensors->push_back(std::move(tensor));
      }
      *places = PlacesOf(*tensors);
    }
    all->push_back(std::move(set));
  }
  const ForwardContext context{.seed = 1, .micro_batch = MicroBatchId(0), .sequences = samples};
  return [=](int64_t i) {
    const Set& set = *(*all)[static_cast<size_t>(i % sets)];
    kernel({context}, {set.in, set.out, set.sums});
  };
}

absl::StatusOr<TimedCall> CallTimer::Time(const NetworkCall& call, int64_t samples,
                                          DType activation) {
  ASSIGN_OR_RETURN(const auto run, Runs(call, samples, activation));
  return Time(run);
}

}  // namespace stagecoach
