// A fuzz target: a function of any bytes that a peer, a file or a user may hand us. It must come
// back; what it CHECKs holds for every input. libFuzzer calls it in the preset `asan` (tools/fuzz);
// in all other builds fuzz_replay gives it what lies in corpus/TARGET. See CONTRIBUTING.md,
// "Fuzzing".
#ifndef STAGECOACH_TESTS_FUZZ_FUZZ_TARGET_H_
#define STAGECOACH_TESTS_FUZZ_FUZZ_TARGET_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>

#include "absl/status/status.h"
#include "base/errors/check.h"
#include "base/utf8.h"

namespace stagecoach {

// The bytes of an input, taken from the front. Whatever is asked for behind the end is zero or
// empty.
class FuzzInput {
 public:
  FuzzInput(const uint8_t* data, size_t size) : left_(data, size) {}
  bool empty() const { return left_.empty(); }

  uint8_t Byte() {
    if (left_.empty()) return 0;
    const uint8_t byte = left_.front();
    left_ = left_.subspan(1);
    return byte;
  }
  // Of so many bytes, the lowest first.
  uint64_t Number(int bytes) {
    uint64_t number = 0;
    for (int i = 0; i < bytes; ++i) number |= uint64_t{Byte()} << (8 * i);
    return number;
  }
  std::string Text(size_t most) {
    const auto text = left_.first(std::min(most, left_.size()));
    left_ = left_.subspan(text.size());
    return std::string(text.begin(), text.end());
  }
  std::string Rest() { return Text(left_.size()); }

 private:
  std::span<const uint8_t> left_;
};

using FuzzFunction = void (*)(FuzzInput input);

// Of a replaying program, by name.
inline std::map<std::string, FuzzFunction>& FuzzTargets() {
  static auto* const targets = new std::map<std::string, FuzzFunction>();
  return *targets;
}

// What leaves us for people is text that no terminal obeys.
inline void CheckShown(const std::string& text) {
  CHECK(ShownText(text) == text) << "left as it came: " << ShownText(text);
}
inline void CheckShown(const absl::Status& status) { CheckShown(std::string(status.message())); }

}  // namespace stagecoach

#ifdef STAGECOACH_LIBFUZZER
#define FUZZ_TARGET(name, function)                                         \
  extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) { \
    ::stagecoach::function(::stagecoach::FuzzInput(data, size));            \
    return 0;                                                               \
  }
#else
#define FUZZ_TARGET(name, function)          \
  [[maybe_unused]] const bool added_##name = \
      ::stagecoach::FuzzTargets().emplace(#name, ::stagecoach::function).second;
#endif

#endif  // STAGECOACH_TESTS_FUZZ_FUZZ_TARGET_H_
