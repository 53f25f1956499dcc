#include "stage/cell/initial_value.h"

#include <algorithm>
#include <thread>
#include <vector>

#include "base/numbers/random.h"
#include "base/threads/progress.h"
#include "base/threads/thread.h"

namespace stagecoach {
namespace {

constexpr size_t kElementsOfThread = size_t{1} << 16;  // fewer are not worth a thread

}  // namespace

void SetInitialValues(const ParameterSpec& spec, uint64_t seed, int layer, int64_t first,
                      std::span<float> values) {
  if (spec.init != ParameterSpec::Init::kNormal) {
    std::ranges::fill(values, spec.init == ParameterSpec::Init::kOnes ? 1.0f : 0.0f);
    return;
  }
  const RandomStream stream = {seed, 0, 0xffffffff, static_cast<uint32_t>(layer),
                               0x8000u | static_cast<uint32_t>(spec.index)};
  // Each value is a function of its index alone, so that threads change nothing; without them the
  // weights of a billion parameters take longer than a stage may load.
  const size_t cores = std::max(1u, std::thread::hardware_concurrency());
  const size_t parts = std::clamp<size_t>(values.size() / kElementsOfThread, 1, cores);
  std::vector<Thread> threads;
  for (size_t part = 0; part < parts; ++part) {
    const auto fill = [&spec, stream, values, at = static_cast<uint64_t>(first),
                       begin = values.size() * part / parts,
                       end = values.size() * (part + 1) / parts] {
      for (size_t i = begin; i < end; ++i) {
        if (i % kElementsOfThread == 0) TickProgress();
        values[i] = static_cast<float>(spec.init_stddev * RandomNormal(stream, at + i));
      }
    };
    if (part + 1 < parts) {
      threads.emplace_back("weights", fill);
    } else {
      fill();
    }
  }
}

}  // namespace stagecoach
