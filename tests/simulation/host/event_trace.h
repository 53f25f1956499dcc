// EventTrace: what happened in a world: a hash of it, by which two runs of a seed are compared, and
// lines for people if they are asked for.
// Threads: one.
#ifndef STAGECOACH_TESTS_SIMULATION_HOST_EVENT_TRACE_H_
#define STAGECOACH_TESTS_SIMULATION_HOST_EVENT_TRACE_H_

#include <cstdint>
#include <cstdio>
#include <string>
#include <string_view>

#include "tests/simulation/host/virtual_time.h"

namespace stagecoach {

class EventTrace {
 public:
  EventTrace(const VirtualTime* time, bool shown) : time_(time), shown_(shown) {}

  // What happened, at which host, and a number or two of it.
  void Note(std::string_view what, int host = 0, uint64_t number = 0) {
    Add(static_cast<uint64_t>(time_->nanos()));
    for (const char c : what) hash_ = (hash_ ^ static_cast<uint8_t>(c)) * kPrime;
    Add(static_cast<uint64_t>(host));
    Add(number);
    if (shown_) {
      std::fprintf(stderr, "%12.6f  %-24.*s host %d  %llu\n", time_->seconds(),
                   static_cast<int>(what.size()), what.data(), host,
                   static_cast<unsigned long long>(number));
    }
  }
  // For people; texts are made only where shown() says so.
  bool shown() const { return shown_; }
  void Say(const std::string& text) const {
    if (shown_) std::fprintf(stderr, "%12.6f  %s\n", time_->seconds(), text.c_str());
  }
  uint64_t hash() const { return hash_; }

 private:
  static constexpr uint64_t kPrime = 0x100000001b3;  // FNV-1a
  void Add(uint64_t value) { hash_ = (hash_ ^ value) * kPrime; }

  const VirtualTime* const time_;
  const bool shown_;
  uint64_t hash_ = 0xcbf29ce484222325;
};

}  // namespace stagecoach

#endif  // STAGECOACH_TESTS_SIMULATION_HOST_EVENT_TRACE_H_
