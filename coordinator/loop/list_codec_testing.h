// ListCodec: for tests, encodes a spec as its place in the list of specs seen. Thread-safe.
#ifndef STAGECOACH_COORDINATOR_LOOP_LIST_CODEC_TESTING_H_
#define STAGECOACH_COORDINATOR_LOOP_LIST_CODEC_TESTING_H_

#include <algorithm>
#include <mutex>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "coordinator/loop/job_manager.h"

namespace stagecoach {

class ListCodec final : public JobCodec {
 public:
  std::string Encode(const JobSpec& spec) const override {
    std::lock_guard<std::mutex> lock(mutex_);
    const auto found = std::find(specs_.begin(), specs_.end(), spec);
    const auto place = found - specs_.begin();
    if (found == specs_.end()) specs_.push_back(spec);
    return TextOf(static_cast<size_t>(place));
  }
  absl::StatusOr<JobSpec> Decode(const std::string& text) const override {
    std::lock_guard<std::mutex> lock(mutex_);
    for (size_t i = 0; i < specs_.size(); ++i) {
      if (text == TextOf(i)) return specs_[i];
    }
    return absl::DataLossError(text);
  }

 private:
  static std::string TextOf(size_t place) { return absl::StrCat("{\"spec\":", place, "}"); }

  mutable std::mutex mutex_;  // guards specs_
  mutable std::vector<JobSpec> specs_;
};

}  // namespace stagecoach

#endif  // STAGECOACH_COORDINATOR_LOOP_LIST_CODEC_TESTING_H_
