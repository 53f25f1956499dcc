// NamedList: the one list of things that are found by their name, as the kinds of layers: objects
// without state.
// Ownership: owns nothing; the things and their list live as long as the process.
// Threads:   any.
// Errors:    Find answers NOT_FOUND with the nearest known name. Two of one name are a CHECK when
//            the list is made.
#ifndef STAGECOACH_BASE_NAMED_LIST_H_
#define STAGECOACH_BASE_NAMED_LIST_H_

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "base/errors/check.h"
#include "base/errors/suggest.h"

namespace stagecoach {

// `Thing` has a name().
template <typename Thing>
class NamedList {
 public:
  // what: the noun for one of them, "kind of layer".
  NamedList(std::string what, std::vector<const Thing*> all)
      : what_(std::move(what)), all_(std::move(all)) {
    std::sort(all_.begin(), all_.end(),
              [](const Thing* a, const Thing* b) { return a->name() < b->name(); });
    for (size_t i = 1; i < all_.size(); ++i) {
      CHECK(all_[i - 1]->name() != all_[i]->name())
          << "a " << what_ << " " << all_[i]->name() << " twice";
    }
  }

  const std::vector<const Thing*>& all() const { return all_; }  // by name

  absl::StatusOr<const Thing*> Find(std::string_view name) const {
    const auto found = std::lower_bound(
        all_.begin(), all_.end(), name,
        [](const Thing* thing, std::string_view wanted) { return thing->name() < wanted; });
    if (found != all_.end() && (*found)->name() == name) return *found;
    std::vector<std::string> known;
    for (const Thing* thing : all_) known.emplace_back(thing->name());
    return absl::NotFoundError(absl::StrCat("there is no ", what_, " \"", std::string(name), "\"",
                                            Suggestion(std::string(name), known)));
  }

 private:
  const std::string what_;
  std::vector<const Thing*> all_;
};

}  // namespace stagecoach

#endif  // STAGECOACH_BASE_NAMED_LIST_H_
