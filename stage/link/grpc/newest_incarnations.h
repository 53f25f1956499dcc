// NewestIncarnations: the newest term and generation that a stage has accepted, by job, so that it
// refuses a neighbour of an older incarnation.
// Ownership: values only.
// Threads:   thread-compatible; the connector's mutex guards it.
// Units:     the last kMostJobs jobs by acceptance; an older job is forgotten. Its late neighbours
//            then wait for a link that nobody accepts and are refused at the connect deadline.
#ifndef STAGECOACH_STAGE_LINK_GRPC_NEWEST_INCARNATIONS_H_
#define STAGECOACH_STAGE_LINK_GRPC_NEWEST_INCARNATIONS_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <list>
#include <optional>
#include <string>
#include <utility>

namespace stagecoach {

class NewestIncarnations {
 public:
  using Incarnation = std::pair<uint64_t, uint64_t>;  // term, generation
  static constexpr size_t kMostJobs = 64;

  void Accept(const std::string& job, Incarnation incarnation) {
    const auto known = Find(job);
    if (known != jobs_.end()) {
      known->second = std::max(known->second, incarnation);
      jobs_.splice(jobs_.begin(), jobs_, known);
      return;
    }
    jobs_.emplace_front(job, incarnation);
    if (jobs_.size() > kMostJobs) jobs_.pop_back();
  }

  std::optional<Incarnation> Of(const std::string& job) const {
    const auto known = Find(job);
    return known == jobs_.end() ? std::nullopt : std::optional(known->second);
  }

 private:
  using Jobs = std::list<std::pair<std::string, Incarnation>>;  // the last accepted first

  Jobs::iterator Find(const std::string& job) {
    return std::find_if(jobs_.begin(), jobs_.end(),
                        [&](const auto& at) { return at.first == job; });
  }
  Jobs::const_iterator Find(const std::string& job) const {
    return std::find_if(jobs_.begin(), jobs_.end(),
                        [&](const auto& at) { return at.first == job; });
  }

  Jobs jobs_;
};

}  // namespace stagecoach

#endif  // STAGECOACH_STAGE_LINK_GRPC_NEWEST_INCARNATIONS_H_
