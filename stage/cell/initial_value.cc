#include "stage/cell/initial_value.h"

#include <algorithm>
#include <thread>

#include "base/progress.h"
#include "base/random.h"
#include "base/thread.h"

namespace stagecoach {
namespace {

constexpr size_t kElementsOfThread = size_t{1} << 16;  // fewer are not worth a thread

}  // namespace

std::vector<float> InitialValue(const ParameterSpec& spec, uint64_t seed, int layer) {
  const size_t elements = static_cast<size_t>(spec.shape.elements());
  if (spec.init == ParameterSpec::Init::kZeros) return std::vector<float>(elements, 0.0f);
  if (spec.init == ParameterSpec::Init::kOnes) return std::vector<float>(elements, 1.0f);
  const RandomStream stream = {seed, 0, 0xffffffff, static_cast<uint32_t>(layer),
                               0x8000u | static_cast<uint32_t>(spec.index)};
  std::vector<float> values(elements);
  // Each value is a function of its index alone, so that threads change nothing; without them the
  // weights of a billion parameters take longer than a stage may load.
  const size_t cores = std::max(1u, std::thread::hardware_concurrency());
  const size_t parts = std::clamp<size_t>(elements / kElementsOfThread, 1, cores);
  std::vector<Thread> threads;
  for (size_t part = 0; part < parts; ++part) {
    const auto fill = [&values, &spec, stream, first = elements * part / parts,
                       last = elements * (part + 1) / parts] {
      for (size_t i = first; i < last; ++i) {
        if (i % kElementsOfThread == 0) TickProgress();
        values[i] = static_cast<float>(spec.init_stddev * RandomNormal(stream, i));
      }
    };
    if (part + 1 < parts) {
      threads.emplace_back("weights", fill);
    } else {
      fill();
    }
  }
  threads.clear();  // joins
  return values;
}

}  // namespace stagecoach
