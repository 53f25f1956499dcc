#include "stage/backends/shared_rotary_tables.h"

#include <map>
#include <mutex>
#include <tuple>

namespace stagecoach {
namespace {

using Key = std::tuple<double, RotaryScaling, bool, int64_t, int64_t>;

struct Known {
  std::mutex mutex;
  std::map<Key, std::weak_ptr<const RotaryTables>> tables;  // guarded by mutex
};

}  // namespace

std::shared_ptr<const RotaryTables> SharedRotaryTables(const RotaryAttributes& attributes,
                                                       int64_t context, int64_t head_width) {
  static auto* const known = new Known;
  const std::lock_guard lock(known->mutex);
  std::weak_ptr<const RotaryTables>& place =
      known
          ->tables[{attributes.theta, attributes.scaling, attributes.inverse, context, head_width}];
  std::shared_ptr<const RotaryTables> tables = place.lock();
  if (tables == nullptr) {
    tables =
        std::make_shared<const RotaryTables>(MakeRotaryTables(attributes, context, head_width));
    place = tables;
  }
  return tables;
}

}  // namespace stagecoach
